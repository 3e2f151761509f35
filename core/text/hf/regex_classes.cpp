#include "text/hf/regex_classes.hpp"

#include <array>
#include <span>
#include <utility>

#include "text/hf/unicode.hpp"

namespace mekik::text::hf {

namespace {

std::string code_point(char32_t c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string digits;
  for (char32_t left = c; left != 0 || digits.empty(); left >>= 4) digits.insert(digits.begin(), kDigits[left & 15]);
  return "\\x{" + digits + "}";
}

// What [[:word:]] is; \w has more of Latin-1.
std::string word_class() { return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}" + later("L") + later("M") + later("Nd") + later("Pc"); }

}  // namespace

std::string later(std::string_view category) {
  std::string out;
  for (const std::string_view one : {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc",
                                     "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Cf"}) {
    if (one != category && !(category.size() == 1 && one[0] == category[0])) continue;
    const std::span<const char32_t> edges = later_category(one);
    for (std::size_t i = 0; i + 1 < edges.size(); i += 2) out += code_point(edges[i]) + "-" + code_point(edges[i + 1] - 1);
  }
  return out;
}

std::string word() { return word_class() + "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"; }

std::string_view short_category(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 38> kNames{{{"letter", "L"},
                                                                                  {"uppercaseletter", "Lu"},
                                                                                  {"lowercaseletter", "Ll"},
                                                                                  {"titlecaseletter", "Lt"},
                                                                                  {"modifierletter", "Lm"},
                                                                                  {"otherletter", "Lo"},
                                                                                  {"mark", "M"},
                                                                                  {"combiningmark", "M"},
                                                                                  {"nonspacingmark", "Mn"},
                                                                                  {"spacingmark", "Mc"},
                                                                                  {"enclosingmark", "Me"},
                                                                                  {"number", "N"},
                                                                                  {"punct", "P"},
                                                                                  {"decimalnumber", "Nd"},
                                                                                  {"letternumber", "Nl"},
                                                                                  {"othernumber", "No"},
                                                                                  {"punctuation", "P"},
                                                                                  {"connectorpunctuation", "Pc"},
                                                                                  {"dashpunctuation", "Pd"},
                                                                                  {"openpunctuation", "Ps"},
                                                                                  {"closepunctuation", "Pe"},
                                                                                  {"initialpunctuation", "Pi"},
                                                                                  {"finalpunctuation", "Pf"},
                                                                                  {"otherpunctuation", "Po"},
                                                                                  {"symbol", "S"},
                                                                                  {"mathsymbol", "Sm"},
                                                                                  {"currencysymbol", "Sc"},
                                                                                  {"modifiersymbol", "Sk"},
                                                                                  {"othersymbol", "So"},
                                                                                  {"separator", "Z"},
                                                                                  {"spaceseparator", "Zs"},
                                                                                  {"lineseparator", "Zl"},
                                                                                  {"paragraphseparator", "Zp"},
                                                                                  {"other", "C"},
                                                                                  {"control", "Cc"},
                                                                                  {"format", "Cf"},
                                                                                  {"privateuse", "Co"},
                                                                                  {"unassigned", "Cn"}}};
  for (const auto& [from, to] : kNames)
    if (from == name) return to;
  return {};
}

std::string named_property(std::string_view raw, std::string_view name) {
  constexpr std::array kBinary{"asciihexdigit",
                               "cased",
                               "caseignorable",
                               "dash",
                               "defaultignorablecodepoint",
                               "diacritic",
                               "emoji",
                               "emojicomponent",
                               "emojimodifier",
                               "emojimodifierbase",
                               "emojipresentation",
                               "extendedpictographic",
                               "extender",
                               "graphemebase",
                               "graphemeextend",
                               "hexdigit",
                               "idcontinue",
                               "idstart",
                               "ideographic",
                               "joincontrol",
                               "math",
                               "quotationmark",
                               "radical",
                               "regionalindicator",
                               "sentenceterminal",
                               "terminalpunctuation",
                               "unifiedideograph",
                               "variationselector",
                               "xidcontinue",
                               "xidstart"};
  for (const std::string_view binary : kBinary)
    if (name == binary) return "\\p{" + std::string{raw} + "}";
  if (name == "han") return "\\p{sc:Han}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}";
  return "\\p{sc:" + std::string{raw} + "}";
}

std::string posix_class(std::string_view name) {
  if (name == "alpha" || name == "alphabetic") return "\\p{Alphabetic}" + later("L");
  if (name == "alnum") return "\\p{Alphabetic}\\p{Nd}" + later("L") + later("Nd");
  if (name == "digit") return "\\p{Nd}" + later("Nd");
  if (name == "upper" || name == "uppercase") return "\\p{Uppercase}" + later("Lu");
  if (name == "lower" || name == "lowercase") return "\\p{Lowercase}" + later("Ll");
  if (name == "punct") return "\\p{P}\\p{S}" + later("P") + later("S");
  if (name == "space" || name == "whitespace") return std::string{kSpaces};
  if (name == "blank") return "\\t\\p{Zs}";
  if (name == "cntrl") return "\\p{Cc}";
  if (name == "xdigit") return "0-9A-Fa-f";
  if (name == "word") return word_class();
  if (name == "ascii") return "\\x00-\\x7F";
  if (name == "any") return "\\x{0}-\\x{10FFFF}";
  return {};
}

}  // namespace mekik::text::hf
