#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace headway {

/// Runs `call` on a thread of its own and returns its result, or nothing if it is not back within `limit`. It is then
/// left behind, so it must own all that it uses.
template <typename Call>
auto call_within(std::chrono::milliseconds limit, Call call) {
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto future = task.get_future();
  std::thread worker(std::move(task));
  const bool late = future.wait_for(limit) == std::future_status::timeout;
  late ? worker.detach() : worker.join();
  using Result = std::invoke_result_t<Call>;
  return late ? std::optional<Result>() : std::optional<Result>(future.get());
}

}  // namespace headway
