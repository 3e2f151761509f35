// Classes of characters by Oniguruma's names, as what may stand between PCRE2's brackets.
#pragma once
#include <string>
#include <string_view>

namespace mekik::text::hf {

inline constexpr std::string_view kSpaces = "\\t-\\r\\x{85}\\p{Z}";  // \s

// What joined a category, or a group of them ("L"), since PCRE2's version of Unicode.
std::string later(std::string_view category);
std::string word();  // \w
// PCRE2's name of a category that is written out ("letter"), without case, spaces, hyphens and underscores; or nothing.
std::string_view short_category(std::string_view name);
// The inside of a class for another property, a script as a rule (PCRE2 alone would take what several scripts share for each of
// them). `raw` is spelled as in the pattern, `name` without case, spaces, hyphens and underscores.
std::string named_property(std::string_view raw, std::string_view name);
// The inside of a class for a POSIX bracket or a property of the same name; empty: no such name.
std::string posix_class(std::string_view name);

}  // namespace mekik::text::hf
