#include "parallel/nccl/nccl_communicator.h"

#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "headway/base/error.h"
#include "parallel/store/job_store.h"

namespace headway {
namespace {

using Backend = c10::intrusive_ptr<c10d::Backend>;

/// Calls NCCL and turns its errors into ours.
template <typename Exception, typename Call>
auto guarded(const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw Exception(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Exception(error.what());
  }
}

/// Work is queued on the device: a call returns before it is done, and the current stream waits for it. A failure is
/// found by NCCL's watchdog and thrown by the next call.
class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(Backend backend, at::Device device) : backend_(std::move(backend)), device_(device) {}

  ~NcclCommunicator() override {
    try {
      backend_->shutdown();
    } catch (const std::exception&) {
      // The group has failed before, and whoever used it knows.
    }
  }

  const char* backend_name() const override { return "nccl"; }
  at::Device device() const override { return device_; }

  void all_reduce(at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    enqueue([&] { return backend_->allreduce(tensors); });
  }

  void all_gather(at::Tensor& output, const at::Tensor& input) override {
    at::Tensor source = input;
    enqueue([&] { return backend_->_allgather_base(output, source); });
  }

  void reduce_scatter(at::Tensor& output, const at::Tensor& input) override {
    at::Tensor source = input;
    enqueue([&] { return backend_->_reduce_scatter_base(output, source); });
  }

  void all_to_all(at::Tensor& output, const at::Tensor& input, const std::vector<int64_t>& output_rows,
                  const std::vector<int64_t>& input_rows) override {
    at::Tensor source = input;
    std::vector<int64_t> received = output_rows;
    std::vector<int64_t> sent = input_rows;
    enqueue([&] { return backend_->alltoall_base(output, source, received, sent); });
  }

  void broadcast(at::Tensor& tensor, GroupRank source) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = source.value;
    enqueue([&] { return backend_->broadcast(tensors, options); });
  }

  void send(const at::Tensor& tensor, GroupRank destination, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    enqueue([&] { return backend_->send(tensors, destination.value, tag); });
  }

  void recv(at::Tensor& tensor, GroupRank source, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    enqueue([&] { return backend_->recv(tensors, source.value, tag); });
  }

  void barrier() override {
    c10d::BarrierOptions options;
    options.device_ids = {device_.index()};
    enqueue([&] { return backend_->barrier(options); });
  }

 private:
  template <typename Call>
  void enqueue(const Call& start) {
    guarded<CommunicationError>([&] {
      if (backend_->getError() != c10d::ErrorType::SUCCESS) throw CommunicationError("an earlier operation failed");
      start()->wait();
    });
  }

  Backend backend_;
  at::Device device_;
};

}  // namespace

std::shared_ptr<Communicator> make_nccl_communicator(const CommunicatorRequest& request) {
  return guarded<LaunchError>([&] {
    const at::Device device(at::kCUDA, c10::cuda::current_device());
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = request.options.timeout;
    options->group_name = request.key;
    for (GlobalRank rank : request.ranks) options->global_ranks_in_group.push_back(rank.value);
    auto store = c10::make_intrusive<c10d::PrefixStore>(request.key, request.store->c10d());
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, request.rank.value,
                                                               static_cast<int>(request.ranks.size()), options);
    backend->setBoundDeviceId(device);
    backend->eagerConnectSingleDevice(device);
    return std::make_shared<NcclCommunicator>(std::move(backend), device);
  });
}

}  // namespace headway
