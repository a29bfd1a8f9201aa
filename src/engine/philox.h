#pragma once

#include <array>
#include <cstdint>

namespace headway {

/// Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random bits as a
/// pure function of a counter and a key. A draw depends on nothing that was drawn before it.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The `index`-th number in [0, 1) of the sequence that `seed` names, with 53 random bits.
double uniform_at(uint64_t seed, uint64_t index);

}  // namespace headway
