#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cli/batch_input.h"
#include "cli/batch_output.h"
#include "server/api_error.h"
#include "server/api_job.h"

namespace headway {

/// Works the requests of a batch off, on rank 0. A request that is refused or fails has that as its result; the others
/// go on.
class BatchRun {
 public:
  /// All must outlive the run. `max_texts` are in the engine at a time.
  BatchRun(TextGenerator& generator, const ServedModel& model, BatchInput& input, BatchOutput& output,
           int64_t max_texts);

  struct Counts {
    int64_t total = 0;     ///< requests of the input
    int64_t found = 0;     ///< whose results the output had already
    int64_t answered = 0;  ///< in this run
    int64_t failed = 0;
    int64_t completion_tokens = 0;
    int64_t done() const { return found + answered + failed; }
  };

  /// Calls `progress` after every step.
  Counts run(const std::function<void(const Counts&)>& progress);

 private:
  struct Running {
    BatchEntry entry;
    ApiJob job;
  };

  void start(const BatchEntry& entry);
  ApiJob read(const BatchEntry& entry);
  void step();
  void finish(const Running& running);
  void write_result(const BatchEntry& entry, int status, const Json& body, const Json& error);
  void write_error(const BatchEntry& entry, const ApiError& error);

  TextGenerator& generator_;
  const ServedModel& model_;
  BatchInput& input_;
  BatchOutput& output_;
  int64_t max_texts_;
  Counts counts_;
  std::map<RequestId, std::shared_ptr<Running>> running_;  ///< by the ids of a request's prompts
};

}  // namespace headway
