// Names of modules against the regular expressions of a checkpoint's rules, as Python's re.match takes them: anchored at the front only.
#pragma once
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <map>

#include "checkpoint.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

class Patterns {
 public:
  // Fails where the pattern is none, or takes too long.
  bool match(const std::string& pattern, const std::string& name) {
    const std::lock_guard lock{mutex_};
    const Code& code = compiled(pattern);
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data{pcre2_match_data_create(1, nullptr),
                                                                                   &pcre2_match_data_free};
    const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{pcre2_match_context_create(nullptr),
                                                                                           &pcre2_match_context_free};
    if (data == nullptr || limits == nullptr) throw std::bad_alloc{};
    pcre2_set_match_limit(limits.get(), 100000);
    const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0, data.get(), limits.get());
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
      wrong("quantization_config: the pattern \"" + pattern + "\" cannot be matched with " + name);
    return found >= 0;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  using Code = std::unique_ptr<pcre2_code, Free>;
  const Code& compiled(const std::string& pattern) {
    Code& code = codes_[pattern];
    int error = 0;
    PCRE2_SIZE at = 0;
    if (code == nullptr)
      code.reset(
          pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED | PCRE2_UTF, &error, &at, nullptr));
    if (code == nullptr) wrong("quantization_config: \"" + pattern + "\" is no regular expression (at " + std::to_string(at) + ")");
    return code;
  }
  std::mutex mutex_;
  std::map<std::string, Code> codes_;
};

inline bool name_matches(const std::string& pattern, const std::string& name) {
  static Patterns patterns;
  return patterns.match(pattern, name);
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
