#pragma once

namespace headway::kernels::simd {
namespace {

/// e^x to about 1 unit in the last place of fp32; 0 below -87.3, e^88 above 88, and NaN of NaN.
template <class V>
inline typename V::Reg exponential(typename V::Reg x) {
  using Reg = typename V::Reg;
  const Reg lowest = V::set1(-87.33654f);
  const Reg bounded = V::min(V::set1(88.0f), V::max(lowest, x));
  const Reg n = V::round(V::mul(bounded, V::set1(1.44269504f)));
  // ln 2 in two parts, so that n * ln 2 is subtracted exactly.
  Reg r = V::multiply_add(n, V::set1(-0.693359375f), bounded);
  r = V::multiply_add(n, V::set1(2.12194440e-4f), r);
  Reg p = V::set1(1.9875691500e-4f);  // minimax on [-ln 2 / 2, ln 2 / 2]
  p = V::multiply_add(p, r, V::set1(1.3981999507e-3f));
  p = V::multiply_add(p, r, V::set1(8.3334519073e-3f));
  p = V::multiply_add(p, r, V::set1(4.1665795894e-2f));
  p = V::multiply_add(p, r, V::set1(1.6666665459e-1f));
  p = V::multiply_add(p, r, V::set1(5.0000001201e-1f));
  const Reg result = V::scale(V::add(V::multiply_add(V::mul(p, r), r, r), V::set1(1.0f)), n);
  return V::zero_below(x, lowest, result);
}

}  // namespace
}  // namespace headway::kernels::simd
