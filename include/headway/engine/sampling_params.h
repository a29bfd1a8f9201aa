#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headway {

/// How the next token is chosen.
struct SamplingParams {
  double temperature = 0.0;      ///< 0 is greedy
  double top_p = 1.0;            ///< in (0, 1]
  int64_t top_k = 0;             ///< 0 or -1: off
  std::optional<uint64_t> seed;  ///< absent: rank 0 draws one
  int64_t max_tokens = 16;       ///< new tokens at most
  bool ignore_eos = false;

  /// Throws ArgumentError naming the parameter, its value and what is legal.
  void validate() const;
};

}  // namespace headway
