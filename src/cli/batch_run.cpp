#include "cli/batch_run.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "server/body_reader.h"

namespace headway {
namespace {

Endpoint endpoint_of(const std::string& url) {
  for (const Endpoint endpoint : {Endpoint::completions, Endpoint::chat_completions}) {
    if (url == path_of(endpoint)) return endpoint;
  }
  throw ApiError(404, "unknown_url",
                 fmt::format("url is \"{}\"; /v1/completions and /v1/chat/completions are served", url), "url");
}

std::string answer_id(Endpoint endpoint, const BatchEntry& entry) {
  return fmt::format("{}-batch-{}", endpoint == Endpoint::completions ? "cmpl" : "chatcmpl", entry.line);
}

}  // namespace

BatchRun::BatchRun(TextGenerator& generator, const ServedModel& model, BatchInput& input, BatchOutput& output,
                   int64_t max_texts)
    : generator_(generator), model_(model), input_(input), output_(output), max_texts_(max_texts) {}

BatchRun::Counts BatchRun::run(const std::function<void(const Counts&)>& progress) {
  std::vector<BatchEntry> open;
  for (const BatchEntry& entry : input_.entries()) {
    if (!output_.done().contains(entry.custom_id)) open.push_back(entry);
  }
  counts_.total = static_cast<int64_t>(input_.entries().size());
  counts_.found = counts_.total - static_cast<int64_t>(open.size());
  size_t next = 0;
  while (next < open.size() || !running_.empty()) {
    while (next < open.size() && static_cast<int64_t>(running_.size()) < max_texts_) start(open[next++]);
    step();
    progress(counts_);
  }
  return counts_;
}

void BatchRun::start(const BatchEntry& entry) {
  try {
    const auto running = std::make_shared<Running>(Running{entry, read(entry)});
    running->job.start(generator_);
    for (const RequestId id : running->job.requests()) running_.emplace(id, running);
  } catch (const std::exception& error) {
    write_error(entry, api_error_of(error));
  }
}

ApiJob BatchRun::read(const BatchEntry& entry) {
  const Json line = input_.read(entry);
  BodyReader reader(line);
  reader.find("custom_id");
  reader.accept_only("method", "POST");
  const Endpoint endpoint = endpoint_of(reader.string("url").value_or(""));
  ApiRequest request = read_request(endpoint, reader.require("body"), model_);
  reader.refuse_others();
  if (request.stream) throw ApiError(400, "unsupported_parameter", "stream is not served in a batch", "stream");
  return ApiJob(std::move(request), model_, answer_id(endpoint, entry), std::time(nullptr));
}

void BatchRun::step() {
  for (const TextOutput& output : generator_.step()) {
    const auto running = running_.at(output.output.request);
    running->job.take(output);
    if (!running->job.finished()) continue;
    for (const RequestId id : running->job.requests()) running_.erase(id);
    finish(*running);
  }
}

void BatchRun::finish(const Running& running) {
  try {
    const Json body = running.job.response();
    write_result(running.entry, 200, body, nullptr);
    counts_.completion_tokens += body["usage"]["completion_tokens"].get<int64_t>();
    ++counts_.answered;
  } catch (const ApiError& error) {
    write_error(running.entry, error);
  }
}

void BatchRun::write_error(const BatchEntry& entry, const ApiError& error) {
  write_result(entry, error.status(), error.body(), {{"code", error.code()}, {"message", error.what()}});
  ++counts_.failed;
}

void BatchRun::write_result(const BatchEntry& entry, int status, const Json& body, const Json& error) {
  const std::string id = fmt::format("batch_req_{}", entry.line);
  output_.write({{"id", id},
                 {"custom_id", entry.custom_id},
                 {"response", {{"status_code", status}, {"request_id", id}, {"body", body}}},
                 {"error", error}});
}

}  // namespace headway
