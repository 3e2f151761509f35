#include "engine/model.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <numeric>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/table.hpp"
#include "engine/draft_open.hpp"
#include "engine/model_text.hpp"
#include "engine/prepared_weights.hpp"
#include "engine/runtime.hpp"
#include "plugin/host.hpp"
#include "plugin/kinds.hpp"
#include "text/pair.hpp"

namespace mekik::engine {

namespace {

// Complaints about the file name it, once: some come from who names it already. Those about the pipeline have their place.
Status about(const std::string& path, Status status) {
  if (status.ok() || status.code == Code::misconfigured || status.text.find(path) != std::string::npos) return status;
  return std::move(status).in(path);
}

program::Task task_of(const std::string& name) {
  return name == "generate" ? program::Task::generate
         : name == "embed"  ? program::Task::embed
         : name == "score"  ? program::Task::score
                            : program::Task::automatic;
}

// A file's name without its extension; a folder's name as it is, for it may have dots ("model-0.5B").
std::string name_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::filesystem::path{path}.stem().string();
  const std::filesystem::path folder = std::filesystem::absolute(path, error).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

}  // namespace

struct Model::Impl {
  config::Pipeline pipeline;
  std::string name;
  // The file and the store live until the weights are loaded, so that no page of the file stays in use.
  std::unique_ptr<weights::ModelFile> file;
  std::unique_ptr<weights::Store> store;
  std::future<Result<ModelText>> making;  // is text once it has been waited for
  ModelText text;
  program::Program program;
  program::Task task = program::Task::generate;
  std::vector<std::int32_t> score_tokens;
  Scoring scoring;
  Status scoring_status;
  std::string pair_template;
  std::vector<std::string> notes;
  plugin::Component component;
  mekik_device* device = nullptr;
  std::unique_ptr<PreparedWeights> prepared;
  mekik_exec* exec = nullptr;
  mekik_device_info device_info{};
  mekik_limits limits{};
  mekik_plan backend_plan{};
  MemoryPlan plan;
  bool cache_keeps = false;  // what no sequence holds
  bool cache_tier = false;   // and beyond the device's memory
  std::string fingerprint;   // for that: of weights and program
  bool loaded = false;
  std::unique_ptr<Model> draft;  // of a drafter that has a model

  const mekik_backend& backend() const { return component.table<mekik_backend>(); }
  ~Impl() {
    if (prepared != nullptr) prepared->finish();
    if (exec != nullptr) backend().exec_free(exec);
    if (device != nullptr) backend().close(device);
  }

