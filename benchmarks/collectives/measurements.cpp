#include "collectives/measurements.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "headway/parallel/message_queue.h"

namespace headway::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Case {
  const char* operation;
  at::ScalarType dtype;
  int64_t bytes;
  std::function<void(const GroupCoordinator& group, at::Tensor& tensor)> call;
};

void all_reduce(const GroupCoordinator& group, at::Tensor& tensor) {
  tensor = group.all_reduce(tensor);
}
void all_gather(const GroupCoordinator& group, at::Tensor& tensor) {
  group.all_gather(tensor, 0);
}
void reduce_scatter(const GroupCoordinator& group, at::Tensor& tensor) {
  group.reduce_scatter(tensor, 0);
}
void broadcast(const GroupCoordinator& group, at::Tensor& tensor) {
  group.broadcast(tensor, GroupRank{0});
}
void barrier(const GroupCoordinator& group, at::Tensor&) {
  group.barrier();
}

/// 3584 bytes: one token of a model with 896 channels in fp32, two in bf16.
std::vector<Case> cases() {
  constexpr int64_t kKilobytes = 1024;
  std::vector<Case> result;
  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (int64_t bytes : {int64_t{3584}, 64 * kKilobytes, 1024 * kKilobytes}) {
      result.push_back({"all_reduce", dtype, bytes, all_reduce});
    }
  }
  result.push_back({"all_gather", at::kBFloat16, 3584, all_gather});
  result.push_back({"all_gather", at::kBFloat16, 512 * kKilobytes, all_gather});
  result.push_back({"reduce_scatter", at::kBFloat16, 7168, reduce_scatter});
  result.push_back({"reduce_scatter", at::kBFloat16, 1024 * kKilobytes, reduce_scatter});
  result.push_back({"broadcast", at::kBFloat16, 3584, broadcast});
  result.push_back({"barrier", at::kByte, 0, barrier});
  return result;
}

/// As many rows as the group has members.
at::Tensor tensor_of(const Case& one, int members) {
  const int64_t elements = one.bytes / static_cast<int64_t>(c10::elementSize(one.dtype));
  return at::zeros({members, elements / members}, one.dtype);
}

Samples named(const Case& one, const char* transport) {
  const char* dtype = one.bytes == 0 ? "" : c10::toString(one.dtype);
  return {.operation = one.operation, .dtype = dtype, .bytes = one.bytes, .transport = transport};
}

void take_turn(const Case& one, const GroupCoordinator& group, at::Tensor& tensor, int calls, Samples& samples) {
  one.call(group, tensor);  // the members come here at different times
  for (int i = 0; i < calls; ++i) {
    const auto start = Clock::now();
    one.call(group, tensor);
    samples.microseconds.push_back(microseconds_since(start));
  }
}

/// Sends `messages` of a kilobyte, each beginning with the time of its sending, `gap` apart.
void send_messages(MessageQueue& queue, int messages, microseconds gap, bool sleep) {
  std::string message(1024, 'x');
  for (int i = 0; i < messages; ++i) {
    const auto start = Clock::now();
    if (sleep) std::this_thread::sleep_for(gap);
    while (Clock::now() - start < gap) {
    }
    const auto now = Clock::now();
    std::memcpy(message.data(), &now, sizeof(now));
    queue.broadcast(message);
  }
}

std::string receive_messages(MessageQueue& queue, int messages) {
  std::vector<double> latencies;
  for (int i = 0; i < messages; ++i) {
    const std::string message = queue.receive();
    Clock::time_point sent;
    std::memcpy(&sent, message.data(), sizeof(sent));
    latencies.push_back(microseconds_since(sent));  // the clock is the same in all processes of a host
  }
  return {reinterpret_cast<const char*>(latencies.data()), latencies.size() * sizeof(double)};
}

}  // namespace

std::vector<Samples> measure_collectives(const GroupCoordinator& shm, const GroupCoordinator& gloo, int calls) {
  constexpr int kTurns = 20;
  std::vector<Samples> results;
  for (const Case& one : cases()) {
    at::Tensor tensor = tensor_of(one, shm.size());
    const int calls_per_turn = std::max<int64_t>(2, (one.bytes > 100'000 ? calls / 10 : calls) / kTurns);
    Samples over_shm = named(one, "shm");
    Samples over_gloo = named(one, "gloo");
    for (int turn = 0; turn < kTurns; ++turn) {
      take_turn(one, shm, tensor, calls_per_turn, over_shm);
      take_turn(one, gloo, tensor, calls_per_turn, over_gloo);
    }
    results.push_back(std::move(over_shm));
    results.push_back(std::move(over_gloo));
  }
  return results;
}

std::vector<Samples> measure_message_queue(const GroupCoordinator& group, int local_ranks, int messages) {
  const auto queue = make_message_queue(group, GroupRank{0}, {.local_ranks = local_ranks});
  const GroupRank last{group.size() - 1};
  std::vector<Samples> results;
  for (bool sleep : {false, true}) {
    const int count = sleep ? messages / 10 : messages;
    group.barrier();
    std::string latencies;
    if (group.is_first()) {
      send_messages(*queue, count, sleep ? microseconds(5000) : microseconds(20), sleep);
    } else {
      latencies = receive_messages(*queue, count);
    }
    latencies = group.broadcast_object(latencies, last);
    Samples samples{.operation = sleep ? "message, reader sleeps" : "message, reader spins",
                    .dtype = "",
                    .bytes = 1024,
                    .transport = "shm"};
    samples.microseconds.resize(latencies.size() / sizeof(double));
    std::memcpy(samples.microseconds.data(), latencies.data(), latencies.size());
    results.push_back(std::move(samples));
  }
  return results;
}

}  // namespace headway::benchmarks
