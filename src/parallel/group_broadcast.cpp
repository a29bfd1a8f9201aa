#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "headway/base/error.h"
#include "headway/parallel/group_coordinator.h"
#include "parallel/group_checks.h"

namespace headway {
namespace {

using TensorMap = std::map<std::string, at::Tensor>;

/// Names, dtypes and shapes as CBOR, which takes names of any bytes.
std::string describe(const GroupCoordinator& group, const TensorMap& tensors) {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) {
      throw ArgumentError(fmt::format("broadcast_tensor_dict on {}: '{}' is undefined", place_of(group), name));
    }
    entries.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  std::string bytes;
  nlohmann::json::to_cbor(entries, bytes);
  return bytes;
}

TensorMap empty_tensors(const std::string& description, at::Device device) {
  TensorMap tensors;
  for (const auto& entry : nlohmann::json::from_cbor(description)) {
    const auto options = at::TensorOptions(device).dtype(static_cast<at::ScalarType>(entry[1].get<int>()));
    tensors[entry[0].get<std::string>()] = at::empty(entry[2].get<std::vector<int64_t>>(), options);
  }
  return tensors;
}

}  // namespace

std::string GroupCoordinator::broadcast_object(const std::string& bytes, GroupRank source) const {
  check_member(*this, "broadcast_object", source);
  if (size() == 1) return bytes;
  const at::Device device = communicator_->device();
  int64_t length = static_cast<int64_t>(bytes.size());
  at::Tensor length_tensor = at::from_blob(&length, {1}, at::kLong).to(device);
  length = broadcast(length_tensor, source).item<int64_t>();
  std::string object = rank_ == source ? bytes : std::string(length, '\0');
  if (length == 0) return object;
  const at::Tensor host = at::from_blob(object.data(), {length}, at::kByte);
  host.copy_(broadcast(host.to(device), source));
  return object;
}

TensorMap GroupCoordinator::broadcast_tensor_dict(const TensorMap& tensors, GroupRank source) const {
  check_member(*this, "broadcast_tensor_dict", source);
  if (size() == 1) return tensors;
  const bool is_source = rank_ == source;
  const std::string description = broadcast_object(is_source ? describe(*this, tensors) : "", source);
  TensorMap result = is_source ? tensors : empty_tensors(description, communicator_->device());
  for (auto& [name, tensor] : result) broadcast(tensor, source);
  return result;
}

}  // namespace headway
