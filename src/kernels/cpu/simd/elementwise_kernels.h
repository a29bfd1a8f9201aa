#pragma once

#include <cstdint>

#include "kernels/cpu/simd/math.h"

namespace headway::kernels::simd {
namespace {

template <class V, typename T>
struct Elementwise {
  using Reg = typename V::Reg;

  static void rms_norm(const void* x, void* residual, const void* weight, void* y, int64_t n, float eps) {
    const T* input = static_cast<const T*>(x);
    if (residual != nullptr) {
      add(static_cast<T*>(residual), input, n);
      input = static_cast<const T*>(residual);
    }
    Reg squares = V::zero();
    const auto add_square = [&](Reg value) { squares = V::multiply_add(value, value, squares); };
    for_each_vector(
        n, [&](int64_t i) { add_square(V::load(input + i)); },
        [&](int64_t i, int count) { add_square(V::load_partial(input + i, count)); });
    const Reg factor = V::set1(1.0f / __builtin_sqrtf(V::reduce_add(squares) / static_cast<float>(n) + eps));
    const T* weights = static_cast<const T*>(weight);
    T* output = static_cast<T*>(y);
    for_each_vector(
        n, [&](int64_t i) { V::store(output + i, V::mul(V::mul(V::load(input + i), factor), V::load(weights + i))); },
        [&](int64_t i, int count) {
          const Reg scaled = V::mul(V::load_partial(input + i, count), factor);
          V::store_partial(output + i, V::mul(scaled, V::load_partial(weights + i, count)), count);
        });
  }

  static void silu_and_mul(const void* gate, const void* up, void* y, int64_t n) {
    const T* g = static_cast<const T*>(gate);
    const T* u = static_cast<const T*>(up);
    T* output = static_cast<T*>(y);
    for_each_vector(
        n, [&](int64_t i) { V::store(output + i, V::mul(silu(V::load(g + i)), V::load(u + i))); },
        [&](int64_t i, int count) {
          const Reg activated = silu(V::load_partial(g + i, count));
          V::store_partial(output + i, V::mul(activated, V::load_partial(u + i, count)), count);
        });
  }

  static void rotate_head(void* head, const float* cos, const float* sin, int64_t half) {
    T* first = static_cast<T*>(head);
    T* second = first + half;
    for_each_vector(
        half,
        [&](int64_t i) {
          const Rotated r = rotate(V::load(first + i), V::load(second + i), V::load(cos + i), V::load(sin + i));
          V::store(first + i, r.first);
          V::store(second + i, r.second);
        },
        [&](int64_t i, int n) {
          const Rotated r = rotate(V::load_partial(first + i, n), V::load_partial(second + i, n),
                                   V::load_partial(cos + i, n), V::load_partial(sin + i, n));
          V::store_partial(first + i, r.first, n);
          V::store_partial(second + i, r.second, n);
        });
  }

 private:
  struct Rotated {
    Reg first;
    Reg second;
  };

  template <typename Whole, typename Partial>
  static void for_each_vector(int64_t n, Whole&& whole, Partial&& partial) {
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) whole(i);
    if (i < n) partial(i, static_cast<int>(n - i));
  }

  static void add(T* to, const T* from, int64_t n) {
    for_each_vector(
        n, [&](int64_t i) { V::store(to + i, V::add(V::load(to + i), V::load(from + i))); },
        [&](int64_t i, int count) {
          V::store_partial(to + i, V::add(V::load_partial(to + i, count), V::load_partial(from + i, count)), count);
        });
  }

  static Reg silu(Reg x) {
    const Reg one = V::set1(1.0f);
    return V::div(x, V::add(one, exponential<V>(V::sub(V::zero(), x))));
  }

  static Rotated rotate(Reg first, Reg second, Reg cos, Reg sin) {
    return {V::sub(V::mul(first, cos), V::mul(second, sin)), V::multiply_add(second, cos, V::mul(first, sin))};
  }
};

}  // namespace
}  // namespace headway::kernels::simd
