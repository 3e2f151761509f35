// mekik-validate: tries a plugin with a host that is by the book and as unkind as the book allows.
#include <getopt.h>
#include <mekik/version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "checks/checks.hpp"
#include "run/process.hpp"
#include "run/report.hpp"
#include "run/shared.hpp"

namespace {

using namespace mekik::validate;
namespace fs = std::filesystem;

constexpr const char* kHelp =
    "mekik-validate FILE.so: tries a plugin, each check in a process of its own.\n"
    "\n"
    "  --list              the checks, and what each is about\n"
    "  --only CHECK        only this check, or this group (\"hostile\"); may be repeated\n"
    "  --component K/NAME  only this component (\"scheduler/mine\")\n"
    "  --sample FILE       a file that a loader must open; may be repeated\n"
    "  --seed N            of all that is random, 1 by default; the same seed does the same\n"
    "  --against 0.N       be a host of this revision of the ABI\n"
    "  --time-limit S      seconds of a check, 60 by default\n"
    "  --jobs N            checks at once, by default one a processor\n"
    "  --json, --junit     what is written on the standard output, instead of text\n"
    "  --output FILE       where it goes instead (the text still appears)\n"
    "  --quiet             of text only what failed, and the summary\n"
    "\n"
    "Exit code: 0 nothing was found, 1 something was, 2 the command line is wrong.\n"
    "Example: mekik-validate --only hostile --seed 7 lib/mekik/scheduler_continuous.so\n";

struct Options {
  std::string file, component, output;
  std::vector<std::string> only, samples;
  unsigned long long seed = 1;
  unsigned revision = MEKIK_ABI_MINOR;
  Limits limits{std::max(1u, std::thread::hardware_concurrency()), 60};
  bool list = false, json = false, junit = false, quiet = false;
};

[[noreturn]] void misused(const std::string& why) {
  std::fprintf(stderr, "mekik-validate: %s (--help shows how)\n", why.c_str());
  std::exit(2);
}

unsigned long long number(const char* text, const char* what, unsigned long long most) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > most) misused(std::string{what} + " needs a number, not \"" + text + "\"");
  return value;
}

unsigned revision(const std::string& text) {
  if (text.rfind("0.", 0) != 0)
    misused("--against needs a revision of the ABI such as 0." + std::to_string(MEKIK_ABI_MINOR) + ", not \"" + text + "\"");
  const auto minor = number(text.c_str() + 2, "--against 0.N", 1'000'000);
  if (minor > MEKIK_ABI_MINOR) misused("there is no revision " + text + " of the ABI; the newest is 0." + std::to_string(MEKIK_ABI_MINOR));
  return static_cast<unsigned>(minor);
}

bool matches(const std::string& check, const std::string& wanted) {
  return check == wanted || (check.size() > wanted.size() && check.compare(0, wanted.size(), wanted) == 0 && check[wanted.size()] == '.');
}

Options parse_arguments(int argc, char** argv) {
  Options o;
  static const option kLong[] = {{"list", 0, nullptr, 'l'},       {"only", 1, nullptr, 'o'},    {"component", 1, nullptr, 'c'},
                                 {"sample", 1, nullptr, 's'},     {"seed", 1, nullptr, 'S'},    {"against", 1, nullptr, 'a'},
                                 {"time-limit", 1, nullptr, 't'}, {"jobs", 1, nullptr, 'j'},    {"json", 0, nullptr, 'J'},
                                 {"junit", 0, nullptr, 'U'},      {"output", 1, nullptr, 'O'},  {"quiet", 0, nullptr, 'q'},
                                 {"help", 0, nullptr, 'h'},       {"version", 0, nullptr, 'V'}, {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "j:o:hq", kLong, nullptr)) != -1;) switch (c) {
      case 'l':
        o.list = true;
        break;
      case 'o':
        o.only.emplace_back(optarg);
        break;
      case 'c':
        o.component = optarg;
        break;
      case 's':
        o.samples.push_back(fs::absolute(optarg).string());
        break;
      case 'S':
        o.seed = number(optarg, "--seed", ~0ull);
        break;
      case 'a':
        o.revision = revision(optarg);
        break;
      case 't':
        o.limits.seconds = static_cast<double>(number(optarg, "--time-limit", 86400));
        break;
      case 'j':
        o.limits.at_once = static_cast<unsigned>(number(optarg, "--jobs", 1024));
        break;
      case 'J':
        o.json = true;
        break;
      case 'U':
        o.junit = true;
        break;
      case 'O':
        o.output = optarg;
        break;
      case 'q':
        o.quiet = true;
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        std::exit(0);
      case 'V':
        std::puts("mekik-validate " MEKIK_VERSION);
        std::exit(0);
      default:
        misused("the argument " + std::string{argv[optind - 1]} + " is unknown, or needs a value");
    }
  if (o.json && o.junit) misused("--json and --junit exclude each other");
  for (const std::string& s : o.samples)
    if (!fs::exists(s)) misused("there is no file " + s);
  const auto all = all_checks();
  for (const std::string& wanted : o.only)
    if (std::none_of(all.begin(), all.end(), [&](const Check& c) { return matches(c.name, wanted); }))
      misused("there is no check \"" + wanted + "\" (--list shows them)");
  if (o.list) return o;
  if (optind + 1 != argc) misused(optind == argc ? "which plugin? A file is needed" : "one file at a time");
  o.file = argv[optind];
  std::error_code error;
  if (!fs::is_regular_file(o.file, error)) misused("there is no file " + o.file);
  o.file = fs::canonical(o.file).string();
  return o;
}

