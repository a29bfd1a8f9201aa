#pragma once

#include <memory>

#include "headway/parallel/communicator.h"
#include "parallel/shm/shm_session.h"

namespace headway {

/// Collectives between ranks on one host, through shared memory. Tensors must be on the CPU.
class ShmCommunicator : public Communicator {
 public:
  explicit ShmCommunicator(std::unique_ptr<ShmSession> session) : session_(std::move(session)) {}

  const char* backend_name() const override { return "shm"; }
  void all_reduce(at::Tensor& tensor) override;
  void all_gather(at::Tensor& output, const at::Tensor& input) override;
  void reduce_scatter(at::Tensor& output, const at::Tensor& input) override;
  void all_to_all(at::Tensor& output, const at::Tensor& input, const std::vector<int64_t>& output_rows,
                  const std::vector<int64_t>& input_rows) override;
  void broadcast(at::Tensor& tensor, GroupRank source) override;
  void send(const at::Tensor& tensor, GroupRank destination, int tag) override;
  void recv(at::Tensor& tensor, GroupRank source, int tag) override;
  void barrier() override;

 private:
  std::unique_ptr<ShmSession> session_;
};

}  // namespace headway
