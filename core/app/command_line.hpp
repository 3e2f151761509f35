// Parsing of the command line, the same for every verb.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace mekik::app {

namespace po = boost::program_options;

enum ExitCode { kSuccess = 0, kFailed = 1, kMisused = 2 };

// A verb's failure: what to print, and the exit code. `as_is`: the text begins with its own place, "file:line:column: error: ...",
// which editors find only at the start of a line; other texts get the program's name in front.
struct Failure {
  ExitCode code = kFailed;
  std::string text;
  bool as_is = false;
};
inline Failure misused(std::string text) { return {kMisused, std::move(text)}; }
inline Failure failed(const Status& status) {
  if (status.code == Code::misconfigured) return {kMisused, status.text, true};
  return {kFailed, status.text};
}

// Mistakes of one command line, told together. Each step may throw; what is no mistake of the command line passes through.
class Mistakes {
 public:
  template <class Step>
  void in(const Step& step) {
    try {
      step();
    } catch (const Failure& failure) {
      if (failure.code != kMisused) throw;
      add(failure);
    }
  }
  bool any() const { return !text_.empty(); }
  void tell() const {  // throws Failure
    if (any()) throw Failure{kMisused, text_, true};
  }

 private:
  void add(const Failure& failure);
  std::string text_;
};

struct Verb {
  const char* name;
  const char* operands;  // "MODEL-OR-PIPELINE"
  const char* summary;
  const char* example;
  void (*declare)(po::options_description& options);  // its own options
  std::size_t min_operands, max_operands;
  bool takes_pipeline;                            // also --set and --print-config
  int (*run)(const struct Arguments& arguments);  // throws Failure
};

struct Arguments {
  const Verb* verb = nullptr;
  po::variables_map values;
  std::vector<std::string> operands;

  bool has(const char* option) const { return values.count(option) > 0; }
  bool flag(const char* option) const { return values[option].as<bool>(); }
  const std::string& text(const char* option) const { return values[option].as<std::string>(); }
  std::optional<std::string> maybe_text(const char* option) const {
    return has(option) ? std::optional<std::string>{text(option)} : std::nullopt;
  }
  std::vector<std::string> overrides() const {
    return has("set") ? values["set"].as<std::vector<std::string>>() : std::vector<std::string>{};
  }
};

// Parses what follows the verb; nothing when --help was asked for and printed. Throws Failure.
std::optional<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words);
std::string usage(const Verb& verb);
// "1,2,3" to numbers. Throws Failure.
std::vector<std::int32_t> parse_tokens(const std::string& text);
std::optional<double> real_number(const Arguments& arguments, const char* option);
// The value of an option as a whole number within limits; nothing when it was not given. Throws Failure.
std::optional<std::uint64_t> whole_number(const Arguments& arguments, const char* option, std::uint64_t least, std::uint64_t most);

}  // namespace mekik::app
