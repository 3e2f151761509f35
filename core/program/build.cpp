// The build pass: a page's lines, layer by layer, to a program.
#include <algorithm>

#include "base/text.hpp"
#include "program/compact.hpp"
#include "program/emitter.hpp"

namespace mekik::program {

namespace {

constexpr std::int64_t kMaxLayers = 4096;
constexpr const char* kOutputs[] = {"logits", "hidden", "embedding", "score"};

Datum poison() {
  Datum out;
  out.type = Datum::Type::poison;
  return out;
}

void symbols_of(const std::vector<Item>& items, std::set<std::string>& out) {
  const auto add = [&](const Expression& e) { for_each_name(e.root, [&](const Expr& name) { out.insert(name.text); }); };
  for (const Item& item : items) {
    if (item.line) add(item.line->value);
    if (item.when) add(*item.when);
    symbols_of(item.then, out);
    symbols_of(item.otherwise, out);
  }
}

// Each target of the lines, also of those under conditions.
void for_each_target(const std::vector<Item>& items, const std::function<void(const Line&, const Target&)>& f) {
  for (const Item& item : items) {
    for (std::size_t i = 0; item.line && i < item.line->targets.size(); ++i) f(*item.line, item.line->targets[i]);
    for_each_target(item.then, f);
    for_each_target(item.otherwise, f);
  }
}

}  // namespace

// Runs something that may find a mistake; each place complains once, not once a layer.
template <class Run>
bool Emitter::guard(Run&& run) {
  try {
    run();
    return true;
  } catch (const Mistake& mistake) {
    if (mistake.absent && ending_) {  // only who asks for what it is needed for has to know
      put_off_.push_back(mistake);
      return false;
    }
    const std::string key = source_place(mistake.at) + ":" + std::to_string(mistake.at.column);
    if (reported_.insert(key).second) diagnostics_.error(mistake.at, mistake.message, mistake.hint);
  } catch (const Poisoned&) {}
  return false;
}

void Emitter::refuse() {
  for (const Refusal& refusal : page_.refuse)
    guard([&] {
      if (condition(refusal.when, {}))
        wrong(refusal.when.origin, page_.name + ": " + refusal.say, "this page does not describe such models");
    });
}

void Emitter::assign(const Line& line, const Target& target, Datum value, std::size_t first_new, std::map<std::string, Datum>& locals) {
  Expr node;
  node.at = target.at;
  const config::Origin at = line.value.at(node);
  const char* what = page_.hparam(target.name) != nullptr   ? "a hyperparameter"
                     : page_.weight(target.name) != nullptr ? "a weight"
                     : page_.rope(target.name) != nullptr   ? "a rotary table"
                                                            : nullptr;
  if (what != nullptr) wrong(at, mekik::quoted(target.name) + " is " + what + " of this page and cannot be assigned");
  for (const char* given : {"l", "tokens", "positions", "token_types", "rows", "image_rows", "segments", "true", "false", "none"})
    if (target.name == given) wrong(at, mekik::quoted(target.name) + " cannot be assigned");
  if (target.index) wrong(at, "only programs for images fill lists, and those are not built yet");
  // A value made by this line takes the line's name.
  if (value.type == Datum::Type::rows && value.index >= first_new && out_.tensors[value.index].role == MEKIK_ROLE_TEMP)
    out_.tensors[value.index].name = target.name;
  locals[target.name] = std::move(value);
}

void Emitter::run_line(const Line& line, std::map<std::string, Datum>& locals) {
  const std::size_t first_new = out_.tensors.size(), first_put_off = put_off_.size();
  Datum failed = poison();
  const bool good = guard([&] {
    Scope scope;
    scope.layer = layer_;
    scope.locals = &locals;
    Datum value = evaluate(line.value, scope);
    if (value.type == Datum::Type::poison) {
      failed = value;
      throw Poisoned{};
    }
    if (line.targets.size() == 1) return assign(line, line.targets[0], std::move(value), first_new, locals);
    if (value.type != Datum::Type::list || value.list.size() != line.targets.size())
      wrong(line.value.at(line.value.root), std::to_string(line.targets.size()) + " names take a list of as many values" + where());
    for (std::size_t i = 0; i < line.targets.size(); ++i) assign(line, line.targets[i], value.list[i], first_new, locals);
  });
  if (put_off_.size() > first_put_off) failed.index = static_cast<std::uint32_t>(put_off_.size());
  if (!good)
    for (const Target& target : line.targets) locals[target.name] = failed;
  for (std::size_t i = first_new; i < out_.tensors.size(); ++i)
    if (out_.tensors[i].role == MEKIK_ROLE_TEMP) out_.tensors[i].name = fresh(out_.tensors[i].name);
}

void Emitter::run_items(const std::vector<Item>& items, std::map<std::string, Datum>& locals) {
  for (const Item& item : items) {
    if (item.line) {
      run_line(*item.line, locals);
      continue;
    }
    bool taken = false;
    const std::size_t first_put_off = put_off_.size();
    const bool known = guard([&] {
      Scope scope;
      scope.layer = layer_;
      scope.locals = &locals;
      taken = condition(*item.when, scope);
    });
    if (known) {
      run_items(taken ? item.then : item.otherwise, locals);
      continue;
    }
    Datum failed = poison();
    if (put_off_.size() > first_put_off) failed.index = static_cast<std::uint32_t>(put_off_.size());
    spoil(item.then, failed, locals);
    spoil(item.otherwise, failed, locals);
  }
}

// What lines would have assigned, had it been known whether they are taken: the values of before are not it.
void Emitter::spoil(const std::vector<Item>& items, const Datum& failed, std::map<std::string, Datum>& locals) {
  for (const Item& item : items) {
    if (item.line)
      for (const Target& target : item.line->targets) locals[target.name] = failed;
    spoil(item.then, failed, locals);
    spoil(item.otherwise, failed, locals);
  }
}

// Numbers that all others are counted in: a wrong one is told once, with the key that it comes from, and not by whoever stumbles over it.
void Emitter::check_sizes() {
  constexpr std::int64_t kMost = 0x7FFFFFFF;
  for (const auto& [symbol, least] : {std::pair{"layers", 0}, {"width", 1}, {"vocab", 1}, {"context", 1}}) {
    const HparamRow* row = page_.hparam(symbol);
    if (row == nullptr) continue;
    guard([&, name = symbol, from = least] {
      const Datum value = hparam(name, page_.main.origin);
      if (value.type == Datum::Type::none) return;
      if (value.type == Datum::Type::integer && value.integer >= from && value.integer <= kMost) return;
      const std::string said = said_by(name);
      wrong(row->origin, "hyperparameter " + mekik::quoted(name) + (said.empty() ? " is " + to_text(value) : ": " + said) +
                             "; it must be a whole number from " + std::to_string(from) + " to " + std::to_string(kMost));
    });
  }
}

void Emitter::run_program() {
  const ProgramSpec& main = page_.main;
  std::int64_t layers = 0;
  if (!guard([&] {
        if (main.layers) layers = whole(*main.layers, {}, 0, "layers");
        else {
          const Datum count = hparam("layers", main.origin);
          if (count.type != Datum::Type::integer || count.integer < 0)
            wrong(main.origin, "layers must be a whole number, not " + to_text(count));
          layers = count.integer;
        }
        if (layers > kMaxLayers) wrong(main.origin, "a program may have at most 4096 layers, not " + std::to_string(layers));
      }))
    return;
  std::map<std::string, Datum> locals;
  run_items(main.begin, locals);
  for (std::int64_t l = 0; l < layers; ++l) {
    layer_ = l;
    op_layer_ = static_cast<std::uint32_t>(l);
    std::map<std::string, Datum> inner = locals;
    run_items(main.layer, inner);
    for (auto& [name, value] : locals) value = inner[name];  // only names of `begin` survive a layer
  }
  layer_.reset();
  op_layer_ = static_cast<std::uint32_t>(std::max<std::int64_t>(layers, 1) - 1);
  ending_ = true;
  run_items(main.end, locals);
  ending_ = false;
  refuse_idle_lines();
  if (diagnostics_.ok()) take_outputs(locals);
}

// A name that no line reads and that is no output is most likely a misspelled one.
void Emitter::refuse_idle_lines() {
  const ProgramSpec& main = page_.main;
  std::set<std::string> read;
  std::vector<std::string> outputs(std::begin(kOutputs), std::end(kOutputs));
  outputs.insert(outputs.end(), main.outputs.begin(), main.outputs.end());
  for (const auto* items : {&main.begin, &main.layer, &main.end}) symbols_of(*items, read);
  for (const auto* items : {&main.begin, &main.layer, &main.end})
    for_each_target(*items, [&](const Line& line, const Target& target) {
      if (read.count(target.name) != 0 || std::find(outputs.begin(), outputs.end(), target.name) != outputs.end()) return;
      Expr node;
      node.at = target.at;
      std::vector<std::string> names = outputs;
      names.insert(names.end(), read.begin(), read.end());
      const auto near = closest(target.name, names);
      guard([&] {
        wrong(line.value.at(node), "no line uses " + mekik::quoted(target.name) + ", and it is no output",
              near ? "did you mean \"" + *near + "\"?" : "");
      });
    });
}

// The output that a task means, of those that the page gives this model.
std::string Emitter::output_for(Task task, const std::vector<std::string>& offered) {
  const auto has = [&](const char* name) { return std::find(offered.begin(), offered.end(), name) != offered.end(); };
  const auto refuse = [&](const char* what) {
    wrong(page_.main.origin,
          "page " + page_.name + " gives this model no " + what + "; it has " + (offered.empty() ? "no output" : join(offered, ", ")));
  };
  if (task == Task::automatic)
    task = has("score") ? Task::score : !has("logits") || (has("embedding") && stored("pooling")) ? Task::embed : Task::generate;
  if (task == Task::score) {
    if (has("score")) return "score";
    if (!has("logits")) refuse("score");
    return "logits";
  }
  if (task == Task::embed && !options_.pooling.empty() && page_.hparam("pooling") == nullptr)
    wrong(page_.main.origin,
          "page " + page_.name + " pools in one way only, so model.pooling cannot be " + mekik::quoted(options_.pooling));
  // Where a page does not say how it pools, the last row under the head stands for the text.
  if (task == Task::embed && !has("embedding") && has("hidden") && options_.pooling.empty()) {
    if (const std::string mode = pooling_module(false); !mode.empty() && mode != "last")
      wrong(page_.main.origin, "page " + page_.name + " pools by the last row, but 1_Pooling/config.json says " + mekik::quoted(mode));
    return "hidden";
  }
  if (task == Task::embed && !has("embedding")) refuse("embedding");
  if (task == Task::generate && !has("logits")) refuse("logits, so it cannot generate");
  return task == Task::embed ? "embedding" : "logits";
}

// What the class of a folder adds where nobody said what the model is for. One without a head, such as LlamaModel, whose head is neither in
// the file nor the embedding, is there to embed; a classifier that lost what makes its score is no other model.
Task Emitter::task_for(const std::map<std::string, Datum>& locals) {
  const json::value* classes = config_value("architectures");
  if (options_.task != Task::automatic || locals.count("score") != 0 || classes == nullptr || !classes->is_array() ||
      classes->get_array().empty() || !classes->get_array()[0].is_string())
    return options_.task;
  const std::string_view name = classes->get_array()[0].get_string();
  if (name.ends_with("ForSequenceClassification"))
    wrong(page_.main.origin, "the model is a " + std::string{name} +
                                 ", but nothing in the file makes its score; fetch the whole model, or " +
                                 "set task in [model] to run it for text or embeddings all the same");
  const auto logits = locals.find("logits");
  const bool no_logits = logits != locals.end() && logits->second.type == Datum::Type::poison;
  return no_logits && name.ends_with("Model") && !name.ends_with("LMHeadModel") ? Task::embed : options_.task;
}

// Outputs get a buffer of their own, one row for each row asked for.
void Emitter::take_outputs(std::map<std::string, Datum>& locals) {
  std::vector<std::string> known(std::begin(kOutputs), std::end(kOutputs)), offered;
  known.insert(known.end(), page_.main.outputs.begin(), page_.main.outputs.end());
  for (const std::string& name : known)
    if (locals.count(name) != 0) offered.push_back(name);
  std::vector<std::string> wanted = options_.outputs;
  if (wanted.empty()) guard([&] { wanted.push_back(output_for(task_for(locals), offered)); });
  for (const std::string& name : wanted)
    guard([&] {
      const config::Origin at = page_.main.origin;
      const auto found = locals.find(name);
      if (found == locals.end() || std::find(known.begin(), known.end(), name) == known.end())
        wrong(at, "page " + page_.name + " has no output " + mekik::quoted(name) + "; it has " +
                      (offered.empty() ? "none" : join(offered, ", ")));
      Datum value = found->second;
      if (value.type == Datum::Type::poison && value.index > 0) throw put_off_[value.index - 1];
      if (value.type != Datum::Type::rows || value.shape.empty())
        wrong(at, "output " + mekik::quoted(name) + " must be rows, not " + type_name(value.type));
      const bool take = value.first == MEKIK_DIM_TOKENS;
      Datum out = new_rows(take ? static_cast<std::int64_t>(MEKIK_DIM_ROWS) : value.first, value.shape, name);
      out_.tensors[out.index].role = MEKIK_ROLE_OUTPUT;
      written_outputs_.insert(name);
      if (take) emit(at, op_take_rows, {value.index, input("rows", MEKIK_DIM_ROWS)}, {out.index});
      else emit(at, op_scale, {value.index}, {out.index}, {}, {1, 0});
    });
}

// Programs of their own (towers for images) are read, not built: what they name in the file is left out, and said so.
void Emitter::mark_other_programs() {
  if (page_.has_image) notes_.push_back("[image] of page " + page_.name + " is not used (text only)");
  for (const ProgramSpec& other : page_.programs) {
    std::set<std::string> symbols;
    symbols_of(other.begin, symbols);
    symbols_of(other.layer, symbols);
    symbols_of(other.end, symbols);
    std::vector<std::string> globs;
    for (const auto& [symbol, row] : page_.weights) {
      if (symbols.count(symbol) == 0) continue;
      for (const WeightSource& source : row.sources[format_]) {
        std::vector<const WeightSource*> all{&source};
        for (const WeightSource& part : source.join) all.push_back(&part);
        for (const WeightSource* one : all)
          for (std::string& pattern : glob(one->from, false)) globs.push_back(std::move(pattern));
      }
    }
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i] &&
          std::any_of(globs.begin(), globs.end(), [&](const std::string& g) { return glob_match(g, meta_.tensors[i].name); })) {
        used_[i] = true;
        ++left_out;
      }
    if (left_out != 0)
      notes_.push_back("program " + other.name + " of page " + page_.name + " is not built (text only): " + std::to_string(left_out) +
                       " of its tensors are left out");
  }
}