  Status open_file(plugin::Registry& registry);
  Status open_text();
  Status wait_for_text();
  Status open_device(plugin::Registry& registry);
  bool rounds_nothing() const;
  Status choose_kv_form();
  Status check_components(plugin::Registry& registry);
  Status check_task();
  Status build(plugin::Registry& registry, const program::Pages& pages);
  program::Supports supports(const program::Program& candidate);
  Status pack();
};

Status Model::Impl::open_file(plugin::Registry& registry) {
  MEKIK_TRY(opened, weights::ModelFile::open(registry, pipeline.model.path, pipeline.model.loader));
  file = std::move(opened);
  name = pipeline.model.name.empty() ? name_of(pipeline.model.path) : pipeline.model.name;
  plan.file_bytes = file->file_bytes();
  return {};
}

// Making the tokenizer takes about as long as building the program, so it happens beside that.
Status Model::Impl::open_text() {
  MEKIK_TRY(metadata, file->tokenizer());
  auto source = file->chat_template();
  if (!source && source.status().code != Code::invalid) return source.status();
  making = std::async(std::launch::async, make_text, std::move(metadata), source ? std::optional{std::move(*source)} : std::nullopt);
  return {};
}

Status Model::Impl::wait_for_text() {
  MEKIK_TRY(made, making.get());
  text = std::move(made);
  if (text.chat_template == std::nullopt && text.has_template) notes.push_back(text.template_status.text);
  return {};
}

Status Model::Impl::open_device(plugin::Registry& registry) {
  MEKIK_TRY(found, registry.find(pipeline.backend));
  component = found;
  const std::vector<std::uint32_t> devices = pipeline.devices.empty() ? std::vector<std::uint32_t>{0} : pipeline.devices;
  for (const std::uint32_t index : devices) {
    device_info = {};
    device_info.struct_size = sizeof device_info;
    const mekik_status status = backend().probe(index, &device_info);
    if (status == MEKIK_E_INVALID)
      return config::misconfigured(pipeline, "[backend]", "devices",
                                   "the backend " + mekik::quoted(pipeline.backend.name) + " has no device " + std::to_string(index) +
                                       ": " + plugin::take_failure());
    MEKIK_CHECK_OK(plugin::to_status(status, "backend " + pipeline.backend.name + ": device " + std::to_string(index)));
  }
  return plugin::to_status(backend().open(component.host, devices.data(), static_cast<std::uint32_t>(devices.size()),
                                          plugin::abi_config(*pipeline.backend.options), &device),
                           "backend " + pipeline.backend.name + ": open");
}

// Whether F16 under the keys would be the only rounding: the weights are F32, or the backend is told to compute exactly.
bool Model::Impl::rounds_nothing() const {
  const config::Table& options = *pipeline.backend.options;
  if (options.find("math") != nullptr && options.text("math") == "exact") return true;
  std::int64_t single = 0, all = 0;
  for (const program::TensorInfo& tensor : file->meta().tensors) {
    if (tensor.shape.size() < 2) continue;
    const std::int64_t values = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>{});
    all += values;
    if (tensor.scheme.empty() && tensor.num == MEKIK_F32) single += values;
  }
  return 2 * single > all;
}

Status Model::Impl::choose_kv_form() {
  std::vector<std::string> names;
  for (const mekik_kv_form& form : plugin::kv_forms(*component.raw)) names.emplace_back(form.name);
  const auto offered = [&](const std::string& form) { return std::find(names.begin(), names.end(), form) != names.end(); };
  if (pipeline.kv == "auto" && !names.empty()) pipeline.kv = offered("f32") && rounds_nothing() ? "f32" : names.front();
  if (offered(pipeline.kv)) return {};
  return config::misconfigured(pipeline, "[cache]", "kv",
                               "the backend " + mekik::quoted(pipeline.backend.name) + " does not store " + mekik::quoted(pipeline.kv) +
                                   "; it stores " + (names.empty() ? "no state" : join(names, ", ")));
}

// What the components say about their options, before any weight is read. Not the sinks': making one opens its file.
Status Model::Impl::check_components(plugin::Registry& registry) {
  MEKIK_TRY(links, sampler_links(registry, pipeline));
  const auto chain = sample::Chain::create(links, vocab_view(text.tokenizer.get(), static_cast<std::uint32_t>(program.vocab)), "{}");
  if (!chain) return chain.status();
  if (pipeline.draft) {
    if (task != program::Task::generate)
      return config::misconfigured(pipeline, "[draft]", "use", "the model is not run to generate text, so there is nothing to propose");
    const auto drafter =
        make_drafter(registry, *pipeline.draft, vocab_view(text.tokenizer.get(), static_cast<std::uint32_t>(program.vocab)));
    if (!drafter) return drafter.status();
    if ((device_info.caps & MEKIK_CAP_ROW_INVARIANT) == 0)
      notes.push_back("the backend " + pipeline.backend.name +
                      " rounds by what is computed together, so with [draft] an answer may differ where two tokens are about as likely");
  }
  const auto scheduler = make_instance<mekik_scheduler, mekik_sched>(registry, pipeline.scheduler);
  if (!scheduler) return scheduler.status();
  const auto cache = make_instance<mekik_cache_policy, mekik_cache>(registry, pipeline.cache);
  if (!cache) return cache.status();
  // Asked about something that nobody needs room for, it says whether it would keep it.
  const mekik_node node{};
  std::uint32_t chosen = 0;
  const mekik_cache_policy& policy = *(*cache).operator->();
  cache_tier = has_tier(policy, cache->get());
  if (MEKIK_HAS(mekik_cache_policy, &policy, host_bytes) && policy.host_bytes != nullptr) plan.tier_bytes = policy.host_bytes(cache->get());
  cache_keeps = (*cache)->victims(cache->get(), &node, 1, sizeof node, 0, &chosen) == 0;
  return {};
}

