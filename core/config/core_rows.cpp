#include "config/core_rows.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace mekik::config {

namespace {

constexpr mekik_option row(const char* key, std::uint32_t type, std::uint32_t flags, const char* fallback, double min, double max,
                           const char* choices, const char* doc) {
  mekik_option out{};
  out.key = key;
  out.type = type;
  out.flags = flags;
  out.fallback = fallback;
  out.min = min;
  out.max = max;
  out.choices = choices;
  out.doc = doc;
  return out;
}
constexpr mekik_option number(const char* key, const char* fallback, double min, double max, const char* doc) {
  return row(key, MEKIK_OPT_INT, 0, fallback, min, max, nullptr, doc);
}
constexpr mekik_option words(const char* key, std::uint32_t flags, const char* fallback, const char* doc) {
  return row(key, MEKIK_OPT_TEXT, flags, fallback, 1, 0, nullptr, doc);
}
constexpr mekik_option duration(const char* key, const char* fallback, const char* doc) {
  return row(key, MEKIK_OPT_DURATION, 0, fallback, 1e6, 86400e9, nullptr, doc);
}

constexpr mekik_option kUse = row("use", MEKIK_OPT_TEXT, 0, nullptr, 1, 64, nullptr, "The component, by name.");
constexpr mekik_option kFile =
    row("file", MEKIK_OPT_PATH, 0, nullptr, 1, 0, nullptr, "The library that has the component; by default the installed one.");
constexpr mekik_option kSha256 =
    row("sha256", MEKIK_OPT_TEXT, 0, nullptr, 64, 64, nullptr, "SHA-256 that the library must have, in hexadecimal digits.");

constexpr std::array kPipeline{
    words("name", 0, nullptr, "What logs and reports call this pipeline."),
    row("extends", MEKIK_OPT_PATH, 0, nullptr, 1, 0, nullptr,
        "A pipeline file that this one changes: tables merge, lists are replaced whole."),
};
constexpr std::array kModel{
    row("path", MEKIK_OPT_PATH, MEKIK_OPT_REQUIRED, nullptr, 1, 0, nullptr, "A model file, or a folder with config.json."),
    words("loader", 0, nullptr, "The loader by name; by default the one for the file's kind."),
    words("page", 0, nullptr, "The architecture page by name; by default the one that the file's architecture matches."),
    row("pages", MEKIK_OPT_PATH, MEKIK_OPT_LIST, "[]", 1, 0, nullptr,
        "Folders with architecture pages of your own; one of the same name as ours replaces it."),
    row("dense", MEKIK_OPT_CHOICE, 0, "f32", 1, 0, "f32|bf16|f16",
        "The form to which weights without a form of their own are decoded at load."),
    number("context", "0", 0, 2147483647, "Most tokens of a sequence; 0: what the model and the memory allow."),
    words("name", 0, nullptr, "What /v1/models shows; by default the file's name."),
    row("task", MEKIK_OPT_CHOICE, 0, "auto", 1, 0, "auto|generate|embed|score",
        "What the model is run for; auto: what its file says that it was made for."),
    row("pooling", MEKIK_OPT_CHOICE, 0, "auto", 1, 0, "auto|mean|cls|last|max|weightedmean|mean_sqrt_len",
        "How an embedding is made of a text's rows; auto: as the file says, or as the page assumes."),
    words("score_tokens", MEKIK_OPT_LIST, "[]",
          "task = \"score\" of a model that generates: the tokens for no and for yes, as the vocabulary spells them."),
    words("pair_template", 0, nullptr,
          "task = \"score\": the text of a pair, with {query} and {document} in it; by default the file's own, or the tokenizer's pair."),
    row("prepared", MEKIK_OPT_BOOL, 0, "true", 0, 0, nullptr,
        "Whether packed weights are kept in a file, so that the next start maps them in place of packing."),
    row("prepared_folder", MEKIK_OPT_PATH, 0, nullptr, 1, 0, nullptr,
        "Where such files lie; by default in $XDG_CACHE_HOME/mekik or ~/.cache/mekik."),
};
constexpr std::array kBackend{
    kUse,
    kFile,
    kSha256,
    number("threads", "0", 0, 1024, "Threads that compute; 0: one per core."),
    row("devices", MEKIK_OPT_INT, MEKIK_OPT_LIST, "[]", 0, 64, nullptr,
        "Indices of the backend's devices, which act as one; empty: the first."),
};
constexpr std::array kCache{
    kUse,
    kFile,
    kSha256,
    number("block_tokens", "32", 1, 4096, "Tokens of a KV block."),
    row("memory", MEKIK_OPT_SIZE, 0, "0", 0, 1e18, nullptr, "Memory for KV blocks and states; 0: planned from what the machine has."),
    row("kv", MEKIK_OPT_TEXT, 0, "auto", 1, 64, nullptr,
        "How keys and values are stored: a form that the backend offers; \"auto\": f32 under F32 weights and where math is exact, else its "
        "first."),
};
constexpr std::array kScheduler{
    kUse,
    kFile,
    kSha256,
    number("max_batch_tokens", "512", 1, 1048576, "Most tokens of one step."),
    number("max_sequences", "64", 1, 65536, "Most sequences of one step."),
};
constexpr std::array kPlain{kUse, kFile, kSha256};
constexpr std::array kDraft{
    kUse,
    kFile,
    kSha256,
    number("max_drafts", "16", 1, 63, "Most tokens that are proposed for a sequence in a step."),
    row("adaptive", MEKIK_OPT_BOOL, 0, "true", 0, 0, nullptr,
        "Whether proposed tokens are run only as far as they pay, by measured acceptance and step times; false: all that there is room "
        "for."),
};
constexpr std::array kServer{
    row("listen", MEKIK_OPT_TEXT, MEKIK_OPT_LIST, "[\"tcp://127.0.0.1:8080\"]", 1, 64, nullptr, "Addresses: tcp://HOST:PORT or unix:PATH."),
    row("api_key", MEKIK_OPT_TEXT, MEKIK_OPT_SECRET, nullptr, 1, 4096, nullptr,
        "The key that requests must carry; without it none is asked for."),
    row("api_keys", MEKIK_OPT_TEXT, MEKIK_OPT_SECRET | MEKIK_OPT_LIST, "[]", 0, 4096, nullptr,
        "Further keys. Who has one is a tenant: schedulers can weigh tenants, and the prefixes of one are not known to another."),
    row("share_prefixes", MEKIK_OPT_BOOL, 0, "false", 0, 0, nullptr,
        "Whether what one key's requests have computed is used for others, too, who can tell by the time what was asked before."),
    row("max_body", MEKIK_OPT_SIZE, 0, "8MiB", 1024, 4294967296.0, nullptr, "Largest body of a request."),
    row("max_header", MEKIK_OPT_SIZE, 0, "16KiB", 1024, 1048576, nullptr, "Largest header of a request."),
    duration("header_timeout", "10s", "Time to receive a request's header."),
    duration("body_timeout", "30s", "Time to receive a request's body."),
    duration("idle_timeout", "60s", "Time that a connection may stay open without a request."),
    duration("stall_timeout", "30s", "Time that a client may take no data of an answer before the request is cancelled."),
    duration("drain_timeout", "30s", "Time that running requests get to end at shutdown."),
    number("max_connections", "1024", 1, 65536, "Most connections at a time; more are closed at once."),
    number("max_queue", "256", 1, 1048576, "Most waiting requests; more get a 429."),
};
constexpr std::array kPlugins{
    words("load", MEKIK_OPT_LIST, "[]", "Libraries with several components, by name or by path."),
    row("dirs", MEKIK_OPT_PATH, MEKIK_OPT_LIST, "[]", 1, 0, nullptr, "Folders to look for libraries in, after the install's own."),
};

template <std::size_t n>
constexpr Rows rows(const std::array<mekik_option, n>& array) {
  return {array.data(), static_cast<std::uint32_t>(n), sizeof(mekik_option)};
}

}  // namespace

