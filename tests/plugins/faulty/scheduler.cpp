// First come, first served; and what strangers do wrong, one at a time.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "faulty.hpp"

namespace {

struct Scheduler {
  std::int64_t most = 0;
  mekik_str text{};
  const mekik_config* config = nullptr;
  const mekik_seq_view* kept = nullptr;
  std::uint32_t calls = 0;
  std::uint32_t* block = nullptr;
};

int shared_calls;             // of all instances
thread_local int own_calls;   // of one thread
std::uint32_t not_locked[2];  // of all threads
int odd_answers;

mekik_status refuse() {
  if (is("no_reason")) return MEKIK_E_NO_MEMORY;
  if (is("other_reason")) return fail(MEKIK_E_IO, "there is no memory"), MEKIK_E_NO_MEMORY;
  return fail(MEKIK_E_NO_MEMORY, "there is no memory");
}

void at_create(Scheduler& s, const mekik_config* config) {
  const auto* api = config_api();
  s.most = is("unread_option") ? 64 : api->i64(config, "most");
  s.text = api->text(config, "label");
  s.config = config;
  if (is("undeclared_option")) api->i64(config, "more");
  if (is("wrong_type")) api->text(config, "most");
  if (is("leaves_thread")) std::thread{[] { pause(); }}.detach();
  if (is("leaves_file")) static_cast<void>(open("/dev/null", O_RDONLY));
  if (is("changes_signal")) signal(SIGPIPE, SIG_IGN);
  if (is("changes_environment")) setenv("OMP_NUM_THREADS", "1", 1);
  if (is("changes_folder")) static_cast<void>(!chdir("/"));
  if (is("changes_locale")) std::setlocale(LC_ALL, "C.UTF-8");
  if (is("forks"))
    if (fork() == 0) _exit(0);
}

mekik_status create(const mekik_host*, const mekik_config* config, mekik_sched** out) {
  if (config_api() == nullptr && !is("needs_services")) return fail(MEKIK_E_UNSUPPORTED, "this host gives no options");
  if (is("unknown_status")) return fail(static_cast<mekik_status>(77), "who knows");
  if (is("ok_with_reason")) fail(MEKIK_E_INVALID, "a warning");
  auto* s = static_cast<Scheduler*>(std::calloc(1, sizeof(Scheduler)));
  if (s == nullptr && !is("unchecked_malloc")) return refuse();
  if (!is("no_instance")) *out = reinterpret_cast<mekik_sched*>(s);
  at_create(*s, config);
  s->block = static_cast<std::uint32_t*>(std::malloc(16 * sizeof *s->block));
  if (s->block == nullptr && !is("leaks_on_failure")) return std::free(s), refuse();
  if (s->block == nullptr) return refuse();
  if (!is("uninitialised")) std::memset(s->block, 0, 16 * sizeof *s->block);
  if (is("memory_service")) {  // never given back
    const auto* memory = static_cast<const mekik_memory*>(host->service(host, MEKIK_MEMORY));
    if (memory != nullptr) memory->alloc(host, 100, 16, "scheduler");
  }
  return MEKIK_OK;
}

void destroy(mekik_sched* self) {
  auto* s = reinterpret_cast<Scheduler*>(self);
  if (!is("leaks")) std::free(s->block);
  if (is("frees_twice")) std::free(s->block);
  std::free(s);
}

// What is wrong before the plan is made.
void before(Scheduler& s, const mekik_step_view& view) {
  if (is("kept_pointer")) {
    if (s.kept != nullptr) odd_answers += static_cast<int>(s.kept->id);
    s.kept = view.seqs;
  }
  if (is("kept_config")) s.most = config_api()->i64(s.config, "most");
  if (is("kept_text")) odd_answers += s.text.len > 0 ? s.text.ptr[0] : 0;
  if (is("terminated_text")) odd_answers += static_cast<int>(std::strlen(s.text.ptr));
  if (is("reads_past_end")) odd_answers += static_cast<int>(view.seqs[view.n_seqs].prompt_left);
  if (is("writes_input"))
    if (view.n_seqs > 0) const_cast<mekik_seq_view*>(view.seqs)->cached = 0;
  if (is("throws")) throw std::runtime_error{"not today"};
  if (is("aborts")) std::abort();
  if (is("exits")) std::exit(0);
  if (is("prints")) std::puts("planning");
  if (is("prints_error")) std::fputs("planning\n", stderr);
  if (is("float_mode")) std::fesetround(FE_UPWARD);
  if (is("hangs"))
    for (volatile int i = 0; view.n_seqs > 2; i = 1) static_cast<void>(i);
  if (is("heap_overflow")) s.block[16] = 1;
  if (is("divides_by_zero")) odd_answers = 100 / static_cast<int>(view.n_seqs);
  if (is("bad_log")) {
    const auto* log = static_cast<const mekik_log*>(host->service(host, MEKIK_LOG));
    if (log != nullptr) log->write(host, 9, {"x", 1}, {"\xFF", 1});
  }
}

bool runs(Scheduler& s, const mekik_seq_view& v) {
  if (v.waiting_fetch != 0 && !is("runs_fetching")) return false;
  if (is("starves")) return v.id % 2 == 0;
  if (is("idle")) return s.calls < 5;
  if (is("address")) return (reinterpret_cast<std::uintptr_t>(&v) * 0x9E3779B97F4A7C15u >> 40) % 3 != 0;
  if (is("uninitialised")) return s.block[3] % 2 == 0 || s.calls % 2 == 0;
  if (is("shared_state")) return shared_calls++ % 3 != 0;
  if (is("per_thread")) return ++own_calls % 2 == 0 || s.calls % 5 == 0;
  return true;
}

mekik_status plan(mekik_sched* self, const mekik_step_view* view, mekik_choice* out, std::uint32_t size, std::uint32_t* n) {
  auto& s = *reinterpret_cast<Scheduler*>(self);
  ++s.calls;
  before(s, *view);
  std::uint32_t used = 0, tokens = view->max_tokens;
  if (is("race")) not_locked[0] = not_locked[1] = view->n_seqs;
  for (std::uint32_t i = 0; i < view->n_seqs; ++i) {
    const mekik_seq_view& v = at(view->seqs, i, view->seq_size);
    if ((used == view->max_seqs && !is("too_many_sequences")) || tokens == 0 || !runs(s, v)) continue;
    std::uint32_t take = v.prompt_left == 0 ? 1 : v.prompt_left < tokens ? v.prompt_left : tokens;
    if (is("too_many_tokens")) take = v.prompt_left == 0 ? 1 : v.prompt_left;
    if (is("more_than_left")) ++take;
    if (is("no_tokens")) take = s.calls % 7 == 0 ? 0 : take;
    if (take < tokens) tokens -= take;
    else tokens = 0;
    at(out, used++, size) = {is("wrong_index") && i == 0 ? view->n_seqs : i, is("wrong_action") ? 9u : 1u * MEKIK_RUN, take,
                             is("drafts") ? 50u : 0u, 0};
    if (is("race"))
      for (int spin = 0; spin < 2000; ++spin)
        if (reinterpret_cast<volatile std::uint32_t*>(not_locked)[0] != view->n_seqs) return *n = used, MEKIK_OK;
  }
  if (is("twice"))
    if (used > 0 && used < view->n_seqs) at(out, used, size) = at(out, used - 1, size), ++used;
  if (is("swaps"))
    if (used > 0) at(out, 0, size).action = MEKIK_SWAP;
  if (is("says_more")) used = view->n_seqs + 1;
  if (is("unwritten"))
    if (used > 1) at(out, 0, size) = {};
  *n = used;
  return MEKIK_OK;
}

mekik_option option(const char* key, std::uint32_t type, const char* fallback, double lo, double hi) {
  return {key, type, 0, fallback, lo, hi, nullptr, nullptr, 0, 0, is("no_doc") ? "" : "What it is for."};
}
const mekik_option kOptions[] = {
    option(is("taken_key") ? "max_sequences" : "most", MEKIK_OPT_INT, is("default_out_of_range") ? "4096" : "64", 1, 1024),
    option("label", MEKIK_OPT_TEXT, is("bad_default") ? nullptr : "\"plain\"", 1, 0),
    option(is("key_twice") ? "label" : "spare", MEKIK_OPT_DURATION, is("bad_duration") ? "250" : "\"250ms\"", 1, 0)};
const mekik_scheduler kTable{is("long_table") ? 64 : sizeof(mekik_scheduler), is("reserved") ? 1u : 0u, create, destroy, plan, nullptr};
const mekik_component kComponent = one_component(MEKIK_KIND_SCHEDULER, &kTable, kOptions, is("no_options_read") ? 0 : 2);

void at_init() {
  if (is("init_thread")) std::thread{[] { pause(); }}.detach();
  if (is("init_prints")) std::puts("hello");
  if (is("init_needs_log")) {
    const auto* log = static_cast<const mekik_log*>(host->service(host, MEKIK_LOG));
    log->write(host, 2, {"x", 1}, {"hello", 5});
  }
}

}  // namespace

#ifdef EXPORTS
extern "C" MEKIK_EXPORT int helper_function(int x) { return x + 1; }
#endif
FAULTY_PLUGIN(kComponent, at_init);