// What the program turned out to give, against what the pipeline says of scores and pooling.
Status Model::Impl::check_task() {
  const config::ModelUse& use = pipeline.model;
  const std::string& output = program::output_of(program).name;
  task = output == "logits"  ? (use.task == "score" ? program::Task::score : program::Task::generate)
         : output == "score" ? program::Task::score
                             : program::Task::embed;
  const auto wrong = [&](const char* key, const std::string& what) { return config::misconfigured(pipeline, "[model]", key, what); };
  if (task != program::Task::embed && !use.pooling.empty())
    return wrong("pooling", "the model is not run for embeddings; set task = \"embed\", or leave pooling out");
  if (task != program::Task::score && !use.pair_template.empty())
    return wrong("pair_template", "the model is not run for scores; set task = \"score\", or leave it out");
  pair_template = use.pair_template.empty() && task == program::Task::score ? text.pair_template : use.pair_template;
  if (!pair_template.empty())
    if (const Status status = text::check_pair_template(pair_template); !status.ok()) return wrong("pair_template", status.text);
  if (task == program::Task::score && pair_template.empty() && !program::needs_whole_sequences(program))
    return wrong("pair_template",
                 "the file does not say how this model sees a query and a document; give the text, with {query} and {document}");
  if (output == "score") {
    const auto how = scoring_of(file->meta(), program::output_size(program));
    scoring_status = how.status();
    if (how) scoring = *how;
    else notes.push_back(scoring_status.text);
  } else {
    scoring = {Scoring::Kind::softmax, 1};
  }
  if (output != "logits" || task != program::Task::score) {
    if (use.score_tokens.empty()) return {};
    return wrong("score_tokens", task == program::Task::score ? "the model has a score of its own; leave score_tokens out"
                                                              : "the model is not run for scores; set task = \"score\", or leave it out");
  }
  if (use.score_tokens.size() != 2)
    return wrong("score_tokens",
                 "this model has no score of its own, so two tokens must stand for no and yes: score_tokens = [\"no\", \"yes\"]");
  if (text.tokenizer == nullptr) return text.tokenizer_status;
  for (const std::string& token : use.score_tokens) {
    const std::vector<std::int32_t> ids = text.tokenizer->encode(token, false, true);
    if (ids.size() != 1)
      return wrong("score_tokens", mekik::quoted(token) + " is " + std::to_string(ids.size()) + " tokens; it must be one");
    score_tokens.push_back(ids[0]);
  }
  if (score_tokens[0] == score_tokens[1])
    return wrong("score_tokens", mekik::quoted(use.score_tokens[0]) + " and " + mekik::quoted(use.score_tokens[1]) +
                                     " are the same token, so that every score would be 0.5");
  return {};
}

program::Supports Model::Impl::supports(const program::Program& candidate) {
  const auto view = std::make_shared<program::ProgramView>(candidate, store->forms());  // shared: std::function copies
  return [this, view](std::uint32_t op) { return backend().supports(device, view->get(), op) != 0; };
}

