#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "headway/base/error.h"
#include "headway/weights/weight_loader.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using test::HasAll;

/// Every element distinct: W[i][j] = first + 1000 * i + j.
at::Tensor distinct(int64_t rows, int64_t columns, double first = 0) {
  return at::arange(rows, at::kFloat).mul(1000).unsqueeze(1).add(at::arange(columns, at::kFloat)).add(first);
}

Parameter allotted(std::vector<int64_t> shape, std::vector<TensorSlice> slices, c10::ScalarType dtype = c10::kFloat) {
  Parameter parameter{"weight", shape, std::move(slices), at::full(shape, -1, dtype)};
  return parameter;
}

std::vector<float> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(c10::kFloat).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

/// Rows of the q, k and v sections that rank `rank` of 2 holds, of 4 query and 2 KV heads of one row each.
Parameter qkv_of_rank(int64_t rank, const std::vector<int64_t>& row_shape) {
  const auto shape = [&](int64_t rows) {
    std::vector<int64_t> full{rows};
    full.insert(full.end(), row_shape.begin(), row_shape.end());
    return full;
  };
  return allotted(shape(4), {{"q", shape(4), 0, {2 * rank, 2 * rank + 2}, 0, 0},
                             {"k", shape(2), 0, {rank, rank + 1}, 2, 4},
                             {"v", shape(2), 0, {rank, rank + 1}, 3, 6}});
}

TEST(LoadSection, CutsRowsAndColumns) {
  Parameter rows = allotted({3, 5}, {{"", {7, 5}, 0, {2, 5}, 0, 0}});
  load_section(rows, distinct(7, 5));
  EXPECT_TRUE(rows.tensor.equal(distinct(7, 5).narrow(0, 2, 3)));
  Parameter columns = allotted({7, 2}, {{"", {7, 5}, 1, {3, 5}, 0, 0}});
  load_section(columns, distinct(7, 5));
  EXPECT_TRUE(columns.tensor.equal(distinct(7, 5).narrow(1, 3, 2)));
}

TEST(LoadSection, PlacesEachSectionAtItsOffset) {
  for (int64_t rank : {0, 1}) {
    Parameter parameter = qkv_of_rank(rank, {3});
    const at::Tensor q = distinct(4, 3), k = distinct(2, 3, 0.25), v = distinct(2, 3, 0.5);
    load_section(parameter, v, "v");
    load_section(parameter, q, "q");
    load_section(parameter, k, "k");
    const at::Tensor expected = at::cat({q.narrow(0, 2 * rank, 2), k.narrow(0, rank, 1), v.narrow(0, rank, 1)});
    EXPECT_TRUE(parameter.tensor.equal(expected)) << "rank " << rank;
  }
}

// Fault case B06: a fused tensor is cut section by section.
TEST(LoadSection, CutsAFusedTensorSectionBySection) {
  Parameter rank0 = qkv_of_rank(0, {});
  Parameter rank1 = qkv_of_rank(1, {});
  load_section(rank0, at::arange(8, at::kFloat));
  load_section(rank1, at::arange(8, at::kFloat));
  EXPECT_THAT(values(rank0.tensor), ::testing::ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(values(rank1.tensor), ::testing::ElementsAre(2, 3, 5, 7));
}

TEST(LoadSection, ConvertsTheDtype) {
  Parameter parameter = allotted({2}, {{"", {3}, 0, {1, 3}, 0, 0}}, c10::kBFloat16);
  load_section(parameter, at::tensor({1.0, 2.5, -3.0}).to(at::kHalf));
  EXPECT_THAT(values(parameter.tensor), ::testing::ElementsAre(2.5, -3.0));
}

TEST(LoadSection, AnEmptyShardIsLegal) {
  Parameter parameter = allotted({0, 5}, {{"", {3, 5}, 0, {3, 3}, 0, 0}});
  EXPECT_NO_THROW(load_section(parameter, distinct(3, 5)));
}

TEST(LoadSection, RefusesWhatDoesNotFit) {
  const auto refusal = [](Parameter parameter, const at::Tensor& full, const std::string& section) {
    return test::error_of<ArgumentError>([&] { load_section(parameter, full, section); });
  };
  EXPECT_THAT(refusal(qkv_of_rank(0, {3}), distinct(4, 3), "gate"), HasAll("\"gate\"", "\"q\", \"k\", \"v\""));
  EXPECT_THAT(refusal(qkv_of_rank(0, {3}), distinct(2, 3), "q"), HasAll("weight", "\"q\"", "[4, 3]", "[2, 3]"));
  EXPECT_THAT(refusal(qkv_of_rank(0, {3}), distinct(4, 3), ""), HasAll("[8, 3]", "[4, 3]"));
  Parameter without_memory = qkv_of_rank(0, {3});
  without_memory.tensor = at::Tensor();
  EXPECT_THAT(refusal(without_memory, distinct(4, 3), "q"), HasAll("no memory"));
  Parameter too_small = qkv_of_rank(0, {3});
  too_small.slices[2].offset = 4;
  EXPECT_THAT(refusal(too_small, distinct(4, 3), "q"), HasAll("[4, 3]", "[0, 1)", "at 4"));
}

}  // namespace
}  // namespace headway
