#include "parallel/shm/shm_communicator.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

/// Runs `body` with a communicator in each of two processes.
std::vector<Outcome> run_communicators(const std::function<void(ShmCommunicator& communicator, int rank)>& body) {
  ForkExchange exchange(2);
  return run_members(exchange, 2, [&](const GroupMember& member, const StringExchange& strings) {
    at::set_num_threads(1);
    auto joined = ShmSession::join(member, {.timeout = std::chrono::seconds(10), .local_ranks = 2}, strings);
    require(joined.session != nullptr, joined.refusal);
    ShmCommunicator communicator(std::move(joined.session));
    body(communicator, member.self.value);
  });
}

void require_text(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
  } catch (const ArgumentError& error) {
    for (const std::string& part : parts) {
      require(std::string(error.what()).find(part) != std::string::npos,
              std::string("misses ") + part + ": " + error.what());
    }
    return;
  }
  require(false, "accepted");
}

TEST(ShmCommunicator, MovesElementsOfAnyType) {
  expect_all_well(run_communicators([](ShmCommunicator& communicator, int rank) {
    for (at::ScalarType dtype : {at::kBool, at::kComplexDouble, at::kFloat8_e4m3fn, at::kShort}) {
      const at::Tensor own = at::full({3, 1}, rank).to(dtype);
      at::Tensor all = at::empty({2, 3, 1}, own.options());
      communicator.all_gather(all, own);
      for (int r = 0; r < 2; ++r)
        require(at::equal(all[r].to(at::kComplexDouble), at::full({3, 1}, r).to(at::kComplexDouble)),
                "gathered wrongly");
    }
  }));
}

TEST(ShmCommunicator, RefusesBeforeAnythingIsSent) {
  expect_all_well(run_communicators([](ShmCommunicator& communicator, int) {
    at::Tensor flags = at::ones({2}, at::kBool);
    require_text([&] { communicator.all_reduce(flags); }, {"Bool", "cannot be summed"});
    at::Tensor transposed = at::ones({2, 3}).t();
    require_text([&] { communicator.all_reduce(transposed); }, {"all_reduce", "contiguous CPU tensor"});
    at::Tensor three = at::ones({3});
    require_text([&] { communicator.all_gather(three, three); }, {"all_gather over 2 members", "3 elements of Float"});
    at::Tensor six = at::ones({6}, at::kDouble);
    require_text([&] { communicator.reduce_scatter(three, six); },
                 {"reduce_scatter over 2 members", "6 elements of Double", "3 of Float"});
    require_text(
        [&] {
          communicator.all_to_all(six, six, {3, 3}, {3, 4});
        },
        {"all_to_all over 2 members", "sum of 7", "6 rows"});
    require_text([&] { communicator.all_to_all(six, six, {6}, {3, 3}); }, {"1 sizes"});
    communicator.barrier();  // still of use
  }));
}

}  // namespace
}  // namespace headway::testing