void list_checks() {
  for (const Check& c : all_checks())
    std::printf("%-24s %s%s\n", c.name, c.doc, c.kind != nullptr && c.kind[0] != '\0' ? (std::string{" ("} + c.kind + "s)").c_str() : "");
}

class Validation {
 public:
  explicit Validation(Options options) : o_{std::move(options)} {
    std::string name = (fs::temp_directory_path() / "mekik-validate-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) misused("no folder for temporary files can be made in " + fs::temp_directory_path().string());
    folder_ = name;
    report_.file = o_.file;
    report_.seed = o_.seed;
  }
  ~Validation() {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;

  int run() {
    // Which components there are is the first thing to find out; without them only the file is checked.
    run({job(check_named("file.load"), "")});
    std::istringstream lines{report_.found[0].outcome.data};
    std::vector<std::string> components;
    for (std::string line; std::getline(lines, line);) components.push_back(line);
    if (!wanted("file.load")) report_.found.clear();
    else tell(report_.found[0]);
    std::vector<Job> jobs;
    for (const Check& c : all_checks())
      if (c.kind == nullptr && std::strcmp(c.name, "file.load") != 0 && wanted(c.name)) jobs.push_back(job(c, ""));
    bool known = o_.component.empty();
    for (const std::string& component : components) {
      if (!o_.component.empty() && o_.component != component) continue;
      known = true;
      for (const Check& c : all_checks())
        if (c.kind != nullptr && wanted(c.name) && (c.kind[0] == '\0' || component.rfind(std::string{c.kind} + "/", 0) == 0))
          jobs.push_back(job(c, component));
    }
    if (!known) misused("it has no component " + o_.component);
    run(jobs, true);
    write();
    return report_.count(Verdict::failed) > 0 ? 1 : 0;
  }

 private:
  static Check check_named(const char* name) {
    for (const Check& c : all_checks())
      if (std::strcmp(c.name, name) == 0) return c;
    std::abort();
  }
  bool wanted(const std::string& check) const {
    return o_.only.empty() || std::any_of(o_.only.begin(), o_.only.end(), [&](const std::string& w) { return matches(check, w); });
  }
  Job job(const Check& c, const std::string& component) {
    Task task{o_.file, o_.seed, folder_ + "/" + std::to_string(next_++), o_.samples, o_.revision};
    return {component, c.name, [c, component, task] {
              fs::create_directory(task.folder);
              c.run(task, component);
            }};
  }
  void run(const std::vector<Job>& jobs, bool loud = false) {
    const std::size_t first = report_.found.size();
    for (const Job& j : jobs) report_.found.push_back({j.component, j.check, {}});
    const auto outcomes = run_all(jobs, o_.limits, [](const Job&, const Outcome&) {});
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      report_.found[first + i].outcome = outcomes[i];
      if (loud) tell(report_.found[first + i]);
    }
  }
  bool text() const { return (!o_.json && !o_.junit) || !o_.output.empty(); }
  void tell(const Found& f) const {
    if (text() && (!o_.quiet || f.outcome.verdict == Verdict::failed)) std::fputs(as_text(f).c_str(), stdout);
  }
  void write() const {
    const std::string whole = o_.json ? as_json(report_) : o_.junit ? as_junit(report_) : summary(report_);
    if (text()) std::fputs(summary(report_).c_str(), stdout);
    else std::fputs(whole.c_str(), stdout);
    if (o_.output.empty()) return;
    std::string all = whole;
    if (!o_.json && !o_.junit) {
      all.clear();
      for (const Found& f : report_.found) all += as_text(f);
      all += summary(report_);
    }
    if (!(std::ofstream{o_.output} << all)) misused("cannot write " + o_.output);
  }

  Options o_;
  std::string folder_;
  unsigned next_ = 0;
  Report report_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_arguments(argc, argv);
  if (options.list) return list_checks(), 0;
  return Validation{std::move(options)}.run();
}
