#include "parallel/message/message_stream.h"

#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {
namespace {

/// What stands before the bytes of a message.
struct FrameHeader {
  uint64_t bytes = 0;
  uint64_t is_farewell = 0;  ///< the bytes say why no more messages will come
};

}  // namespace

void StreamWriter::write(std::string_view message) {
  throw_if_given_up();
  const FrameHeader header{.bytes = message.size()};
  for (Reader& reader : readers_) {
    try {
      reader.socket.send(&header, sizeof(header), timeout_);
      reader.socket.send(message.data(), message.size(), timeout_);
    } catch (const CommunicationError& error) {
      throw CommunicationError(fmt::format("broadcast of {} bytes to {} by TCP: {}", message.size(),
                                           member_.describe(reader.group_rank), error.what()));
    }
  }
}

void StreamWriter::throw_if_given_up() const {
  if (!failure_.empty()) throw CommunicationError(fmt::format("no longer possible: {}", failure_));
}

void StreamWriter::check() {
  throw_if_given_up();
  for (Reader& reader : readers_) {
    try {
      reader.socket.check();
    } catch (const CommunicationError& error) {
      throw CommunicationError(fmt::format("{} by TCP: {}", member_.describe(reader.group_rank), error.what()));
    }
  }
}

void StreamWriter::give_up(std::string_view reason) {
  const FrameHeader header{.bytes = reason.size(), .is_farewell = 1};
  for (Reader& reader : readers_) {
    try {
      constexpr std::chrono::milliseconds kBrief{100};
      reader.socket.send(&header, sizeof(header), kBrief);
      reader.socket.send(reason.data(), reason.size(), kBrief);
    } catch (const CommunicationError&) {
      continue;  // it will see the closed connection
    }
  }
  readers_.clear();
  if (failure_.empty()) failure_ = reason;
}

std::string StreamReader::read(std::optional<std::chrono::milliseconds> limit) {
  const std::string operation = fmt::format("receive from {} by TCP", member_.describe(writer_.value));
  if (!failure_.empty()) throw CommunicationError(fmt::format("{}: no longer possible: {}", operation, failure_));
  if (!socket_.wait(limit)) {
    throw CommunicationError(fmt::format("{}: no message within {} ms", operation, limit->count()));
  }
  try {
    return read_frame();
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw CommunicationError(fmt::format("{}: {}", operation, failure_));
  }
}

std::string StreamReader::read_frame() {
  FrameHeader header;
  socket_.receive(&header, sizeof(header), timeout_);
  std::string message(header.bytes, '\0');
  socket_.receive(message.data(), message.size(), timeout_);
  if (header.is_farewell != 0) throw CommunicationError(message);
  return message;
}

void StreamReader::check() {
  if (!failure_.empty()) throw CommunicationError(fmt::format("message queue: no longer possible: {}", failure_));
  try {
    socket_.check();
  } catch (const CommunicationError& error) {
    throw CommunicationError(fmt::format("{} by TCP: {}", member_.describe(writer_.value), error.what()));
  }
}

}  // namespace headway
