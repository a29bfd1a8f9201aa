#include "tokenizer/regex.h"

#include <fmt/format.h>

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "headway/base/error.h"

namespace headway {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

/// What a thread needs to run matches.
struct MatchState {
  std::unique_ptr<pcre2_match_data, Free> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free> jit_stack{pcre2_jit_stack_create(32 << 10, 1 << 20, nullptr)};

  MatchState() {
    if (data == nullptr || context == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, jit_stack.get());
  }
};

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct Regex::Impl {
  std::unique_ptr<pcre2_code, Free> code;
};

Regex::Regex(const std::string& pattern, std::string_view source) : impl_(std::make_unique<Impl>()) {
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE position = 0;
  impl_->code.reset(pcre2_compile(units(pattern), pattern.size(), kOptions, &error, &position, nullptr));
  if (impl_->code == nullptr) {
    throw CheckpointError(
        fmt::format("{}: pattern \"{}\" is not valid at byte {}: {}", source, pattern, position, error_text(error)));
  }
  pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE);  // where it fails, matches are interpreted
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<Regex::Match> Regex::find(std::string_view subject, size_t offset) const {
  thread_local const MatchState state;
  const int result = pcre2_match(impl_->code.get(), units(subject), subject.size(), offset, PCRE2_NO_UTF_CHECK,
                                 state.data.get(), state.context.get());
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    throw ArgumentError(
        fmt::format("a text of {} bytes cannot be cut into words: {}", subject.size(), error_text(result)));
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data.get());
  return Match{bounds[0], bounds[1]};
}

}  // namespace headway