void Emitter::check_unused() {
  mark_other_programs();
  std::vector<std::string> ignored;
  guard([&] {
    for (const NameText& name : page_.ignore)
      for (std::string& pattern : glob(name, true)) ignored.push_back(std::move(pattern));
  });
  std::size_t count = 0, first = 0;
  std::map<std::string, std::size_t> left_out;  // by pattern
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    const auto pattern =
        std::find_if(ignored.begin(), ignored.end(), [&](const std::string& g) { return glob_match(g, meta_.tensors[i].name); });
    if (pattern != ignored.end()) ++left_out[*pattern];
    else if (count++ == 0) first = i;
  }
  for (const auto& [pattern, n] : left_out)
    notes_.push_back("page " + page_.name + " leaves out " + std::to_string(n) + (n == 1 ? " tensor" : " tensors") + " that match " +
                     mekik::quoted(pattern));
  if (count != 0)
    diagnostics_.error(page_.origin,
                       "tensor " + mekik::quoted(meta_.tensors[first].name) + " is not used by page " + page_.name + " (" +
                           std::to_string(count) + (count == 1 ? " tensor" : " tensors") + "); wrong page?",
                       "a page names tensors that may stay unused under [architecture] ignore");
}

std::uint64_t Emitter::page_number(const char* symbol) {
  std::uint64_t out = 0;
  if (page_.hparam(symbol) == nullptr) return 0;
  guard([&] {
    const Datum value = hparam(symbol, page_.main.origin);
    if (value.type == Datum::Type::integer && value.integer > 0) out = static_cast<std::uint64_t>(value.integer);
  });
  return out;
}

void Emitter::finish(Program& program) {
  program.vocab = page_number("vocab");
  program.width = page_number("width");
  program.layers = page_number("layers");
  program.context = page_number("context");
  program.reach = std::max(program.context, static_cast<std::uint64_t>(reach_));
  program.assumed = assumed_;
  for (const std::string& key : unknown_config_keys())
    notes_.push_back("the model's configuration has a key " + mekik::quoted(key) + " that page " + page_.name + " does not describe");
  if (written_outputs_.count("embedding") + written_outputs_.count("hidden") != 0) warn_of_texts(program.context);
  program.notes = notes_;
  program.warnings = warnings_;
  program.position_key = position_key_;
}

std::optional<Program> Emitter::build() {
  refuse();
  check_sizes();
  if (!diagnostics_.ok()) return std::nullopt;
  run_program();
  for (const Mistake& mistake : uneven()) diagnostics_.error(mistake.at, mistake.message, mistake.hint);
  if (!diagnostics_.ok()) return std::nullopt;
  check_unused();
  guard([&] { finish(out_); });
  if (!diagnostics_.ok()) return std::nullopt;
  return compact(std::move(out_));
}

}  // namespace mekik::program
