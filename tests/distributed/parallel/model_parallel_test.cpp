#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway::testing {
namespace {

using test::error_of;

TEST(ModelParallel, NothingIsThereBeforeItIsMade) {
  EXPECT_FALSE(model_parallel_is_initialized());
  EXPECT_EQ(error_of<Error>([] { get_lm_tp_group(); }), "LM head tensor model parallel group is not initialized.");
  EXPECT_EQ(error_of<Error>([] { get_lm_tensor_model_parallel_rank(); }),
            "LM head tensor model parallel group is not initialized.");
  EXPECT_THROW(get_tp_group(), Error);
  EXPECT_THROW(get_world_group(), Error);
  EXPECT_THROW(get_parallel_state(), Error);
  EXPECT_THROW(initialize_model_parallel(1, 1), Error);
}

TEST(ModelParallel, GroupsByTheNamesThatVllmGivesThem) {
  const int size = world_size();
  const int attn_tp = size % 2 == 0 ? size / 2 : 1;
  init_distributed_environment(launch(), options());
  EXPECT_THROW(init_distributed_environment(launch(), options()), Error);
  EXPECT_EQ(get_world_group().size(), size);
  EXPECT_EQ(error_of<Error>([] { get_lm_tp_group(); }), "LM head tensor model parallel group is not initialized.");
  for (int cycle = 0; cycle < 2; ++cycle) {
    initialize_model_parallel(size, attn_tp);
    EXPECT_TRUE(model_parallel_is_initialized());
    EXPECT_THROW(initialize_model_parallel(size, attn_tp), Error);
    EXPECT_EQ(get_tensor_model_parallel_world_size(), size);
    EXPECT_EQ(get_tensor_model_parallel_rank(), global_rank().value);
    EXPECT_EQ(get_lm_tensor_model_parallel_world_size(), attn_tp);
    EXPECT_EQ(get_lm_tensor_model_parallel_rank(), global_rank().value % attn_tp);
    const at::Tensor one = at::ones({2}).to(get_parallel_state().device());
    EXPECT_EQ(get_lm_tp_group().all_reduce(one.clone())[1].item<double>(), attn_tp);
    EXPECT_EQ(get_world_group().all_reduce(one.clone())[1].item<double>(), size);
    ensure_model_parallel_initialized(size, attn_tp);
    EXPECT_THROW(ensure_model_parallel_initialized(size, attn_tp + 1), Error);
    destroy_model_parallel();
    EXPECT_FALSE(model_parallel_is_initialized());
    EXPECT_THROW(get_lm_tp_group(), Error);
  }
  ensure_model_parallel_initialized(size, size);
  EXPECT_EQ(get_lm_tensor_model_parallel_world_size(), size);
  destroy_distributed_environment();
  EXPECT_FALSE(model_parallel_is_initialized());
  EXPECT_THROW(get_world_group(), Error);
}

}  // namespace
}  // namespace headway::testing
