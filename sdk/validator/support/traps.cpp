#include "support/traps.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <typeinfo>

#include "run/shared.hpp"
#include "support/arena.hpp"
#include "support/heap.hpp"

namespace mekik::validate {

namespace {

bool is_write([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

// "in function_of_the_plugin", where the address has a name.
std::string place([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  Dl_info info{};
  auto* at = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  if (dladdr(at, &info) != 0 && info.dli_fname != nullptr) {
    const char* slash = std::strrchr(info.dli_fname, '/');
    char text[160];
    std::snprintf(text, sizeof text, " (at %s+0x%zx)", slash != nullptr ? slash + 1 : info.dli_fname,
                  static_cast<std::size_t>(reinterpret_cast<char*>(at) - static_cast<char*>(info.dli_fbase)));
    return text;
  }
#endif
  return {};
}

void on_signal(int number, siginfo_t* info, void* context) {
  const HostScope scope;
  std::string what;
  if (number == SIGSEGV || number == SIGBUS) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    what = explain(address, is_write(context));
    if (what.empty())
      what = address < 4096               ? "followed a null pointer"
             : info->si_code == SI_KERNEL ? "crashed: an address that cannot be"
                                          : "crashed: an access to memory that is not there";
    what += place(context);
  } else if (number == SIGABRT) {
    what = "aborted (an exception that met noexcept, a failed assertion, or a heap that was damaged)";
  } else if (number == SIGFPE) {
    what = "divided by zero" + place(context);
  } else {
    what = "died of the signal " + std::string{strsignal(number)} + place(context);
  }
  fault(called() + ": " + what);
  ::_exit(3);
}

}  // namespace

void signal_stack() {
  constexpr std::size_t kBytes = 1 << 17;
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kBytes;
  sigaltstack(&stack, nullptr);
}

void install_traps() {
  signal_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS}) sigaction(number, &action, nullptr);
}

}  // namespace mekik::validate
