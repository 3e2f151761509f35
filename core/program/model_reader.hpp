// A model seen through a page: hyperparameters, weight rows and rotary tables, evaluated on demand. No weights are read.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/model_meta.hpp"
#include "program/page.hpp"
#include "program/page_spec.hpp"
#include "program/rope_recipe.hpp"

namespace mekik::program {

// A stored tensor (or several of one shape, stacked) after view, take and order: element (i, j, ..) lies at offset + i*s0 + j*s1 + ...
// of their concatenation.
struct Piece {
  std::vector<std::uint32_t> sources;
  std::uint64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
  std::vector<AxisStep> steps;  // the same for whoever works on decoded values
};

// A weight of a layer: where its numbers lie.
struct WeightValue {
  std::string symbol;
  std::int32_t layer = -1;
  config::Origin origin;
  std::vector<std::int64_t> shape;
  std::vector<std::string> size_labels;
  std::vector<Piece> pieces;
  std::optional<std::int64_t> join_axis;  // of the pieces as they are; empty: they are rows of the last size, one after the other
  std::vector<ValueStep> value;
  std::vector<float> numbers;            // not empty: made from an expression, there are no pieces
  std::map<int, std::uint32_t> tensors;  // of the program, by the form it is used in
};

// A rotary table with what its operation needs.
struct TableValue {
  std::string name;
  std::int64_t dim = 0;
  int pairs = 0;
  double magnitude = 1;
  std::int64_t axes = 1;
  std::vector<float> numbers;             // [2][dim/2]
  std::optional<std::uint32_t> divisors;  // source tensor
  std::optional<std::uint32_t> tensor;    // of the program
};

struct Scope {
  std::optional<std::int64_t> layer;
  std::map<std::string, Datum>* locals = nullptr;
  const Datum* stored = nullptr;  // `v` of a value expression
  const Datum* place = nullptr;   // `i` of a weight's numbers
};

class ModelReader {
 public:
  ModelReader(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options);
  virtual ~ModelReader() = default;
  ModelReader(const ModelReader&) = delete;
  ModelReader& operator=(const ModelReader&) = delete;

  // All of these throw Mistake, and Poisoned where a failed line is met.
  Datum evaluate(const Expression& e, const Expr& node, const Scope& scope);
  Datum evaluate(const Expression& e, const Scope& scope) { return evaluate(e, e.root, scope); }
  bool condition(const Expression& e, const Scope& scope);
  std::int64_t whole(const Expression& e, const Expr& node, const Scope& scope, std::int64_t least, std::string_view what);
  std::int64_t whole(const Expression& e, const Scope& scope, std::int64_t least, std::string_view what) {
    return whole(e, e.root, scope, least, what);
  }
  Datum hparam(const std::string& symbol, const config::Origin& used_at);
  // Whether the page has this hyperparameter and the file a value for it, or for one that it is computed from.
  bool stored(const std::string& symbol);
  // The index of the resolved weight; nothing when it is optional and absent. Absent and not optional is a mistake where it `must` be.
  std::optional<std::uint32_t> weight(const std::string& symbol, std::optional<std::int64_t> layer, const config::Origin& used_at,
                                      bool must = true);
  std::uint32_t table(const std::string& name, const config::Origin& used_at);

  const std::vector<std::string>& assumed() const { return assumed_; }

 protected:
  // From here on the symbol has this value, whatever the file says.
  void assume(const std::string& symbol, Datum value) { hparams_[symbol] = std::move(value); }
  // What only a program under construction can do; a reader of constants refuses.
  virtual Datum operand_name(const Expression& e, const Expr& node, const Scope& scope);
  virtual Datum operand_call(const Expression& e, const Expr& node, std::vector<Datum>& args, const Scope& scope);
  virtual Datum operand_binary(const Expression& e, const Expr& node, const Datum& a, const Datum& b);
  virtual std::vector<std::string> more_names(const Scope& scope) const;

  [[noreturn]] static void wrong(const config::Origin& at, std::string message, std::string hint = {}) {
    throw Mistake{at, std::move(message), std::move(hint)};
  }
  // All spellings of a name: prefixes not settled yet give several.
  std::vector<std::string> spell(const NameText& name, std::optional<std::int64_t> layer, const std::string& expert = {});
  // The one spelling that another format's file gets: the first of each prefix, and the page's first name there.
  std::string spell_in(std::size_t format, const NameText& name, std::optional<std::int64_t> layer, const std::string& expert);
  static std::string without_prefix(const std::string& name);
  static std::string label(const WeightValue& of);
  // A glob that matches whatever the name may become: for tensors of programs that are not built, and unused tensors.
  std::vector<std::string> glob(const NameText& name, bool evaluate_placeholders);
  const json::value* config_node(const std::string& name);
  const json::value& beside(const std::string& file);
  const json::value* config_value(const std::string& name);
  std::optional<Datum> omitted(const HparamRow& row, std::size_t format) const;
  std::optional<std::uint32_t> tensor_index(const std::string& name) const;
  std::string close_tensor(const std::string& name) const;
  std::vector<std::string> unknown_config_keys();
  // What the file says where a hyperparameter, or those of an expression, come from: '"num_attention_heads" is 0'. Empty: nothing.
  std::string said_by(const std::string& symbol) const;
  std::string said_by(const Expr& node) const;  // with "; the file says: " in front
  std::vector<std::pair<std::string, Datum>> config_group(const std::string& name);
  // Keeps in mind whether a layer has a weight that others may lack; what `uneven` then finds to complain of.
  void note_presence(const std::string& symbol, std::int64_t layer, bool found);
  std::vector<Mistake> uneven();