const std::vector<CoreTable>& core_tables() {
  static const std::vector<CoreTable> tables{
      {"pipeline", nullptr, nullptr, false, rows(kPipeline), "The pipeline as a whole."},
      {"model", nullptr, nullptr, false, rows(kModel), "What is run."},
      {"backend", "backend", "cpu", false, rows(kBackend), "Where it is computed."},
      {"cache", "cache", "prefix", false, rows(kCache), "Which blocks of keys and values are kept."},
      {"scheduler", "scheduler", "continuous", false, rows(kScheduler), "Which sequences take part in a step."},
      {"sampler", "sampler", nullptr, true, rows(kPlain), "The links of the chain that turns logits into a token, in order."},
      {"draft", "drafter", nullptr, false, rows(kDraft), "What proposes tokens to verify."},
      {"sink", "sink", nullptr, true, rows(kPlain), "Where metrics and events go."},
      {"server", nullptr, nullptr, false, rows(kServer), "The HTTP server."},
      {"plugins", nullptr, nullptr, false, rows(kPlugins), "Where components come from."},
  };
  return tables;
}

const CoreTable& core_table(std::string_view name) {
  const auto& tables = core_tables();
  const auto it = std::find_if(tables.begin(), tables.end(), [&](const CoreTable& table) { return name == table.name; });
  assert(it != tables.end());
  return *it;
}

std::string kind_of(std::string_view kind_id) {
  static constexpr std::string_view kPrefix = "mekik.";
  const std::size_t slash = kind_id.find('/');
  if (kind_id.substr(0, kPrefix.size()) != kPrefix || slash == std::string_view::npos) return {};
  return std::string{kind_id.substr(kPrefix.size(), slash - kPrefix.size())};
}

}  // namespace mekik::config
