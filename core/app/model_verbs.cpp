// check, model, logits: what a pipeline and a model file are, and what the model computes.
#include <cstdio>
#include <map>

#include "app/numbers.hpp"
#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "config/listen.hpp"
#include "engine/evaluate.hpp"

namespace mekik::app {

namespace {

const char* num_name(std::uint32_t num) {
  static constexpr const char* kNames[] = {"?",    "f32", "f16", "bf16", "e8m0",      "ue4m3", "i8",  "u8",  "i32", "e4m3",
                                           "e5m2", "f64", "i16", "i64",  "e8m0_half", "u16",   "u32", "u64", "bool"};
  return num < std::size(kNames) ? kNames[num] : "?";
}

std::string type_name(const program::TensorInfo& tensor) { return tensor.scheme.empty() ? num_name(tensor.num) : tensor.scheme; }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

// Every pipeline is checked, whatever the ones before it had.
int run_check(const Arguments& arguments) {
  Session session;
  ExitCode worst = kSuccess;
  std::map<std::string, std::string> listens;  // who was first on an address
  for (const std::string& operand : arguments.operands) {
    try {
      const auto pipeline = session.pipeline(arguments, operand);
      if (!pipeline) continue;
      const auto model = session.open(*pipeline);
      need(model->scoring_status());  // what no server could do with it
      std::printf("%s: fits together\n", operand.c_str());
      std::printf("  model %s, page %s, backend %s on %s\n", model->name().c_str(), model->program().page.c_str(),
                  pipeline->backend.name.c_str(), model->device().name);
      std::printf("  chat template: %s\n", model->chat_template() ? "yes" : model->template_status().text.c_str());
      std::printf("  tokenizer: %s\n", model->tokenizer() ? model->tokenizer()->kind().c_str() : model->tokenizer_status().text.c_str());
      std::fputs(model->plan().render().c_str(), stdout);
      for (const std::string& note : model->notes()) std::printf("  note: %s\n", note.c_str());
      for (const std::string& address : pipeline->server.listen) {
        const auto [other, first] = listens.emplace(address, operand);
        if (!first && !config::is_any_port(address))
          std::printf("  note: %s listens on %s, too, so one command cannot serve both\n", other->second.c_str(), address.c_str());
      }
    } catch (const Failure& failure) {
      std::fflush(stdout);
      std::fprintf(stderr, "%s%s", failure.text.c_str(), failure.text.ends_with('\n') ? "" : "\n");
      worst = std::max(worst, failure.code);
    }
  }
  return worst;
}

void print_tensors(const program::ModelMeta& meta) {
  for (const program::TensorInfo& t : meta.tensors)
    std::printf("  %-44s %-8s %-22s %s\n", t.name.c_str(), type_name(t).c_str(), shape_text(t.shape).c_str(), human_bytes(t.bytes).c_str());
}

struct Contents {
  std::uint64_t parameters = 0;
  std::vector<std::pair<std::string, std::uint64_t>> types;  // in the order of the file, with their bytes
};

Contents contents_of(const program::ModelMeta& meta) {
  Contents out;
  for (const program::TensorInfo& t : meta.tensors) {
    std::uint64_t elements = 1;
    for (const std::int64_t size : t.shape) elements *= static_cast<std::uint64_t>(size);
    out.parameters += elements;
    const std::string type = type_name(t);
    auto it = std::find_if(out.types.begin(), out.types.end(), [&](const auto& entry) { return entry.first == type; });
    if (it == out.types.end()) it = out.types.insert(out.types.end(), {type, 0});
    it->second += t.bytes;
  }
  return out;
}

// What the model takes on this machine: the plan of the pipeline that a model alone means, or why there is none.
struct Needs {
  std::unique_ptr<engine::Model> model;
  std::string why;
};

Needs needs_of(Session& session, const Arguments& arguments) {
  Needs needs;
  try {
    const auto pipeline = session.pipeline(arguments, arguments.operands[0]);
    if (pipeline) needs.model = session.open(*pipeline);
  } catch (const Failure& failure) {
    needs.why = failure.text.substr(0, failure.text.find_last_not_of('\n') + 1);
  }
  return needs;
}

json::object needs_json(const Needs& needs) {
  if (needs.model == nullptr) return {{"fits", false}, {"why", needs.why}};
  const engine::MemoryPlan& plan = needs.model->plan();
  return {{"fits", true},
          {"backend", needs.model->pipeline().backend.name},
          {"weight_bytes", plan.weight_bytes},
          {"kv", plan.kv},
          {"kv_bytes_per_token", plan.token_bytes},
          {"kv_bytes_per_window", plan.window_bytes},
          {"work_bytes", plan.work_bytes + plan.host_bytes},
          {"machine_bytes", plan.machine_bytes},
          {"longest", plan.longest()}};
}

// What a model is for is what it says: logits, an embedding or a score.
program::BuildOptions any_output(const Session& session) {
  program::BuildOptions options;
  options.outputs.clear();
  options.page = session.page_of_file();
  return options;
}

json::object model_json(Session& session, const Arguments& arguments, const weights::ModelFile& file) {
  const program::ModelMeta& meta = file.meta();
  const Contents contents = contents_of(meta);
  json::object types;
  for (const auto& [type, bytes] : contents.types) types[type] = bytes;
  json::object out{{"path", meta.path},         {"format", meta.format}, {"bytes", file.file_bytes()}, {"parameters", contents.parameters},
                   {"types", std::move(types)}, {"config", meta.config}};
  if (!file.quantization().scheme.empty())
    out["quantization"] = json::object{{"method", file.quantization().method}, {"scheme", file.quantization().scheme}};
  const auto built = session.pages_of_file().build(meta, any_output(session));
  if (built)
    out["program"] = json::object{{"page", built->page},
                                  {"layers", built->layers},
                                  {"width", built->width},
                                  {"vocabulary", built->vocab},
                                  {"context", built->context}};
  out["needs"] = needs_json(needs_of(session, arguments));
  if (!arguments.flag("tensors")) return out;
  if (!file.quantization().method.empty()) out["quantized_by"] = file.quantization().method;
  json::array rows;
  for (const program::TensorInfo& t : meta.tensors)
    rows.push_back(
        json::object{{"name", t.name}, {"type", type_name(t)}, {"shape", json::array(t.shape.begin(), t.shape.end())}, {"bytes", t.bytes}});
  out["tensors"] = std::move(rows);
  return out;
}

// The status of the tokenizer, which is looked at after the rest.
Status print_summary(const weights::ModelFile& file) {
  const program::ModelMeta& meta = file.meta();
  const Contents contents = contents_of(meta);
  std::printf("%s: %s, %s, %zu tensors, %.1f million parameters\n", meta.path.c_str(), meta.format.c_str(),
              human_bytes(file.file_bytes()).c_str(), meta.tensors.size(), static_cast<double>(contents.parameters) / 1e6);
  for (const auto& [type, bytes] : contents.types) std::printf("  %-8s %s\n", type.c_str(), human_bytes(bytes).c_str());
  if (!file.quantization().scheme.empty())
    std::printf("  quantized by %s: scheme %s\n", file.quantization().method.c_str(), file.quantization().scheme.c_str());
  for (const std::string& note : file.notes()) std::printf("  note: %s\n", note.c_str());
  const auto metadata = file.tokenizer();
  Status status = metadata.status();
  std::string tokenizer = "none";
  if (status.ok() && !(*metadata).is_null()) {
    const auto made = text::Tokenizer::create(*metadata);
    status = made.status();
    if (made) tokenizer = (*made)->kind() + ", " + std::to_string((*made)->size()) + " tokens";
  }
  std::printf("  tokenizer: %s\n", status.ok() ? tokenizer.c_str() : "cannot be used");
  auto source = file.chat_template();
  std::printf("  chat template: %s\n", source ? "yes" : "none");
  return status;
}

// `said`: notes that stand above already.
void print_needs(const Needs& needs, const program::Program& program, const std::vector<std::string>& said) {
  if (needs.model == nullptr) {
    std::printf("  does not run here: %s\n", needs.why.c_str());
    return;
  }
  const engine::MemoryPlan& plan = needs.model->plan();
  std::printf("  needs %s for weights as the backend %s packs them, %s for work and the program itself\n",
              human_bytes(plan.weight_bytes).c_str(), needs.model->pipeline().backend.name.c_str(),
              human_bytes(plan.work_bytes + plan.host_bytes + plan.slot_bytes).c_str());
  if (plan.token_bytes == 0) return;
  std::printf("  keys and values: %s a token in %s", human_bytes(plan.token_bytes).c_str(), plan.kv.c_str());
  if (plan.window_bytes > 0) std::printf(", and %s a sequence in layers with a window", human_bytes(plan.window_bytes).c_str());
  std::printf("\n  fits: %llu tokens of context in 85%% of this machine's %s; the model was made for %llu\n",
              static_cast<unsigned long long>(plan.longest()), human_bytes(plan.machine_bytes).c_str(),
              static_cast<unsigned long long>(program.context));
  for (const std::string& note : needs.model->notes())
    if (std::find(said.begin(), said.end(), note) == said.end()) std::printf("  note: %s\n", note.c_str());
}

int run_model(const Arguments& arguments) {
  log::say_once();  // the file is opened twice: as it is, and as a model that runs
  Session session;
  const auto file = session.open_file(arguments, arguments.operands[0]);
  if (arguments.flag("json")) {
    std::puts(json::serialize(model_json(session, arguments, *file)).c_str());
    return kSuccess;
  }
  Status tokenizer = print_summary(*file);
  if (arguments.flag("tensors")) print_tensors(file->meta());
  if (file->meta().config.is_null()) {
    std::puts("  page: none, for there is no config.json beside it, which says what the model is");
    return kSuccess;
  }
  // What it needs: the page it matches, and whether all of it fits that page.
  auto built = session.pages_of_file().build(file->meta(), any_output(session));
  const std::string& path = file->meta().path;
  if (!built) throw failed(built.status().text.starts_with(path) ? built.status() : built.status().in(path));
  const program::Program program = program::fold(std::move(*built));
  std::printf("  page %s: %llu layers, width %llu, vocabulary %llu, context %llu\n", program.page.c_str(),
              static_cast<unsigned long long>(program.layers), static_cast<unsigned long long>(program.width),
              static_cast<unsigned long long>(program.vocab), static_cast<unsigned long long>(program.context));
  for (const std::string& line : program.assumed) std::printf("  assumed: %s\n", line.c_str());
  for (const std::string& line : program.warnings) std::printf("  warning: %s\n", line.c_str());
  for (const std::string& line : program.notes) std::printf("  note: %s\n", line.c_str());
  if (tokenizer.ok()) {
    std::vector<std::string> said = file->notes();
    for (const std::vector<std::string>& list : {program.assumed, program.notes}) said.insert(said.end(), list.begin(), list.end());
    print_needs(needs_of(session, arguments), program, said);
  }
  if (arguments.flag("program")) std::fputs(program::to_text(program).c_str(), stdout);
  if (!tokenizer.ok()) throw failed(std::move(tokenizer).in(path));
  return kSuccess;
}

int run_logits(const Arguments& arguments) {
  Session session;
  const std::vector<std::int32_t> tokens = parse_tokens(arguments.text("tokens"));
  auto pipeline = session.pipeline(arguments, arguments.operands[0]);
  if (!pipeline) return kSuccess;
  pipeline->model.planned = static_cast<std::uint32_t>(tokens.size());
  const auto model = session.open(*pipeline);
  const std::string& output = program::output_of(model->program()).name;
  if (output != "logits" && output != "score")
    throw failed(unsupported("the model is run for its " + output +
                             ", not for logits; `mekik embed` shows that, --set model.task=generate runs "
                             "it for logits where it has any"));
  session.load(*model);
  if (output == "score") {  // the numbers under a reranker's scores, as the model gives them
    std::string row_text;
    need(engine::evaluate(*model, tokens, arguments.flag("all"), [&](std::span<const float> row) { append_json(row, row_text); }));
    std::puts(("{\"tokens\":[" + arguments.text("tokens") + "],\"score\":" + row_text + "}").c_str());
    return kSuccess;
  }
  // Written as it comes: all rows of a long text are too many to keep as JSON values.
  std::string out = "{\"tokens\":[" + arguments.text("tokens") + "],\"logits\":[";
  bool first = true;
  need(engine::evaluate(*model, tokens, arguments.flag("all"), [&](std::span<const float> row) {
    if (!first) out += ',';
    first = false;
    append_json(row, out);
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  }));
  std::puts("]}");
  return kSuccess;
}

}  // namespace

const Verb kCheck{"check",
                  "PIPELINE...",
                  "All mistakes at once, the memory plan, what works together; no weights are read.",
                  "mekik check pipelines/chat.toml",
                  [](po::options_description&) {},
                  1,
                  1000,
                  true,
                  run_check};

const Verb kModel{"model",
                  "MODEL",
                  "What is in a model file or folder, what it needs, and what fits.",
                  "mekik model model.gguf --program",
                  [](po::options_description& o) {
                    o.add_options()                                                              //
                        ("tensors", po::bool_switch(), "every tensor with its type and shape")   //
                        ("program", po::bool_switch(), "the program that its page makes of it")  //
                        ("json", po::bool_switch(), "as JSON");
                  },
                  1,
                  1,
                  true,
                  run_model};

const Verb kLogits{"logits",
                   "MODEL-OR-PIPELINE",
                   "The logits after the last token, or after each, as JSON.",
                   "mekik logits model.gguf --tokens 1,2,3 --set backend.math=exact",
                   [](po::options_description& o) {
                     o.add_options()                                                                   //
                         ("tokens", po::value<std::string>()->required(), "ids, separated by commas")  //
                         ("all", po::bool_switch(), "logits of every position")                        //
                         ("json", po::bool_switch(), "{\"tokens\":[...],\"logits\":[[...]]}: the only form there is");
                   },
                   1,
                   1,
                   true,
                   run_logits};

}  // namespace mekik::app
