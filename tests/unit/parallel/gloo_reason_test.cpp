#include "parallel/gloo/gloo_reason.h"

#include <gtest/gtest.h>

namespace headway {
namespace {

TEST(GlooReason, IsInOurWordsWhereItIsKnown) {
  const std::pair<const char*, const char*> cases[] = {
      {"[/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:41234. This is typically caused by a "
       "remote worker crashing. Check the logs of the remote worker before reporting an error. GLHF! ",
       "a member closed its connection"},
      {"[/x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete",
       "the time limit of 2000 ms has passed"},
      {"[enforce fail at /x/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 32 vs 16. ",
       "the members sent and expected different numbers of bytes"},
      {"[/x/gloo/transport/tcp/pair.cc:1] Read error [127.0.0.1]:4: Connection reset by peer. GLHF! ",
       "a member closed its connection"}};
  for (const auto& [text, reason] : cases) EXPECT_EQ(gloo_reason(text), reason);
}

TEST(GlooReason, IsGivenWithoutItsSourceFileElse) {
  EXPECT_EQ(gloo_reason("[/x/gloo/context.cc:12] Something new"), "Something new");
  EXPECT_EQ(gloo_reason("[127.0.0.1] refused"), "[127.0.0.1] refused");
  EXPECT_EQ(gloo_reason(""), "");
}

}  // namespace
}  // namespace headway
