#include "simulate/scenario_rows.hpp"

#include <array>

namespace mekik::simulate {
namespace {

constexpr mekik_option row(const char* key, std::uint32_t type, std::uint32_t flags, const char* fallback, double min, double max,
                           const char* doc) {
  mekik_option out{};
  out.key = key;
  out.type = type;
  out.flags = flags;
  out.fallback = fallback;
  out.min = min;
  out.max = max;
  out.doc = doc;
  return out;
}
constexpr mekik_option integer(const char* key, const char* fallback, double min, double max, const char* doc) {
  return row(key, MEKIK_OPT_INT, 0, fallback, min, max, doc);
}
constexpr mekik_option real(const char* key, const char* fallback, double min, double max, const char* doc) {
  return row(key, MEKIK_OPT_REAL, 0, fallback, min, max, doc);
}
constexpr mekik_option duration(const char* key, const char* fallback, double min, double max, const char* doc) {
  return row(key, MEKIK_OPT_DURATION, 0, fallback, min, max, doc);
}
constexpr mekik_option boolean(const char* key, const char* doc) { return row(key, MEKIK_OPT_BOOL, 0, "false", 0, 0, doc); }

constexpr double kLongest = 31 * 86400e9, kMostTokens = 1 << 24;

constexpr std::array kScenario{
    integer("seed", "1", 0, 9e15, "Of everything that is drawn: the same seed gives the same arrivals, lengths and tokens."),
    duration("duration", "\"60s\"", 1e6, kLongest, "So long requests come; then what is there ends."),
    boolean("share_prefixes", "Whether what one tenant's requests have computed is used for others, too."),
};

constexpr std::array kLengths{
    integer("fixed", nullptr, 1, kMostTokens, "So many tokens."),
    row("uniform", MEKIK_OPT_INT, MEKIK_OPT_LIST, nullptr, 2, 2, "[from, to], both of them possible."),
    row("lognormal", MEKIK_OPT_REAL, MEKIK_OPT_LIST, nullptr, 2, 2, "[median, sigma]: many short ones and some long ones."),
    row("list", MEKIK_OPT_INT, MEKIK_OPT_LIST, nullptr, 1, 65536, "One of these, each as likely."),
    integer("min", "1", 1, kMostTokens, "No fewer."),
    integer("max", "0", 0, kMostTokens, "No more; 0: no limit."),
};
constexpr mekik_option lengths(const char* key, const char* doc) {
  mekik_option out = row(key, MEKIK_OPT_TABLE, 0, nullptr, 1, 0, doc);
  out.fields = kLengths.data();
  out.n_fields = static_cast<std::uint32_t>(kLengths.size());
  out.field_size = sizeof(mekik_option);
  return out;
}
constexpr mekik_option arrivals() {
  mekik_option out =
      row("arrivals", MEKIK_OPT_CHOICE, 0, "poisson", 1, 0,
          "poisson: at random times, at a rate; constant: at even times; closed: `users` who each wait for an answer, think, "
          "and ask again.");
  out.choices = "poisson|constant|closed";
  return out;
}

constexpr std::array kLoad{
    row("name", MEKIK_OPT_TEXT, MEKIK_OPT_REQUIRED, nullptr, 1, 64, "What the report calls it."),
    arrivals(),
    real("rate", "0", 0, 1e6, "Arrivals a second."),
    row("shape", MEKIK_OPT_REAL, MEKIK_OPT_LIST, "[]", 0, 1024,
        "Factors of the rate, each for an equal part of the load's time: 24 of them make a day of hours."),
    integer("burst", "1", 1, 65536, "Requests that come at once, at each arrival."),
    integer("users", "0", 0, 65536, "Of a closed load."),
    duration("think", "\"0s\"", 0, kLongest, "Mean time from an answer to the user's next request, in a closed load."),
    duration("begin", "\"0s\"", 0, kLongest, "When the first can come."),
    duration("end", "\"0s\"", 0, kLongest, "When no more come; 0: at the scenario's end."),
    integer("requests", "0", 0, 1e9, "Most requests, further turns not counted; 0: no limit."),
    lengths("prompt", "Tokens of prompts, those of a shared prefix not counted."),
    lengths("answer", "Tokens of answers."),
    integer("turns", "1", 1, 1000, "Requests of a chat: each begins with the whole chat so far, answers included."),
    lengths("said", "Tokens that a further turn adds; as `prompt` where it is not given."),
    duration("turn_think", "\"10s\"", 0, kLongest, "Mean time from an answer to the next turn."),
    integer("prefix_groups", "0", 0, 65536, "So many different texts begin prompts: system prompts, say. 0: none."),
    integer("prefix_tokens", "0", 0, kMostTokens, "Tokens of each of them."),
    real("prefix_share", "1", 0, 1, "The part of the requests that begins with one."),
    integer("first_tenant", "1", 1, 1e9, "The number of this load's first tenant: loads with the same numbers have the same tenants."),
    row("tenants", MEKIK_OPT_REAL, MEKIK_OPT_LIST, "[1]", 1, 65536, "One for each tenant: its part of the requests, against the others'."),
    integer("priority", "0", -1000, 1000, "As requests state it; higher goes first."),
    duration("ttft", "\"0s\"", 0, kLongest,
             "The target for the first token: the report counts who is in time, and schedulers are told. 0: none."),
    duration("tpot", "\"0s\"", 0, kLongest, "The same for each further token."),
    duration("deadline", "\"0s\"", 0, kLongest, "After so long a request ends in an error. 0: never."),
    real("cancel", "0", 0, 1, "The part of the requests whose client goes away."),
    duration("cancel_after", "\"1s\"", 0, kLongest, "Mean time until it does."),
    integer("retries", "0", 0, 1000, "How often a client that is refused tries again, as late as it is told."),
    row("trace", MEKIK_OPT_PATH, 0, nullptr, 1, 0,
        "A file of arrivals, a JSON object a line: at (seconds), prompt and answer (tokens), maybe tenant, priority, prefix."),
};

constexpr std::array kCosts{
    boolean("calibrate", "Measure the pipeline's model first, and use what that says in place of the numbers here."),
    real("step_us", "2000", 0, 1e9, "Microseconds of any step."),
    real("token_us", "100", 0, 1e9, "Further ones for each of its tokens."),
    real("row_us", "200", 0, 1e9, "For each sequence that gets a token by it."),
    real("context_ns", "1", 0, 1e9, "Nanoseconds for each token and token of its context."),
    real("host_step_us", "20", 0, 1e9, "Microseconds from one step to the next."),
    real("host_row_us", "5", 0, 1e9, "Further ones for each sequence that got a token."),
    integer("context", "8192", 2, 1 << 24, "Most tokens of a sequence, without a model."),
    integer("vocabulary", "256", 16, 1 << 20, "Tokens that prompts are made of."),
    row("token_bytes", MEKIK_OPT_SIZE, 0, "16KiB", 1, 1e9, "Of [cache] memory, what a token's keys and values take, without a model."),
};

template <std::size_t n>
config::Rows rows(const std::array<mekik_option, n>& array) {
  return {array.data(), static_cast<std::uint32_t>(n), sizeof(mekik_option)};
}

}  // namespace

config::Rows scenario_rows() { return rows(kScenario); }
config::Rows load_rows() { return rows(kLoad); }
config::Rows cost_rows() { return rows(kCosts); }

}  // namespace mekik::simulate
