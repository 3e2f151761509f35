#include "app/cli.hpp"

#include <cstdio>
#include <exception>

#include "app/verbs.hpp"
#include "app/version.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "text/tokenizer.hpp"

namespace mekik::app {

namespace {

std::string overview() {
  std::string out = "mekik: an engine for language models, composed of plugins by a pipeline file\n\nusage: mekik VERB ...\n\n";
  for (const Verb* verb : verbs()) {
    std::string head = std::string{"  "} + verb->name + " " + verb->operands;
    head.resize(std::max<std::size_t>(head.size() + 2, 36), ' ');
    out += head + verb->summary + "\n";
  }
  return out + "\nmekik VERB --help shows a verb's options and an example; mekik --version the version and what this machine can do.\n";
}

// mekik help, mekik help VERB.
std::string help(const std::vector<std::string>& words) {
  if (words.size() == 1) return overview();
  for (const Verb* verb : verbs())
    if (words[1] == verb->name && words.size() == 2) return usage(*verb);
  throw misused("mekik " + words[0] + ": what is " + mekik::quoted(words.back()) + "? mekik --help lists the verbs");
}

std::string version(const std::vector<std::string>& words) {
  if (words.size() > 1) throw misused("mekik --version: what is " + mekik::quoted(words[1]) + "? It takes nothing");
  return version_text();
}

void set_log_level(const Arguments& arguments) {
  static const std::vector<std::string> kLevels{"trace", "debug", "info", "warning", "error"};
  const std::string fallback = arguments.verb == &kServe ? "info" : "warning";
  const std::string level = arguments.maybe_text("log-level").value_or(fallback);
  const auto it = std::find(kLevels.begin(), kLevels.end(), level);
  if (it == kLevels.end()) throw misused("--log-level " + level + ": choose " + join(kLevels, ", "));
  log::set_level(static_cast<log::Level>(it - kLevels.begin()));
}

int run_verb(const std::vector<std::string>& words) {
  for (const Verb* verb : verbs()) {
    if (words[0] != verb->name) continue;
    const auto arguments = parse_arguments(*verb, {words.begin() + 1, words.end()});
    if (!arguments) return kSuccess;
    set_log_level(*arguments);
    return verb->run(*arguments);
  }
  std::vector<std::string> names;
  for (const Verb* verb : verbs()) names.emplace_back(verb->name);
  const auto near = closest(words[0], names);
  throw misused("mekik has no verb " + mekik::quoted(words[0]) + (near ? "; did you mean \"" + *near + "\"?" : "") +
                " (mekik --help lists them)");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    if (words.empty()) throw Failure{kMisused, overview(), true};
    int code = kSuccess;
    if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") std::fputs(help(words).c_str(), stdout);
    else if (words[0] == "--version") std::fputs(version(words).c_str(), stdout);
    else code = run_verb(words);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw Failure{kFailed, "standard output cannot be written"};
    return code;
  } catch (const Failure& failure) {
    const bool named = failure.as_is || failure.text.starts_with("mekik ");
    if (!failure.text.empty())
      std::fprintf(stderr, "%s%s%s", named ? "" : "mekik: ", without_controls(failure.text).c_str(),
                   failure.text.back() == '\n' ? "" : "\n");
    return failure.code;
  } catch (const text::TextRefused& refused) {
    std::fprintf(stderr, "mekik: the tokenizer of this model refuses the text: %s\n", refused.what());
    return kFailed;
  } catch (const std::bad_alloc&) {
    std::fputs("mekik: out of memory\n", stderr);
    return kFailed;
  } catch (const std::exception& error) {  // a bug, but one with a message
    std::fprintf(stderr, "mekik: internal error: %s\n", error.what());
    return kFailed;
  }
}

}  // namespace mekik::app