Status Model::Impl::build(plugin::Registry& registry, const program::Pages& pages) {
  program::BuildOptions options;
  options.context = pipeline.model.context > 0 ? pipeline.model.context : pipeline.model.planned;
  options.kv = pipeline.kv;
  options.page = pipeline.model.page;
  options.outputs.clear();
  options.task = task_of(pipeline.model.task);
  options.pooling = pipeline.model.pooling;
  if (const auto all = pages.names(); !options.page.empty() && std::find(all.begin(), all.end(), options.page) == all.end()) {
    const auto near = closest(options.page, all);
    return config::misconfigured(
        pipeline, "[model]", "page",
        "there is no architecture page " + mekik::quoted(options.page) + (near ? "; did you mean " + mekik::quoted(*near) + "?" : ""));
  }
  MEKIK_TRY(built, pages.build(file->meta(), options));
  program = program::fold(std::move(built));
  MEKIK_CHECK_OK(program::verify(program).in("internal: the folded program"));
  if (pipeline.model.context > program.reach)
    return config::misconfigured(
        pipeline, "[model]", "context",
        std::to_string(pipeline.model.context) + " tokens, but the model was made for at most " + std::to_string(program.reach));

  MEKIK_TRY(opened, weights::Store::open(registry, *file, program, pipeline.model.dense));
  store = std::move(opened);
  for (program::Tensor& tensor : program.tensors)
    if (tensor.weight >= 0) tensor.scheme = store->scheme(static_cast<std::size_t>(tensor.weight));
  MEKIK_TRY(lowered, program::lower(
                         std::move(program), pipeline.backend.name, [this](const program::Program& p) { return supports(p); },
                         [] { return plugin::take_failure(); }));
  program = std::move(lowered);
  MEKIK_CHECK_OK(program::verify(program).in("internal: the lowered program"));
  MEKIK_CHECK_OK(wait_for_text());
  MEKIK_CHECK_OK(check_task());
  for (const std::string& warning : program.warnings) log::warning("model", warning);
  for (const std::vector<std::string>& list : {program.assumed, program.notes, store->notes()})
    notes.insert(notes.end(), list.begin(), list.end());
  if (text.tokenizer != nullptr && text.tokenizer->size() > program.vocab)
    return invalid("the tokenizer has " + std::to_string(text.tokenizer->size()) + " tokens, but the model's embedding only " +
                   std::to_string(program.vocab) + " rows");
  return {};
}

Model::Model() : impl_{std::make_unique<Impl>()} {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::open(const config::Pipeline& pipeline, plugin::Registry& registry, const program::Pages& pages) {
  std::unique_ptr<Model> model{new Model};
  Impl& m = *model->impl_;
  m.pipeline = pipeline;
  const std::string& path = pipeline.model.path;
  MEKIK_CHECK_OK(about(path, m.open_file(registry)));
  MEKIK_CHECK_OK(about(path, m.open_text()));
  MEKIK_CHECK_OK(m.open_device(registry));
  MEKIK_CHECK_OK(m.choose_kv_form());
  MEKIK_CHECK_OK(about(path, m.build(registry, pages)));
  MEKIK_CHECK_OK(m.check_components(registry));
  // A run of one sequence may go as far as the model's scaling, if that is what it is for.
  const bool far = pipeline.model.planned > m.program.context && pipeline.model.planned <= m.program.reach;
  const auto context = static_cast<std::uint32_t>(pipeline.model.context > 0 ? pipeline.model.context
                                                  : far                      ? m.program.reach
                                                                             : m.program.context);
  const program::ProgramView view{m.program, m.store->forms()};
  const auto ask = [&](const mekik_limits& limits, mekik_plan& plan) {
    plan = {};
    plan.struct_size = sizeof plan;
    return plugin::to_status(m.backend().plan(m.device, view.get(), &limits, &plan), "backend " + pipeline.backend.name + ": plan");
  };
  const std::uint64_t vocab_bytes = m.text.tokenizer == nullptr ? 0 : std::uint64_t{m.text.tokenizer->size()} * 120;
  MEKIK_CHECK_OK(plan_memory(m.pipeline, m.program, context, vocab_bytes, m.cache_keeps, ask, m.limits, m.backend_plan, m.plan));
  if (m.plan.context < pipeline.model.context)
    return config::misconfigured(pipeline, "[model]", "context",
                                 std::to_string(pipeline.model.context) + " tokens, but the cache holds " + std::to_string(m.plan.context) +
                                     "; raise memory in [cache]");
  MEKIK_TRY(draft, open_draft(pipeline, *model, registry, pages, m.notes));
  m.draft = std::move(draft);
  if (m.draft) m.plan.draft_bytes = m.draft->plan().total();
  if (pipeline.model.context == 0 && m.plan.context < m.program.context) {
    const bool step = program::needs_whole_sequences(m.program) && m.plan.context == m.limits.max_tokens;
    m.notes.push_back("the model was made for " + std::to_string(m.program.context) + " tokens, but " +
                      (step ? "a step has at most " : "the cache holds ") + std::to_string(m.plan.context) +
                      ": longer requests are refused; raise " + (step ? "scheduler.max_batch_tokens" : "cache.memory") + " for more");
  }
  return model;
}

Status Model::Impl::pack() {
  for (std::uint32_t t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].weight < 0) continue;
    const mekik_weight weight = store->weight(t);
    Status status = plugin::to_status(backend().weight(exec, &weight), "weight " + program.tensors[t].name);
    if (!status.ok() && !store->failure().ok()) status = store->failure();  // the reason itself, which names the weight
    MEKIK_CHECK_OK(about(pipeline.model.path, std::move(status)));
  }
  return {};
}

