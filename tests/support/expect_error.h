#pragma once

#include <gmock/gmock.h>

#include <string>

namespace headway::test {

/// The text of the `Exception` that `call` throws; a failure, and "", if it throws none or another.
template <typename Exception, typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception was thrown: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// Matches a text that holds every one of `parts`.
template <typename... Parts>
auto HasAll(Parts... parts) {
  return ::testing::AllOf(::testing::HasSubstr(std::string(parts))...);
}

}  // namespace headway::test
