#include "run/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>

#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/traps.hpp"

namespace mekik::validate {

namespace {

using Clock = std::chrono::steady_clock;
constexpr rlim_t kMemory = rlim_t{6} << 30;  // of one check: a plugin that asks for more gets an error, not the machine

struct Child {
  pid_t pid = -1;
  std::size_t job = 0;
  Shared* shared = nullptr;
  int output = -1;
  Clock::time_point began;
};

void at_exit() {
  if (shared != nullptr && shared->done.load() == 0) fault(called() + ": the plugin ended the process (exit)");
}

[[noreturn]] void child_main(const Job& job, Shared* memory, int output) {
  shared = memory;
  setpgid(0, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::close(output);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  if (nothing > 2) ::close(nothing);
  const rlimit data{kMemory, kMemory}, core{0, 0};
  setrlimit(RLIMIT_DATA, &data);
  setrlimit(RLIMIT_CORE, &core);
  std::atexit(at_exit);
  const HostScope scope;
  install_traps();
  try {
    job.work();
  } catch (const Stop&) {
  } catch (const std::exception& e) {
    fault(called() + ": the check itself failed: " + e.what());
  }
  now_calling("the end");
  std::fflush(nullptr);  // what the plugin has printed and not yet written
  shared->done = 1;
  ::_exit(0);
}

std::string text_of(int file) {
  std::string out(2000, '\0');
  const ssize_t n = ::pread(file, out.data(), out.size(), 0);
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string ending(int status, const Shared& s, bool late, double limit) {
  const std::string call = s.call[0] != '\0' ? std::string{s.call} + ": " : "";
  if (late) return call + "has not come to an end after " + std::to_string(static_cast<int>(limit)) + " s";
  if (WIFSIGNALED(status)) return call + "the process died of the signal " + strsignal(WTERMSIG(status));
  return call + "the process ended with code " + std::to_string(WEXITSTATUS(status));
}

Outcome outcome_of(const Child& child, int status, bool late, double limit) {
  Outcome out;
  out.seconds = std::chrono::duration<double>(Clock::now() - child.began).count();
  const Shared& s = *child.shared;
  for (std::size_t i = 0; i < std::min<std::size_t>(s.n_faults, Shared::kFaults); ++i) out.faults.emplace_back(s.faults[i]);
  if (s.n_faults > Shared::kFaults) out.faults.push_back("and " + std::to_string(s.n_faults - Shared::kFaults) + " more");
  if (s.done.load() == 0 && (out.faults.empty() || late)) out.faults.push_back(ending(status, s, late, limit));
  if (const std::string printed = text_of(child.output); !printed.empty()) {
    out.faults.push_back((s.done.load() != 0 ? "printed on the standard output or error: \"" : "the last words of the process: \"") +
                         printed + "\"");
  }
  out.data = s.data;
  if (!out.faults.empty()) return out;
  out.verdict = s.skipped[0] != '\0' ? Verdict::skipped : Verdict::passed;
  if (out.verdict == Verdict::skipped) out.faults.emplace_back(s.skipped);
  return out;
}

Child start(const std::vector<Job>& jobs, std::size_t job) {
  Child child;
  child.job = job;
  child.shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  child.output = memfd_create("output", MFD_CLOEXEC);
  child.began = Clock::now();
  std::fflush(nullptr);  // what is not written yet would be written by both
  child.pid = fork();
  if (child.pid == 0) child_main(jobs[job], child.shared, child.output);
  return child;
}

// Seconds that a check had, without those that its first thread waited for a processor: a busy machine is nobody's fault.
double had(const Child& child) {
  double waited = 0, ran = 0;
  std::ifstream in{"/proc/" + std::to_string(child.pid) + "/schedstat"};
  in >> ran >> waited;
  return std::chrono::duration<double>(Clock::now() - child.began).count() - waited / 1e9;
}

// True when the child ended, or was ended for taking too long.
bool ended(const Child& child, double limit, int& status, bool& late) {
  const pid_t got = waitpid(child.pid, &status, WNOHANG);
  if (got == child.pid) return true;
  if (std::chrono::duration<double>(Clock::now() - child.began).count() < limit || had(child) < limit) return false;
  late = true;
  kill(-child.pid, SIGKILL);
  kill(child.pid, SIGKILL);
  waitpid(child.pid, &status, 0);
  return true;
}

}  // namespace

std::vector<Outcome> run_all(const std::vector<Job>& jobs, const Limits& limits,
                             const std::function<void(const Job&, const Outcome&)>& finished) {
  std::vector<Outcome> out(jobs.size());
  std::vector<Child> running;
  std::size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    while (next < jobs.size() && running.size() < std::max(1u, limits.at_once)) running.push_back(start(jobs, next++));
    bool any = false;
    for (std::size_t i = 0; i < running.size();) {
      int status = 0;
      bool late = false;
      if (!ended(running[i], limits.seconds, status, late)) {
        ++i;
        continue;
      }
      any = true;
      const Child child = running[i];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      kill(-child.pid, SIGKILL);  // whoever the plugin may have left behind in the check's own group
      out[child.job] = outcome_of(child, status, late, limits.seconds);
      munmap(child.shared, sizeof(Shared));
      ::close(child.output);
      finished(jobs[child.job], out[child.job]);
    }
    if (!any) std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return out;
}

}  // namespace mekik::validate
