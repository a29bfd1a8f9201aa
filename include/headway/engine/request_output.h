#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// Names a request within one engine; later requests have larger ones.
using RequestId = uint64_t;

/// Why a request ended: an end-of-sequence token, a limit in length, or logits that no token can be chosen from.
enum class FinishReason { stop, length, error };

/// "stop", "length", "error".
std::string_view name_of(FinishReason reason);

/// What one step brought a request.
struct RequestOutput {
  RequestId request = 0;
  std::vector<int32_t> token_ids;             ///< the new ones; the end-of-sequence token is among them
  std::optional<FinishReason> finish_reason;  ///< set on a request's last output
  std::string error;                          ///< what went wrong, with FinishReason::error
};

}  // namespace headway
