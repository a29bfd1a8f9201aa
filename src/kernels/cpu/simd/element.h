#pragma once

#include <cstdint>

// Storage of the element types inside the vector kernels. Those are compiled once per instruction set, so they include
// nothing whose inline functions could be shared with the rest of the program, and live in unnamed namespaces.
namespace headway::kernels::simd {

struct BFloat16 {
  uint16_t bits;
};

struct Float16 {
  uint16_t bits;
};

struct Int8 {
  int8_t value;
};

}  // namespace headway::kernels::simd
