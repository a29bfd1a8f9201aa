#include "headway/weights/weight_loader.h"

#include <fmt/format.h>

#include <chrono>

#include "headway/base/log.h"
#include "weights/listed.h"
#include "weights/load_plan.h"
#include "weights/slice_reader.h"

namespace headway {
namespace {

/// Counts bytes and passes them on, not more often than a progress bar needs.
class Progress {
 public:
  Progress(const LoadProgress& callback, int64_t total) : callback_(callback), total_(total) {}

  void advance(int64_t bytes) {
    done_ += bytes;
    if (done_ - checked_ < kBytesBetweenChecks) return;
    checked_ = done_;
    const auto now = std::chrono::steady_clock::now();
    if (!callback_ || now - reported_ < std::chrono::milliseconds(50)) return;
    reported_ = now;
    callback_(done_, total_);
  }

  void finish() const {
    if (callback_) callback_(done_, total_);
  }

  int64_t done() const { return done_; }

 private:
  static constexpr int64_t kBytesBetweenChecks = int64_t{1} << 20;

  const LoadProgress& callback_;
  int64_t total_;
  int64_t done_ = 0;
  int64_t checked_ = 0;  ///< bytes done when the clock was last looked at
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

}  // namespace

WeightLoader::WeightLoader(const CheckpointIndex& index, CheckpointNames names)
    : index_(index), names_(std::move(names)) {}

LoadReport WeightLoader::load(const std::vector<NamedParameter>& parameters, const LoadProgress& progress) const {
  LoadPlan plan = plan_load(index_, names_, parameters);
  if (!plan.unused.empty()) {
    log(LogLevel::info,
        fmt::format("{}: {}", index_.folder().string(), listed("tensors need not be loaded", plan.unused)));
  }
  int64_t total = 0;
  for (const PlannedCopy& copy : plan.copies) total += copy.bytes();
  Progress counted(progress, total);
  const SliceReader reader([&](int64_t bytes) { counted.advance(bytes); });
  for (const PlannedCopy& copy : plan.copies) reader.read(copy);
  counted.finish();
  return {counted.done(), std::move(plan.unused)};
}

}  // namespace headway
