#pragma once

#include <string_view>

namespace headway {

/// The page of `headway plan --html` with its style and script in place, and @TITLE@ and @DATA@ to be filled. Made
/// from src/plan/page/ by the build.
extern const std::string_view kPlanPage;

}  // namespace headway
