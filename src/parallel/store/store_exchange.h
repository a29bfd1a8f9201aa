#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headway {

class JobStore;

/// One place of several.
struct Seat {
  int index = 0;
  int count = 1;
};

/// Gives the text of each of `seat.count` processes to all of them, in the order of their seats. `key` names this
/// exchange and no other. Throws LaunchError naming the key and the missing seats when `limit` is over.
std::vector<std::string> exchange_texts(JobStore& store, const std::string& key, const std::string& own, Seat seat,
                                        std::chrono::milliseconds limit);

}  // namespace headway
