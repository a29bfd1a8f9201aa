#pragma once

#include <cstdint>

namespace headway::test {

/// While it lives, more than 64 MB of heap held at one time ends the process as a crash, so that the fuzzer keeps the
/// input that caused it. One at a time.
class LiveHeapLimit {
 public:
  LiveHeapLimit();
  ~LiveHeapLimit();
  LiveHeapLimit(const LiveHeapLimit&) = delete;
  LiveHeapLimit& operator=(const LiveHeapLimit&) = delete;
};

/// Ends the process as a crash if a property that holds for every accepted input does not.
void require(bool holds, const char* property);

}  // namespace headway::test
