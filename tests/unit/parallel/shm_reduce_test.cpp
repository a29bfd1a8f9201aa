#include "parallel/shm/shm_reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "headway/base/error.h"

namespace headway {
namespace {

using ::testing::Combine;
using ::testing::HasSubstr;
using ::testing::Values;

std::vector<VectorIsa> supported_isas() {
  std::vector<VectorIsa> isas;
  for (VectorIsa isa : {VectorIsa::portable, VectorIsa::avx2, VectorIsa::avx512}) {
    if (is_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

/// The sum as PyTorch's own types round it.
template <typename T>
T reference(const std::vector<std::vector<T>>& sources, size_t i) {
  float sum = static_cast<float>(sources[0][i]);
  for (size_t s = 1; s < sources.size(); ++s) sum += static_cast<float>(sources[s][i]);
  return static_cast<T>(sum);
}

template <typename T>
void expect_sums(DType dtype, int count, int64_t elements, VectorIsa isa) {
  std::mt19937 random(count * 1000 + elements);
  std::uniform_real_distribution<float> values(-100, 100);
  std::vector<std::vector<T>> sources(count, std::vector<T>(elements));
  for (auto& source : sources) {
    for (T& value : source) value = static_cast<T>(values(random));
  }
  std::vector<T> expected;
  for (int64_t i = 0; i < elements; ++i) expected.push_back(reference(sources, i));
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  // Onto the last source, as an all-reduce in place would.
  sum_function(dtype, isa)(sources.back().data(), pointers.data(), count, elements);
  for (int64_t i = 0; i < elements; ++i) {
    ASSERT_EQ(std::memcmp(&sources.back()[i], &expected[i], sizeof(T)), 0)
        << name_of(dtype) << " " << name_of(isa) << " at " << i << " of " << elements << ": "
        << static_cast<float>(sources.back()[i]) << " instead of " << static_cast<float>(expected[i]);
  }
}

class SumOf : public ::testing::TestWithParam<std::tuple<int, int64_t>> {};

TEST_P(SumOf, EveryElementHasTheBitsOfTheReference) {
  const auto [count, elements] = GetParam();
  for (VectorIsa isa : supported_isas()) {
    expect_sums<float>(DType::F32, count, elements, isa);
    expect_sums<c10::BFloat16>(DType::BF16, count, elements, isa);
    expect_sums<c10::Half>(DType::F16, count, elements, isa);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SumOf,
                         Combine(Values(1, 2, 3, 8, 64), Values(0, 1, 15, 31, 32, 63, 64, 65, 255, 257, 896)));

/// All 16-bit patterns, including subnormals, infinities and NaNs, through one conversion each way.
TEST(SumRounding, KeepsEvery16BitPatternOnEveryInstructionSet) {
  std::vector<uint16_t> patterns(65536);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  const void* source = patterns.data();
  for (VectorIsa isa : supported_isas()) {
    for (DType dtype : {DType::F16, DType::BF16}) {
      std::vector<uint16_t> result(patterns.size());
      sum_function(dtype, isa)(result.data(), &source, 1, patterns.size());
      for (size_t i = 0; i < patterns.size(); ++i) {
        const uint16_t magnitude = patterns[i] & 0x7fff;
        const uint16_t infinity = dtype == DType::F16 ? 0x7c00 : 0x7f80;
        const uint16_t quiet_bit = dtype == DType::F16 ? 0x0200 : 0x0040;
        const uint16_t expected = magnitude > infinity ? patterns[i] | quiet_bit : patterns[i];
        ASSERT_EQ(result[i], expected) << name_of(dtype) << " " << name_of(isa) << " pattern " << i;
      }
    }
  }
}

/// Sums that fall between two 16-bit values, near every power of two: ties, underflow and overflow.
TEST(SumRounding, RoundsSumsToNearestEvenOnEveryInstructionSet) {
  std::mt19937 random(7);
  constexpr size_t kCount = 200'000;
  for (DType dtype : {DType::F16, DType::BF16}) {
    std::vector<uint16_t> a(kCount), b(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      a[i] = static_cast<uint16_t>(random());
      b[i] = i % 2 == 0 ? static_cast<uint16_t>(random()) : a[i] ^ (random() & 0x0fff);  // of like size
    }
    const void* sources[] = {a.data(), b.data()};
    for (VectorIsa isa : supported_isas()) {
      std::vector<uint16_t> result(kCount);
      sum_function(dtype, isa)(result.data(), sources, 2, kCount);
      for (size_t i = 0; i < kCount; ++i) {
        const auto widen = [&](uint16_t bits) {
          return dtype == DType::F16 ? static_cast<float>(std::bit_cast<c10::Half>(bits))
                                     : static_cast<float>(std::bit_cast<c10::BFloat16>(bits));
        };
        const float sum = widen(a[i]) + widen(b[i]);
        if (std::isnan(sum)) {
          ASSERT_TRUE(std::isnan(widen(result[i])));
          continue;
        }
        const uint16_t expected =
            dtype == DType::F16 ? std::bit_cast<uint16_t>(c10::Half(sum)) : std::bit_cast<uint16_t>(c10::BFloat16(sum));
        ASSERT_EQ(result[i], expected) << name_of(dtype) << " " << name_of(isa) << ": " << a[i] << " + " << b[i];
      }
    }
  }
}

template <typename T>
void expect_integer_sum(DType dtype) {
  const std::vector<T> a{1, std::numeric_limits<T>::max(), 7};
  const std::vector<T> b{2, 1, static_cast<T>(-3)};
  const void* sources[] = {a.data(), b.data()};
  std::vector<T> result(3);
  sum_function(dtype)(result.data(), sources, 2, 3);
  EXPECT_EQ(result, (std::vector<T>{3, std::numeric_limits<T>::min(), 4})) << name_of(dtype);
}

TEST(SumOfIntegers, WrapsAround) {
  expect_integer_sum<uint8_t>(DType::U8);
  expect_integer_sum<int8_t>(DType::I8);
  expect_integer_sum<int16_t>(DType::I16);
  expect_integer_sum<int32_t>(DType::I32);
  expect_integer_sum<int64_t>(DType::I64);
}

TEST(SumOfDoubles, KeepsTheirPrecision) {
  const double a = 1, b = 0x1p-40;
  const void* sources[] = {&a, &b};
  double result = 0;
  sum_function(DType::F64)(&result, sources, 2, 1);
  EXPECT_EQ(result, 1 + 0x1p-40);
}

TEST(SumOfOtherTypes, IsRefusedByName) {
  try {
    sum_function(DType::F8_E4M3);
    FAIL() << "accepted";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("F8_E4M3"));
  }
}

}  // namespace
}  // namespace headway