Status Model::load() {
  Impl& m = *impl_;
  if (m.loaded) return internal_error("a model is loaded once");
  {
    const program::ProgramView view{m.program, m.store->forms()};
    MEKIK_CHECK_OK(plugin::to_status(m.backend().compile(m.device, view.get(), &m.limits, &m.exec),
                                     "backend " + m.pipeline.backend.name + ": compile"));
    const PreparedWeights::Of of{m.pipeline, m.component, m.device_info, *m.file, *m.store, m.program, m.name, m.backend_plan.weight_bytes};
    m.prepared = std::make_unique<PreparedWeights>(of, m.exec);
    if (!m.prepared->map(of)) {
      const auto start = std::chrono::steady_clock::now();
      MEKIK_CHECK_OK(m.pack());
      m.prepared->keep(of, std::chrono::steady_clock::now() - start);
    }
  }
  if (m.cache_tier) {
    MEKIK_TRY(print, weights::content_key(*m.file, m.program));
    m.fingerprint.assign(print.begin(), print.end());
  }
  m.store.reset();
  m.file.reset();
  m.loaded = true;
  return m.draft ? m.draft->load() : Status{};
}

const Model* Model::draft() const { return impl_->draft.get(); }
const config::Pipeline& Model::pipeline() const { return impl_->pipeline; }
const std::string& Model::name() const { return impl_->name; }
const MemoryPlan& Model::plan() const { return impl_->plan; }
const program::Program& Model::program() const { return impl_->program; }
const text::Tokenizer* Model::tokenizer() const { return impl_->text.tokenizer.get(); }
const Status& Model::tokenizer_status() const { return impl_->text.tokenizer_status; }
const text::ChatTemplate* Model::chat_template() const { return impl_->text.chat_template ? &*impl_->text.chat_template : nullptr; }
const Status& Model::template_status() const { return impl_->text.template_status; }
program::Task Model::task() const { return impl_->task; }
const std::vector<std::int32_t>& Model::score_tokens() const { return impl_->score_tokens; }
const Scoring& Model::scoring() const { return impl_->scoring; }
const Status& Model::scoring_status() const { return impl_->scoring_status; }
const std::string& Model::pair_template() const { return impl_->pair_template; }
const std::vector<std::string>& Model::notes() const { return impl_->notes; }
std::uint32_t Model::vocab() const { return static_cast<std::uint32_t>(impl_->program.vocab); }
std::uint32_t Model::context() const { return impl_->plan.context; }
void Model::make_resident(const std::atomic<bool>& stop) const { plugin::make_resident(impl_->component.host, stop); }
const std::string& Model::fingerprint() const { return impl_->fingerprint; }
const mekik_backend& Model::backend() const { return impl_->backend(); }
mekik_exec* Model::exec() const { return impl_->exec; }
const mekik_plan& Model::backend_plan() const { return impl_->backend_plan; }
const mekik_limits& Model::limits() const { return impl_->limits; }
const mekik_backend_measure* Model::measure() const {
  const auto extension = impl_->component.raw->extension;
  return extension == nullptr ? nullptr : static_cast<const mekik_backend_measure*>(extension(MEKIK_BACKEND_MEASURE));
}
mekik_device* Model::opened_device() const { return impl_->device; }
const mekik_device_info& Model::device() const { return impl_->device_info; }

}  // namespace mekik::engine
