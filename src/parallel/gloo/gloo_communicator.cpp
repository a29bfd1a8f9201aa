#include "parallel/gloo/gloo_communicator.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "headway/base/error.h"
#include "parallel/gloo/gloo_reason.h"
#include "parallel/launch/sockets.h"
#include "parallel/shm/rank_order_sum.h"
#include "parallel/store/job_store.h"

namespace headway {
namespace {

using Backend = c10::intrusive_ptr<c10d::Backend>;
using GlooDevice = std::shared_ptr<gloo::transport::Device>;

/// Calls Gloo and turns its errors into ours.
template <typename Exception, typename Call>
auto guarded(const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw Exception(gloo_reason(error.what_without_backtrace()));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Exception(gloo_reason(error.what()));
  }
}

template <typename Call>
void finish(const Call& start) {
  guarded<CommunicationError>([&] { start()->wait(); });
}

/// Copies need no dtype, and Gloo does not know all of them.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return tensor.view({-1}).view(at::kByte);
}

bool gloo_sums(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
    case at::kDouble:
    case at::kByte:
    case at::kChar:
    case at::kInt:
    case at::kLong:
      return true;
    default:
      return false;
  }
}

class GlooCommunicator : public Communicator {
 public:
  explicit GlooCommunicator(Backend backend) : backend_(std::move(backend)) {}

  const char* backend_name() const override { return "gloo"; }

  void all_reduce(at::Tensor& tensor) override {
    if (is_short_float(tensor.scalar_type())) {
      at::Tensor sum = tensor.to(at::kFloat);
      all_reduce(sum);
      tensor.copy_(sum);
      return;
    }
    check_summable(tensor);
    std::vector<at::Tensor> tensors{tensor};
    finish([&] { return backend_->allreduce(tensors); });
  }

  void all_gather(at::Tensor& output, const at::Tensor& input) override {
    at::Tensor output_bytes = as_bytes(output);
    at::Tensor input_bytes = as_bytes(input);
    finish([&] { return backend_->_allgather_base(output_bytes, input_bytes); });
  }

  /// Gloo would all-reduce the whole input.
  void reduce_scatter(at::Tensor& output, const at::Tensor& input) override {
    if (!is_short_float(input.scalar_type())) check_summable(input);
    const int64_t size = backend_->getSize();
    at::Tensor rows = at::empty({size, output.numel()}, output.options());
    const std::vector<int64_t> equal(size, output.numel());
    at::Tensor flat = rows.view({-1});
    all_to_all(flat, input.view({-1}), equal, equal);
    output.view({-1}).copy_(sum_in_rank_order(rows));
  }

  void all_to_all(at::Tensor& output, const at::Tensor& input, const std::vector<int64_t>& output_rows,
                  const std::vector<int64_t>& input_rows) override {
    at::Tensor output_bytes = as_bytes(output);
    at::Tensor input_bytes = as_bytes(input);
    std::vector<int64_t> received = bytes_of(output_rows, output);
    std::vector<int64_t> sent = bytes_of(input_rows, input);
    finish([&] { return backend_->alltoall_base(output_bytes, input_bytes, received, sent); });
  }

  void broadcast(at::Tensor& tensor, GroupRank source) override {
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = source.value;
    finish([&] { return backend_->broadcast(tensors, options); });
  }

  void send(const at::Tensor& tensor, GroupRank destination, int tag) override {
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    finish([&] { return backend_->send(tensors, destination.value, tag); });
  }

  void recv(at::Tensor& tensor, GroupRank source, int tag) override {
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    finish([&] { return backend_->recv(tensors, source.value, tag); });
  }

  void barrier() override {
    finish([&] { return backend_->barrier(); });
  }

 private:
  static void check_summable(const at::Tensor& tensor) {
    if (gloo_sums(tensor.scalar_type())) return;
    throw ArgumentError(fmt::format("Gloo cannot sum tensors of {}", c10::toString(tensor.scalar_type())));
  }

  static std::vector<int64_t> bytes_of(const std::vector<int64_t>& rows, const at::Tensor& tensor) {
    int64_t row = tensor.element_size();
    for (int64_t d = 1; d < tensor.dim(); ++d) row *= tensor.size(d);
    std::vector<int64_t> bytes;
    for (int64_t count : rows) bytes.push_back(count * row);
    return bytes;
  }

  Backend backend_;
};

/// Who asked for which network interface.
struct InterfaceChoice {
  std::string asked_by;
  std::string name;
};

InterfaceChoice chosen_interface(const DistributedOptions& options) {
  if (!options.interface.empty()) return {"the interface option", options.interface};
  for (const char* variable : {"HEADWAY_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto value = process_environment(variable);
    if (value && !value->empty()) return {variable, *value};
  }
  return {};
}

GlooDevice make_device(const LaunchEnvironment& launch, const DistributedOptions& options) {
  if (launch.single_host() && options.interface.empty()) {
    return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  }
  const InterfaceChoice choice = chosen_interface(options);
  if (choice.name.empty()) {
    return c10d::ProcessGroupGloo::createDeviceForHostname(local_address_towards(launch.master_addr));
  }
  if (!has_interface(choice.name)) {
    throw LaunchError(fmt::format("{}={}: this host has no such network interface", choice.asked_by, choice.name));
  }
  return c10d::ProcessGroupGloo::createDeviceForInterface(choice.name);
}

}  // namespace

std::shared_ptr<Communicator> make_gloo_communicator(const CommunicatorRequest& request) {
  return guarded<LaunchError>([&] {
    auto options = c10d::ProcessGroupGloo::Options::create(request.options.timeout);
    options->devices = {make_device(request.launch, request.options)};
    options->threads = 1;
    options->group_name = request.key;
    auto store = c10::make_intrusive<c10d::PrefixStore>(request.key, request.store->c10d());
    return std::make_shared<GlooCommunicator>(c10::make_intrusive<c10d::ProcessGroupGloo>(
        store, request.rank.value, static_cast<int>(request.ranks.size()), options));
  });
}

}  // namespace headway
