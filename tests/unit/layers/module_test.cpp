#include "headway/layers/module.h"

#include <gtest/gtest.h>

#include "headway/layers/linear.h"
#include "headway/parallel/parallel_state.h"

namespace headway {
namespace {

class Leaf : public Module {
 public:
  Leaf(int64_t rows, std::shared_ptr<Parameter> shared = nullptr) {
    weight = shared ? shared : parameter("weight", {rows, 2}, {{"", {rows, 2}, 0, {0, rows}}});
    if (shared) share_parameter(shared);
  }
  std::shared_ptr<Parameter> weight;
};

class OtherLeaf : public Leaf {
 public:
  OtherLeaf() : Leaf(7) {}
};

class Tree : public Module {
 public:
  Tree() {
    child<Leaf>("first", first, 3);
    child<Leaf>("second", second, 5);
    child<Leaf>("tied", tied, 0, first->weight);
  }
  std::shared_ptr<Leaf> first;
  std::shared_ptr<Leaf> second;
  std::shared_ptr<Leaf> tied;
};

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> found;
  for (const auto& named : module.named_parameters("root")) found.push_back(named.full_name);
  return found;
}

TEST(Module, ListsParametersInOrderAndSharedOnesOnce) {
  EXPECT_EQ(names(Tree()), (std::vector<std::string>{"root.first.weight", "root.second.weight"}));
}

TEST(Module, ListsModulesWithTheirNames) {
  Tree tree;
  const auto modules = tree.named_modules();
  ASSERT_EQ(modules.size(), 4u);
  EXPECT_EQ(modules[0].second, &tree);
  EXPECT_EQ(modules[2].first, "second");
  EXPECT_EQ(modules[2].second, tree.second.get());
}

TEST(Module, AllotsEveryParameterAndCountsSharedBytesOnce) {
  Tree tree;
  allocate_parameters(tree, at::kBFloat16);
  EXPECT_EQ(tree.second->weight->tensor.sizes(), (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(tree.second->weight->tensor.scalar_type(), at::kBFloat16);
  EXPECT_EQ(tree.tied->weight->tensor.data_ptr(), tree.first->weight->tensor.data_ptr());
  EXPECT_EQ(parameter_bytes(tree), (3 * 2 + 5 * 2) * 2);
}

TEST(Module, AReplacedChildIsWhatTheParentCalls) {
  Tree tree;
  const auto replacement = std::make_shared<OtherLeaf>();
  tree.replace_child("second", replacement);
  EXPECT_EQ(tree.second, replacement);
  EXPECT_EQ(tree.named_modules()[2].second, replacement.get());
}

TEST(Module, RefusesAReplacementOfAnotherTypeOrName) {
  Tree tree;
  const auto before = tree.second;
  EXPECT_THROW(tree.replace_child("second", std::make_shared<Tree>()), ArgumentError);
  EXPECT_THROW(tree.replace_child("third", std::make_shared<Leaf>(1)), ArgumentError);
  EXPECT_EQ(tree.second, before);
  EXPECT_EQ(tree.named_modules()[2].second, before.get());
}

TEST(Module, NamesTheParameterThatIsMissing) {
  const auto state = ParallelState::single();
  const ColumnParallelLinear layer(state->tp(), 2, 3, {.bias = false});
  try {
    layer.own_parameter("bias");
    FAIL() << "a layer without bias handed one out";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "the module has no parameter \"bias\"");
  }
}

}  // namespace
}  // namespace headway
