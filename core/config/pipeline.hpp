// A pipeline file, read, merged, checked: what the engine and the server are built from.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/value.hpp"

namespace mekik::config {

class Table;  // a validated table of a component's options; what a mekik_config points to (config/table.hpp)

// One use of a component: [backend] use = "cpu" and the keys that the component declares.
struct Use {
  std::string kind;  // "backend", "scheduler", ... (no revision)
  std::string name;
  std::string file;                      // a plugin library named by path; empty: by name
  std::string sha256;                    // of that library; empty: not checked
  std::shared_ptr<const Table> options;  // shared: instances of the component read it as long as they live
  Origin origin;
};

struct ModelUse {
  std::string path;                       // absolute, or relative to the working directory
  std::string loader;                     // empty: by the file's kind
  std::string page;                       // architecture page by name; empty: by the file
  std::vector<std::string> pages;         // folders with pages beside ours
  std::string dense = "f32";              // the form to which schemes without a form are decoded at load: "f32", "bf16", "f16"
  std::uint32_t context = 0;              // tokens a sequence may have; 0: the model's own, or what the memory allows
  std::string name;                       // what /v1/models shows; empty: the file's stem
  std::string task = "auto";              // "generate", "embed", "score"
  std::string pooling;                    // one of program::poolings(); empty: as the file says
  std::vector<std::string> score_tokens;  // for no and for yes; empty: the model has a score of its own
  bool prepared = true;                   // packed weights are kept in a file from one start to the next
  std::string prepared_folder;            // empty: in the user's cache
  std::string pair_template;              // with {query} and {document}; empty: the file's
  Origin origin;
  // Not a key: tokens of the one sequence that this run is for, where they are known. LongRoPE and dynamic NTK choose by it.
  std::uint32_t planned = 0;
};

struct ServerUse {
  std::vector<std::string> listen;    // "tcp://127.0.0.1:8080", "unix:/path"
  std::vector<std::string> api_keys;  // none: nobody is asked
  bool share_prefixes = false;        // between keys
  std::uint64_t max_body_bytes = 0, max_header_bytes = 0, header_timeout_ns = 0, body_timeout_ns = 0, idle_timeout_ns = 0,
                stall_timeout_ns = 0, drain_timeout_ns = 0;
  std::uint32_t max_connections = 0, max_queue = 0;
  Origin origin;
};

// One line of --print-config.
struct Setting {
  std::string table;  // "[scheduler]", "[[sampler]]"; each use of a component in a list starts with its key `use`
  std::string key;
  std::string value;  // spelled as TOML; a secret as "***"
  std::string from;   // "chat.toml:14:20", "--set:1:9", "default"
};

struct Pipeline {
  std::string name;
  ModelUse model;
  Use backend, cache, scheduler;
  std::vector<Use> samplers, sinks;
  std::optional<Use> draft;
  ServerUse server;
  // Keys of the core inside the component slots.
  std::uint32_t threads = 0;  // 0: one per core
  std::vector<std::uint32_t> devices;
  std::uint32_t block_tokens = 32;
  std::uint64_t cache_bytes = 0;   // 0: planned from what the machine has
  std::uint64_t cache_tokens = 0;  // not a key: of a draft model, which needs no more than the model; 0: as the memory allows
  std::string kv = "auto";
  std::uint32_t max_batch_tokens = 512, max_sequences = 64;
  std::uint32_t max_drafts = 0;  // of a sequence in a step; 0 without [draft]
  bool adaptive_drafts = true;
  bool batch_tokens_given = false;                    // max_batch_tokens is not the default
  std::vector<std::string> plugin_load, plugin_dirs;  // [plugins] load, dirs
  std::vector<Setting> settings;                      // all of it, in the order of core_tables()
};

// Gives the declared option rows of a component while a pipeline is checked; implemented by plugin::Registry.
class Components {
 public:
  virtual ~Components() = default;
  // The component, loading its library if need be. Errors list what is installed and what was probably meant.
  virtual Result<const mekik_component*> component(const std::string& kind, const Use& use) = 0;
  virtual Status add(const std::vector<std::string>& load, const std::vector<std::string>& dirs) = 0;
};

struct Override {  // --set key.path=value; the value as TOML, a bare word is a text
  std::string text;
};

// Reads a pipeline file, what it extends, and the overrides; checks every key. All mistakes are in `diagnostics`.
std::optional<Pipeline> load_pipeline(const std::string& path, const std::vector<Override>& overrides, Components& components,
                                      Diagnostics& diagnostics);
// The pipeline that a model file alone means: cpu, cache prefix, continuous, standard, no sink.
std::optional<Pipeline> default_pipeline(const std::string& model_path, const std::vector<Override>& overrides, Components& components,
                                         Diagnostics& diagnostics);
// The merged pipeline as TOML, each line with a comment that says where its value comes from.
std::string print_pipeline(const Pipeline& pipeline);
// A mistake of the pipeline that shows only once its model is open: Code::misconfigured, "place: error: 'key' in [table]: what".
Status misconfigured(const Pipeline& pipeline, std::string_view table, std::string_view key, const std::string& what);
// The JSON Schema (2020-12) of pipeline files, from the core's rows and every installed component's.
std::string json_schema(const std::vector<const mekik_component*>& components);

}  // namespace mekik::config
