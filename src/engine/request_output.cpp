#include "headway/engine/request_output.h"

namespace headway {

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::error:
      return "error";
  }
  return "unknown";
}

}  // namespace headway
