#include "parallel/store/store_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headway/base/error.h"
#include "parallel/store/job_store.h"

namespace headway {

std::vector<std::string> exchange_texts(JobStore& store, const std::string& key, const std::string& own, Seat seat,
                                        std::chrono::milliseconds limit) {
  const auto key_of = [&](int index) { return fmt::format("{}/{}", key, index); };
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  store.set(key_of(seat.index), own);
  std::vector<std::string> texts;
  std::vector<int> missing;
  for (int i = 0; i < seat.count; ++i) {
    if (store.wait(key_of(i), deadline)) {
      texts.push_back(store.get(key_of(i)));
    } else {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) {
    throw LaunchError(fmt::format("process {} of {}: processes [{}] did not answer to '{}' within {} ms", seat.index,
                                  seat.count, fmt::join(missing, ", "), key, limit.count()));
  }
  return texts;
}

}  // namespace headway
