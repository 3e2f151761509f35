#include "support/watch.hpp"

#include <dirent.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <locale>
#include <new>
#include <thread>

#include "run/shared.hpp"

extern char** environ;

namespace mekik::validate {

namespace {

std::vector<std::string> entries(const char* folder) {
  std::vector<std::string> out;
  DIR* d = opendir(folder);
  if (d == nullptr) return out;
  const std::string own = std::to_string(dirfd(d));
  while (const dirent* e = readdir(d))
    if (e->d_name[0] != '.' && own != e->d_name) out.emplace_back(e->d_name);
  closedir(d);
  return out;
}

std::string umask_text() {
  std::ifstream in{"/proc/self/status"};
  for (std::string line; std::getline(in, line);)
    if (line.rfind("Umask:", 0) == 0) return line;
  return {};
}

std::string limits_text() {
  std::string out;
  for (const auto what : {RLIMIT_AS, RLIMIT_CORE, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK}) {
    rlimit l{};
    getrlimit(what, &l);
    out += std::to_string(l.rlim_cur) + " ";
  }
  return out;
}

std::string timers_text() {
  std::string out;
  for (const auto which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval t{};
    getitimer(which, &t);
    out += t.it_value.tv_sec != 0 || t.it_value.tv_usec != 0 || t.it_interval.tv_sec != 0 ? "running " : "off ";
  }
  return out;
}

std::map<std::string, std::string> settings() {
  std::map<std::string, std::string> out;
  for (int s = 1; s < 65; ++s) {
    struct sigaction action {};
    if (s == SIGKILL || s == SIGSTOP || sigaction(s, nullptr, &action) != 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%p", reinterpret_cast<void*>(action.sa_handler));
    out["the handler of the signal " + std::to_string(s)] = text;
  }
  sigset_t mask{};
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  out["the mask of signals"] = std::string{reinterpret_cast<const char*>(&mask), 8};
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string pair = *e;
    out["the environment variable " + pair.substr(0, pair.find('='))] = pair;
  }
  const char* name = std::setlocale(LC_ALL, nullptr);
  out["the locale"] = name != nullptr ? name : "";
  out["the locale of C++"] = std::locale{}.name();
  char thread_locale[32];
  std::snprintf(thread_locale, sizeof thread_locale, "%p", reinterpret_cast<void*>(uselocale(nullptr)));
  out["the locale of the thread"] = thread_locale;
  char folder[4096];
  out["the working directory"] = getcwd(folder, sizeof folder) != nullptr ? folder : "";
  out["the umask"] = umask_text();
  out["the limits of resources"] = limits_text();
  out["the interval timers"] = timers_text();
  out["the priority"] = std::to_string(getpriority(PRIO_PROCESS, 0));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  out["the processors it may run on"] = std::string{reinterpret_cast<const char*>(&cpus), sizeof cpus};
  char handler[32];
  std::snprintf(handler, sizeof handler, "%p", reinterpret_cast<void*>(std::get_terminate()));
  out["the terminate handler"] = handler;
  std::snprintf(handler, sizeof handler, "%p", reinterpret_cast<void*>(std::get_new_handler()));
  out["the new handler"] = handler;
  return out;
}

}  // namespace

std::vector<std::string> Watch::threads() {
  std::vector<std::string> out;
  for (const std::string& tid : entries("/proc/self/task")) {
    std::ifstream in{"/proc/self/task/" + tid + "/comm"};
    std::string name;
    std::getline(in, name);
    out.push_back(tid + " " + name);
  }
  return out;
}

std::map<int, std::string> Watch::files() {
  std::map<int, std::string> out;
  for (const std::string& fd : entries("/proc/self/fd")) {
    char target[512];
    const ssize_t n = readlink(("/proc/self/fd/" + fd).c_str(), target, sizeof target);
    if (n > 0) out[std::stoi(fd)] = std::string(target, static_cast<std::size_t>(n));
  }
  return out;
}

Watch::Watch() : settings_{settings()}, threads_{threads().size()}, files_{files()} {}

void Watch::compare(const std::string& after, bool ended) const {
  const auto now = settings();
  for (const auto& [what, value] : now)
    if (const auto at = settings_.find(what); at == settings_.end() || at->second != value) fault("changed " + what + " (" + after + ")");
  for (const auto& [what, value] : settings_)
    if (now.count(what) == 0) fault("removed " + what + " (" + after + ")");
  if (!ended) return;
  std::size_t left = threads().size();
  for (int wait = 0; left > threads_ && wait < 50; ++wait) {  // one that is ending may still be seen
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    left = threads().size();
  }
  if (left > threads_) fault("leaves " + std::to_string(left - threads_) + " threads running (" + after + "): " + threads().back());
  for (const auto& [fd, target] : files())
    if (const auto at = files_.find(fd); at == files_.end() || at->second != target)
      fault("leaves a file open: " + target + " (" + after + ")");
  for (const auto& [fd, target] : files_)
    if (files().count(fd) == 0) fault("closed a file that is not its own: " + target + " (" + after + ")");
  if (waitpid(-1, nullptr, WNOHANG | __WALL) >= 0) fault("leaves a child process behind (" + after + ")");
}

}  // namespace mekik::validate
