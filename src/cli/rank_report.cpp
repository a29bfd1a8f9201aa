#include "cli/rank_report.h"

#include <ATen/ops/tensor.h>

#include <fstream>
#include <string>

#include "headway/base/error.h"

namespace headway {

int64_t peak_rss_bytes() {
  // Not getrusage: its figure outlives exec, so it would tell of the launcher.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  throw Error("/proc/self/status has no VmHWM");
}

RankReport report_of_this_rank(const LoadedModel& loaded, const ParallelState& state) {
  return {.rank = state.world().global_rank(),
          .q_heads = loaded.model->heads().q_heads,
          .kv_heads = loaded.model->heads().kv_heads,
          .parameter_bytes = parameter_bytes(*loaded.model),
          .bytes_read = loaded.report.bytes_read,
          .peak_rss_bytes = peak_rss_bytes()};
}

std::vector<RankReport> gather_reports(const RankReport& own, const ParallelState& state) {
  const std::vector<int64_t> fields{own.rank.value,   own.q_heads.begin,   own.q_heads.end, own.kv_heads.begin,
                                    own.kv_heads.end, own.parameter_bytes, own.bytes_read,  own.peak_rss_bytes};
  const at::Tensor row = at::tensor(fields, at::kLong).view({1, -1}).to(state.device());
  const at::Tensor all = state.world().all_gather(row, 0).to(at::kCPU).contiguous();
  std::vector<RankReport> reports;
  for (int64_t r = 0; r < all.size(0); ++r) {
    const int64_t* f = all.const_data_ptr<int64_t>() + r * all.size(1);
    reports.push_back({{static_cast<int>(f[0])}, {f[1], f[2]}, {f[3], f[4]}, f[5], f[6], f[7]});
  }
  return reports;
}

}  // namespace headway
