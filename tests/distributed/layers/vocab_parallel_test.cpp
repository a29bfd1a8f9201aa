#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/weights/weight_loader.h"

namespace headway {
namespace {

using testing::sequence_matrix;

const ParallelState& state() {
  return testing::parallel_state(testing::world_size());
}

// Fault cases A09 and A12: any vocabulary; embedding and LM head of one group hold the same rows.
TEST(VocabParallel, AnyVocabularyIsCutOnceAndGatheredWhole) {
  for (int64_t vocab : {1, 2, 5, 320, 321, 1000}) {
    VocabParallelEmbedding embedding(state().tp(), vocab, 3);
    ParallelLMHead head(state().tp(), vocab, 3);
    EXPECT_EQ(embedding.local_rows(), head.local_rows());
    testing::allocate(embedding);
    testing::allocate(head);
    load_section(*embedding.weight(), sequence_matrix(vocab, 3));
    load_section(head.own_parameter("weight"), sequence_matrix(vocab, 3, 0.5));
    const at::Tensor ids = testing::on_device(at::tensor({vocab - 1, int64_t{0}, vocab / 2}));
    EXPECT_TRUE(embedding.forward(ids).equal(sequence_matrix(vocab, 3).index_select(0, ids)));
    const at::Tensor hidden = testing::random_matrix(2, 3, 9);
    const at::Tensor logits = head.forward(hidden);
    ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{2, vocab}));
    EXPECT_TRUE(logits.allclose(at::linear(hidden, sequence_matrix(vocab, 3, 0.5)), 1e-5, 1e-2));
  }
}

// Fault case A10: no padded row can win where all real logits are negative.
TEST(VocabParallel, NothingPaddedWinsOverNegativeLogits) {
  ParallelLMHead head(state().tp(), 5, 1);
  testing::allocate(head);
  load_section(head.own_parameter("weight"), testing::values({-5, -4, -3, -2, -1}).view({5, 1}));
  const at::Tensor logits = head.forward(testing::values({1}).view({1, 1}));
  EXPECT_TRUE(logits.equal(testing::values({-5, -4, -3, -2, -1}).view({1, 5})));
  EXPECT_EQ(logits.argmax().item<int64_t>(), 4);
  EXPECT_NEAR(logits.softmax(1).sum().item<double>(), 1.0, 1e-6);
}

TEST(VocabParallel, ATiedHeadReadsTheEmbeddingsMemory) {
  VocabParallelEmbedding embedding(state().tp(), 321, 4);
  ParallelLMHead head(embedding);
  testing::allocate(embedding);
  load_section(*embedding.weight(), sequence_matrix(321, 4));
  EXPECT_EQ(head.own_parameter("weight").tensor.data_ptr(), embedding.weight()->tensor.data_ptr());
  const at::Tensor hidden = testing::random_matrix(3, 4, 5);
  EXPECT_TRUE(head.forward(hidden).allclose(at::linear(hidden, sequence_matrix(321, 4)), 1e-5, 1e-2));
}

TEST(VocabParallel, RefusesAnIdOutsideTheVocabulary) {
  if (!testing::device().is_cpu()) GTEST_SKIP() << "ids on a GPU are not checked: to read them would stall it";
  VocabParallelEmbedding embedding(state().tp(), 320, 2);
  testing::allocate(embedding);
  load_section(*embedding.weight(), sequence_matrix(320, 2));
  for (int64_t bad : {int64_t{320}, int64_t{-1}}) {
    try {
      embedding.forward(testing::on_device(at::tensor({int64_t{0}, bad})));
      FAIL() << "id " << bad << " was accepted";
    } catch (const ArgumentError& error) {
      EXPECT_EQ(std::string(error.what()), "token id " + std::to_string(bad) + " is outside the vocabulary of 320");
    }
  }
}

}  // namespace
}  // namespace headway
