#include "app/command_line.hpp"

#include <charconv>
#include <cstdio>
#include <sstream>

#include "base/text.hpp"

namespace mekik::app {

namespace {

po::options_description described(const Verb& verb) {
  po::options_description options{"options", 100};
  verb.declare(options);
  if (verb.takes_pipeline) {
    options.add_options()  //
        ("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
         "override a key of the pipeline, for instance backend.threads=2; may be repeated")  //
        ("print-config", po::bool_switch(), "print the merged pipeline with where each value comes from, and stop");
  }
  options.add_options()                                                                                     //
      ("log-level", po::value<std::string>()->value_name("LEVEL"), "trace, debug, info, warning or error")  //
      ("help,h", po::bool_switch(), "this text");
  return options;
}

}  // namespace

void Mistakes::add(const Failure& failure) {
  const bool named = failure.as_is || failure.text.starts_with("mekik ");
  text_ += (named ? "" : "mekik: ") + failure.text;
  if (!text_.ends_with('\n')) text_ += '\n';
}

std::string usage(const Verb& verb) {
  std::ostringstream out;
  out << "usage: mekik " << verb.name << (verb.operands[0] ? " " : "") << verb.operands << " [options]\n\n"
      << verb.summary << "\n\n"
      << described(verb) << "\nexample:\n  " << verb.example << "\n";
  return out.str();
}

std::optional<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words) {
  po::options_description all = described(verb);
  all.add_options()("operand", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("operand", -1);
  Arguments arguments;
  arguments.verb = &verb;
  try {
    // No guessing: "--max" is not --max-tokens, since a later option could make it something else.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), arguments.values);
    // Before what is missing is complained about.
    if (arguments.flag("help")) {
      std::fputs(usage(verb).c_str(), stdout);
      return std::nullopt;
    }
    po::notify(arguments.values);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> names;
    const po::options_description known = described(verb);
    for (const auto& option : known.options()) names.push_back("--" + option->long_name());
    const auto near = closest(error.get_option_name(), names);
    throw misused(std::string{"mekik "} + verb.name + " has no option " + error.get_option_name() +
                  (near ? "; did you mean " + *near + "?" : "") + " (mekik " + verb.name + " --help lists them)");
  } catch (const po::error& error) {
    throw misused(std::string{"mekik "} + verb.name + ": " + error.what() + " (mekik " + verb.name + " --help lists its options)");
  }
  if (arguments.has("operand")) arguments.operands = arguments.values["operand"].as<std::vector<std::string>>();
  if (arguments.operands.size() < verb.min_operands)
    throw misused(std::string{"mekik "} + verb.name + " needs " + verb.operands + "\n\n" + usage(verb));
  if (arguments.operands.size() > verb.max_operands)
    throw misused(std::string{"mekik "} + verb.name + ": what is " + mekik::quoted(arguments.operands[verb.max_operands]) + "? It takes " +
                  (verb.operands[0] ? verb.operands : "no operands"));
  return arguments;
}

std::vector<std::int32_t> parse_tokens(const std::string& text) {
  std::vector<std::int32_t> tokens;
  for (const std::string& word : split(text, ',')) {
    std::int32_t id = 0;
    const std::size_t begin = word.find_first_not_of(' ');
    const char* end = word.data() + word.size();
    const auto [rest, error] = begin == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                          : std::from_chars(word.data() + begin, end, id);
    if (error != std::errc{} || rest != end)
      throw misused("--tokens: " + mekik::quoted(word) + " is not a token id; write for instance --tokens 1,2,3");
    tokens.push_back(id);
  }
  return tokens;
}

std::optional<double> real_number(const Arguments& arguments, const char* option) {
  if (!arguments.has(option)) return std::nullopt;
  const std::string& text = arguments.text(option);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  throw misused(std::string{"--"} + option + ": expected a number, got " + mekik::quoted(text));
}

// Own parsing: lexical_cast takes -1 for an unsigned number, and makes 2^64 - 1 of it.
std::optional<std::uint64_t> whole_number(const Arguments& arguments, const char* option, std::uint64_t least, std::uint64_t most) {
  if (!arguments.has(option)) return std::nullopt;
  const std::string& text = arguments.text(option);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= least && number <= most) return number;
  throw misused(std::string{"--"} + option + ": expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                ", got " + mekik::quoted(text));
}

}  // namespace mekik::app