  // modules.cpp
  std::string pooling_module(bool chosen);
  void warn_of_texts(std::uint64_t context);

  // rope_table.cpp
  struct RopeNumbers;
  Datum rope_key(const RopeRow& row, std::string_view key);
  std::vector<std::pair<std::string, Datum>> scaling_group(const std::string& path);
  std::vector<std::pair<std::string, Datum>> omitted_group(const RopeRow& row) const;
  std::optional<double> rope_number(const RopeRow& row, std::string_view key);
  std::optional<std::uint32_t> rope_weight(const RopeRow& row, std::string_view key, std::int64_t dim);
  void rope_axes(const RopeRow& row, const RopeRequest& request, std::vector<double>& frequencies, std::vector<float>& owners,
                 TableValue& out);

  const PageSpec& page_;
  const ModelMeta& meta_;
  const BuildOptions& options_;
  std::size_t format_;
  std::vector<WeightValue> weights_;
  std::vector<TableValue> tables_;
  std::vector<bool> used_;  // tensors of the file
  std::vector<std::string> assumed_, notes_, warnings_;
  std::string position_key_;
  double reach_ = 0;

 private:
  Datum binary(const Expression& e, const Expr& node, const Scope& scope);
  Datum call(const Expression& e, const Expr& node, const Scope& scope);
  Datum name(const Expression& e, const Expr& node, const Scope& scope);
  Datum size_in_file(const Expression& e, const Expr& node, const Scope& scope);
  std::optional<Datum> told(const std::string& symbol, const HparamRow& row);
  Datum hparam_value(const std::string& symbol, const HparamRow& row, const config::Origin& used_at);
  [[noreturn]] void missing_hparam(const std::string& symbol, const HparamRow& row, const config::Origin& used_at);
  void settle_prefixes();
  std::string replace_placeholders(const NameText& name, const std::string& text, std::optional<std::int64_t> layer,
                                   const std::string& expert);
  void mention(const std::string& path, const json::value& value, const std::vector<std::string>& named, std::vector<std::string>& out);

  // weight_rows.cpp
  bool fetch(const WeightSource& source, WeightValue& out);
  bool fetch_one(const WeightSource& source, WeightValue& out);
  bool find_sources(const WeightSource& source, const WeightValue& out, Piece& piece, std::vector<std::int64_t>& stored);
  bool stored_as(const WeightSource& source, std::uint32_t tensor) const;
  void apply_steps(const WeightSource& source, const WeightValue& of, std::vector<std::int64_t> stored, Piece& piece);
  void check_shape(const WeightRow& row, WeightValue& out);
  void read_shape(const WeightRow& row, WeightValue& out);
  std::uint32_t made_of_numbers(const WeightRow& row, WeightValue out);
  void compile_value(const Expression& e, const Expr& node, const WeightValue& of, std::vector<ValueStep>& out);

  // presence.cpp
  std::optional<bool> presence(const std::string& symbol, const WeightRow& row, std::int32_t layer);
  std::vector<std::string> tensor_names(const WeightRow& row, std::int32_t layer);
  void reasons(const Expression& e, std::vector<std::string>& out, int depth);
  [[noreturn]] void misplaced_weight(const std::string& symbol, const WeightRow& row, const WeightValue& of, bool found);
  [[noreturn]] void missing_weight(const std::string& symbol, const WeightRow& row, const WeightValue& of);

  std::string arch_;
  std::vector<int> settled_;  // per prefix: the alternative, or -1
  std::unordered_map<std::string, std::uint32_t> tensor_names_;
  std::unordered_map<std::string, Datum> hparams_;
  std::unordered_map<std::string, std::string> said_;
  std::vector<std::string> in_progress_;
  std::map<std::pair<std::string, std::int64_t>, std::optional<std::uint32_t>> weight_cache_;
  std::map<std::string, std::array<std::set<std::int64_t>, 2>> layers_;  // of optional weights: without, with
  std::unordered_map<std::string, std::uint32_t> table_cache_;
  std::unordered_map<std::string, json::value> files_;
};

// "llama.toml:31" for messages about a second place.
std::string source_place(const config::Origin& at);

}  // namespace mekik::program
