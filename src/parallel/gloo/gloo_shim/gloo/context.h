// What c10d's ProcessGroupGloo.hpp names of Gloo, whose headers the torch wheel leaves out. Nothing here is defined by
// Headway or held by value: the library behind ProcessGroupGloo defines and owns these types.
#pragma once

#include <chrono>

namespace gloo {

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
