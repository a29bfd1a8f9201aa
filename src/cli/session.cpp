#include "cli/session.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/errors.h"
#include "cli/launcher.h"
#include "cli/launcher_watch.h"
#include "cli/progress_bar.h"
#include "headway/base/log.h"
#include "headway/kernels/threads.h"
#include "headway/parallel/cuda_devices.h"

namespace headway {
namespace {

constexpr GroupRank kFirst{0};

/// Tells files of different contents apart (FNV-1a).
std::string digest_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t hash = 0xcbf29ce484222325;
  for (std::istreambuf_iterator<char> byte(file), end; byte != end; ++byte) {
    hash = (hash ^ static_cast<unsigned char>(*byte)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

/// What must be the same on every rank, beside the sizes of the groups.
std::string settings_text(const ModelOptions& options, const ModelPlan& plan) {
  const ModelConfig& config = plan.config;
  std::string text = fmt::format("model={} with {} layers, hidden size {}, heads {}/{}, vocabulary {}\n",
                                 config.architecture, config.num_layers, config.hidden_size, config.total_q_heads,
                                 config.total_kv_heads, config.vocab_size);
  const bool folder = std::filesystem::is_directory(plan.folder);
  text += fmt::format("digest of config.json={}\n", digest_of(folder ? plan.folder / "config.json" : plan.folder));
  text += fmt::format("embedding-group={}\nlm-head-group={}\nattn-replicas={}\n", options.embedding_group,
                      options.lm_head_group, options.attn_replicas);
  text += fmt::format("dtype={}\ndevice={}\nquantize={}\nmax-model-len={}\nkv-blocks={}\n", options.dtype,
                      options.device, options.quantize, plan.max_model_len,
                      options.kv_blocks ? std::to_string(*options.kv_blocks) : "auto");
  return text;
}

Device device_from_name(const std::string& name) {
  const bool cuda = name == "cuda" || (name == "auto" && visible_cuda_devices() > 0);
  return cuda ? Device::cuda : Device::cpu;
}

DistributedOptions distributed_options(const ModelOptions& options) {
  DistributedOptions distributed;
  distributed.device = device_from_name(options.device);
  distributed.timeout = std::chrono::milliseconds(std::llround(options.collective_timeout * 1000));
  distributed.rendezvous_timeout = distributed.timeout;
  return distributed;
}

std::string launch_line(const LaunchEnvironment& launch) {
  if (launch.source == "single") return "one rank, without a launcher";
  return fmt::format("{} ranks, launched by {}", launch.world_size, launch.source);
}

std::unique_ptr<ParallelState> join_ranks(const ModelOptions& options, const ModelPlan& plan) {
  if (options.threads) kernels::set_num_threads(static_cast<int>(*options.threads));
  if (plan.launch.rank.value == 0) log(LogLevel::info, launch_line(plan.launch));
  auto state =
      ParallelState::create(plan.launch, static_cast<int>(plan.parallel.tp), static_cast<int>(plan.parallel.attn_tp),
                            distributed_options(options), settings_text(options, plan));
  remove_store_folder(plan.launch);
  return state;
}

[[noreturn]] void end_with(const std::exception& error, GlobalRank rank) {
  std::fflush(stdout);
  print_rank_error(error, rank);
  std::_Exit(exit_code_of(error));
}

}  // namespace

void run_on_ranks(const ModelOptions& options, const ModelPlan& plan,
                  const std::function<void(const ParallelState&)>& body) {
  if (plan.launch.world_size > 1) set_log_rank(plan.launch.rank.value);
  end_with_launcher(plan.launch);
  std::unique_ptr<ParallelState> state;
  try {
    state = join_ranks(options, plan);
    body(*state);
  } catch (const std::exception& error) {
    end_with(error, plan.launch.rank);
  }
}

int64_t decide_on_first_rank(const GroupCoordinator& world, const std::function<int64_t()>& work) {
  std::string verdict;
  if (world.is_first()) {
    try {
      verdict = std::to_string(work());
    } catch (const UsageError& refused) {
      verdict = fmt::format("usage:{}", refused.what());
    } catch (const std::exception& failed) {
      verdict = fmt::format("error:{}", failed.what());
    }
  }
  verdict = world.broadcast_object(verdict, kFirst);
  constexpr size_t kKind = 6;
  if (verdict.starts_with("usage:")) throw UsageError(verdict.substr(kKind));
  if (verdict.starts_with("error:")) throw Error(verdict.substr(kKind));
  return std::stoll(verdict);
}

LoadedModel load_with_progress(const ModelPlan& plan, const ParallelState& state) {
  const bool first = state.world().is_first();
  ProgressBar bar("loading");
  LoadOptions options{.dtype = plan.dtype, .device = state.device(), .quantization = plan.quantization, .progress = {}};
  if (first) options.progress = [&bar](int64_t done, int64_t total) { bar.update(done, total); };
  LoadedModel loaded = load_model(plan.folder, plan.config, plan.parallel, state, options);
  if (first) {
    bar.finish(
        fmt::format("loaded {} on rank 0 in {:.2f} s", readable_bytes(loaded.report.bytes_read), loaded.load_seconds));
  }
  return loaded;
}

}  // namespace headway
