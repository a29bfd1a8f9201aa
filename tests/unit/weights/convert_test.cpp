#include "weights/convert.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace headway {
namespace {

struct Floating {
  DType dtype;
  c10::ScalarType scalar_type;
};

constexpr Floating kFloating[] = {{DType::F32, c10::kFloat}, {DType::F16, c10::kHalf}, {DType::BF16, c10::kBFloat16}};

/// All values of a 16-bit dtype; of fp32 all values of its upper half with several lower halves, ties among them.
at::Tensor all_bit_patterns(c10::ScalarType dtype) {
  const at::Tensor upper = at::arange(65536, at::kInt).to(at::kShort);
  if (dtype != c10::kFloat) return upper.view(dtype);
  std::vector<at::Tensor> patterns;
  for (const int64_t lower : {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff}) {
    patterns.push_back(at::arange(65536, at::kLong).mul(65536).add(lower).to(at::kInt));
  }
  return at::cat(patterns).view(c10::kFloat);
}

/// What the converter makes of `source`, read from an address that is not a multiple of its element size.
at::Tensor converted(const at::Tensor& source, DType from, c10::ScalarType to) {
  const auto bytes = static_cast<size_t>(source.nbytes());
  const std::string shifted = "x" + std::string(static_cast<const char*>(source.data_ptr()), bytes);
  const at::Tensor target = at::empty(source.sizes(), at::TensorOptions(to));
  converter_between(from, to)(reinterpret_cast<const std::byte*>(shifted.data()) + 1,
                              static_cast<std::byte*>(target.data_ptr()), source.numel());
  return target;
}

TEST(Convert, EveryPairAgreesWithTensorConversionOnEveryValue) {
  for (const auto& [from, from_type] : kFloating) {
    const at::Tensor source = all_bit_patterns(from_type);
    for (const auto& [to, to_type] : kFloating) {
      const at::Tensor got = converted(source, from, to_type), expected = source.to(to_type);
      EXPECT_TRUE(got.isnan().equal(expected.isnan())) << name_of(from) << " to " << name_of(to);
      const at::Tensor numbers = expected.isnan().logical_not();
      EXPECT_TRUE(got.masked_select(numbers).equal(expected.masked_select(numbers)))
          << name_of(from) << " to " << name_of(to);
      EXPECT_TRUE(got.signbit().masked_select(numbers).equal(expected.signbit().masked_select(numbers)))
          << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(Convert, ShortRunsWriteNoMoreThanTheirElements) {
  for (int64_t count = 0; count <= 70; ++count) {
    const at::Tensor source = at::arange(1, count + 1, at::kFloat).to(c10::kHalf);
    const at::Tensor target = at::empty({count + 1}, at::TensorOptions(c10::kBFloat16)).fill_(-1);
    converter_between(DType::F16, c10::kBFloat16)(static_cast<const std::byte*>(source.data_ptr()),
                                                  static_cast<std::byte*>(target.data_ptr()), count);
    EXPECT_TRUE(target.narrow(0, 0, count).equal(source.to(c10::kBFloat16))) << count;
    EXPECT_EQ(target[count].item<float>(), -1.0f) << count;
  }
}

TEST(Convert, OtherDtypesHaveNoConverter) {
  EXPECT_EQ(converter_between(DType::I8, c10::kFloat), nullptr);
  EXPECT_EQ(converter_between(DType::F64, c10::kFloat), nullptr);
  EXPECT_EQ(converter_between(DType::F32, c10::kInt), nullptr);
}

}  // namespace
}  // namespace headway
