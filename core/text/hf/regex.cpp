#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/hf/regex.hpp"

#include <pcre2.h>

#include "base/text.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text::hf {

namespace {

struct Delete {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

struct MatchScratch::Impl {
  std::unique_ptr<pcre2_match_data, Delete> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Delete> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Delete> stack;

  // Alternatives under a repeat need a little of the stack for every turn: long runs outgrow the default.
  bool grow() {
    constexpr std::size_t kFirst = std::size_t{1} << 16, kMost = std::size_t{1} << 28;
    if (stack != nullptr) return false;
    stack.reset(pcre2_jit_stack_create(kFirst, kMost, nullptr));
    if (stack == nullptr) return false;
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return true;
  }
};

MatchScratch::MatchScratch() : impl_(std::make_unique<Impl>()) {}
MatchScratch::~MatchScratch() = default;

struct Regex::Impl {
  std::unique_ptr<pcre2_code, Delete> code;  // null: a literal
  bool jit = false;
  std::string literal;
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Regex Regex::literal(std::string text) {
  auto impl = std::make_unique<Impl>();
  impl->literal = std::move(text);
  return Regex{std::move(impl)};
}

std::string_view Regex::literal_text() const { return impl_->literal; }

Result<Regex> Regex::compile(std::string_view oniguruma, std::string_view where) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  const std::string named = std::string{where} + ": the pattern " + quoted(oniguruma);
  if (oniguruma.size() > kLongest) return invalid(named + " has more than 1 MiB");
  auto translated = translate_pattern(oniguruma);
  if (!translated) return std::move(translated.status()).in(named);
  const std::unique_ptr<pcre2_compile_context, Delete> context{pcre2_compile_context_create(nullptr)};
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 250);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto impl = std::make_unique<Impl>();
  impl->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get()));
  if (impl->code == nullptr) {
    PCRE2_UCHAR message[200];
    pcre2_get_error_message(error, message, sizeof message);
    return invalid(named + ", for PCRE2 " + quoted(std::string_view{*translated}.substr(offset < 20 ? 0 : offset - 20)) + ": " +
                   reinterpret_cast<const char*>(message));
  }
  impl->jit = pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE) == 0;  // not on every CPU, and then slower
  return Regex{std::move(impl)};
}

Regex::Match Regex::search(std::string_view text, std::size_t from, MatchScratch& scratch) const {
  if (impl_->code == nullptr) {
    const std::size_t at = text.find(impl_->literal, from);
    return at == std::string_view::npos ? Match{} : Match{at, at + impl_->literal.size(), true};
  }
  MatchScratch::Impl& own = *scratch.impl_;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (impl_->jit) {
    do found = pcre2_jit_match(impl_->code.get(), subject, text.size(), from, 0, own.data.get(), own.context.get());
    while (found == PCRE2_ERROR_JIT_STACKLIMIT && own.grow());
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found =
        pcre2_match(impl_->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, own.data.get(), own.context.get());
  if (found < 0) {
    if (found != PCRE2_ERROR_NOMATCH)
      throw TextRefused{"has a pattern that gives up on this text (PCRE2 error " + std::to_string(found) + ")"};
    return {};
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(own.data.get());
  return {ends[0], std::max(ends[0], ends[1]), true};
}

std::size_t Regex::after_character(std::string_view text, std::size_t at) {
  if (at >= text.size()) return at + 1;
  next_code_point(text, at);
  return at;
}

}  // namespace mekik::text::hf
