// Lowers the lines of a page's program to operations: the build pass.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/model_reader.hpp"
#include "program/recipe_rows.hpp"

namespace mekik::program {

// The arguments of a call, put into the order of a function's parameters.
struct Call {
  const Expression& expression;
  const Expr& node;
  std::vector<Datum> args;  // one a parameter; none where not given
  std::vector<bool> given;
  config::Origin at(std::size_t arg) const;  // of the argument, or of the call
  config::Origin at() const { return expression.at(node); }
};

class Emitter : public ModelReader {
 public:
  Emitter(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options, config::Diagnostics& diagnostics);

  // The program, or what was found wrong, in the diagnostics.
  std::optional<Program> build();

 private:
  using Function = Datum (Emitter::*)(Call&);
  struct FunctionRow {
    const char* name;
    const char* parameters;  // "x w b?": "?" may be left out; "*" takes any number more
    Function run;
  };
  static const std::vector<FunctionRow>& functions();

  Datum operand_name(const Expression& e, const Expr& node, const Scope& scope) override;
  Datum operand_call(const Expression& e, const Expr& node, std::vector<Datum>& args, const Scope& scope) override;
  Datum operand_binary(const Expression& e, const Expr& node, const Datum& a, const Datum& b) override;

  // build.cpp
  void refuse();
  void check_sizes();
  void run_program();
  void run_items(const std::vector<Item>& items, std::map<std::string, Datum>& locals);
  void spoil(const std::vector<Item>& items, const Datum& failed, std::map<std::string, Datum>& locals);
  void run_line(const Line& line, std::map<std::string, Datum>& locals);
  void assign(const Line& line, const Target& target, Datum value, std::size_t first_new, std::map<std::string, Datum>& locals);
  Task task_for(const std::map<std::string, Datum>& locals);
  std::string output_for(Task task, const std::vector<std::string>& offered);
  void refuse_idle_lines();
  void take_outputs(std::map<std::string, Datum>& locals);
  void check_unused();
  void mark_other_programs();
  void finish(Program& program);
  std::uint64_t page_number(const char* symbol);
  template <class Run>
  bool guard(Run&& run);

  // emitter.cpp
  std::string fresh(const std::string& base);
  std::uint32_t add_tensor(Tensor tensor);
  std::uint32_t input(const std::string& name, std::int64_t first);
  Datum new_rows(std::int64_t first, std::vector<std::int64_t> shape, const std::string& base);
  Datum view_of(const Datum& x, std::uint64_t column, std::vector<std::int64_t> shape);
  std::uint32_t weight_tensor(std::uint32_t weight, WeightUse use);
  std::uint32_t table_tensor(std::uint32_t table);
  void emit(const config::Origin& at, std::uint32_t code, std::vector<std::uint32_t> in, std::vector<std::uint32_t> out,
            std::vector<std::int64_t> ints = {}, std::vector<double> reals = {});
  Datum emit_rows(const config::Origin& at, std::uint32_t code, const Datum& like, std::vector<std::uint32_t> in,
                  std::vector<std::int64_t> ints = {}, std::vector<double> reals = {});
  std::uint32_t state(std::vector<std::int64_t> shape, std::uint64_t window, const config::Origin& at);
  std::uint32_t slot(std::vector<std::int64_t> shape, const char* base);
  std::string where() const;  // ", layer 3"
  const WeightValue& value_of(const Datum& weight) const { return weights_[weight.index]; }
  std::string weight_text(const Datum& weight) const;
  std::string rows_text(const Datum& rows) const;

  // Arguments of functions: each checks what it gets and says what is wrong.
  const Datum& rows(const Call& call, std::size_t arg, std::size_t rank = 0) const;
  const Datum& ids(const Call& call, std::size_t arg) const;
  const WeightValue& weight(const Call& call, std::size_t arg, std::size_t rank = 0) const;
  using ModelReader::weight;
  bool absent(const Call& call, std::size_t arg) const { return call.args[arg].type == Datum::Type::none; }
  std::uint32_t optional_vector(const Call& call, std::size_t arg, const std::vector<std::int64_t>& shape, const char* function);
  double number(const Call& call, std::size_t arg, double otherwise) const;
  double epsilon(const Call& call, std::size_t arg) const;
  double bound(const Call& call, std::size_t arg) const;  // a number that may be infinite
  std::int64_t integer(const Call& call, std::size_t arg, std::int64_t otherwise, std::int64_t least) const;
  bool boolean(const Call& call, std::size_t arg, bool otherwise) const;
  std::string word(const Call& call, std::size_t arg, const char* otherwise) const;
  std::int64_t kind(const Call& call, std::size_t arg, bool glu) const;
  void same_first(const Call& call, const Datum& a, const Datum& b) const;
  const Datum& route(const Call& call, std::size_t arg) const;
  std::uint32_t norm_weight(const Call& call, std::size_t arg, const Datum& x);

  // Keys and values that an attention stored, for it and for those of later layers that read them again.
  struct KeptState {
    std::uint32_t tensor = 0;
    std::int64_t heads = 0, d = 0, dv = 0;
    std::int64_t window = 0, chunk = 0;
    std::string v_label;
  };

  // functions.cpp, functions_state.cpp, functions_moe.cpp
  Datum embedding(Call&);
  Datum embedding_mix(Call&);
  Datum linear(Call&);
  Datum rms_norm(Call&);
  Datum layer_norm(Call&);
  Datum l2_norm(Call&);
  Datum mean(Call&);
  Datum concat(Call&);
  Datum softmax(Call&);
  Datum act(Call&);
  Datum named_act(Call&);
  Datum glu(Call&);
  Datum softcap(Call&);
  Datum clamp(Call&);
  Datum rope(Call&);
  Datum position_scale(Call&);
  Datum take_rows(Call&);
  Datum put_rows(Call&);
  Datum split(Call&);
  Datum part(Call&);
  Datum view(Call&);
  Datum fold_rows(Call&);
  Datum pool(Call&);
  Datum attention(Call&);
  Datum attention_full(Call&);
  Datum attention_from(Call&);
  Datum attend(Call& call, const Datum& q, const KeptState& from);
  Datum mla_attention(Call&);
  Datum conv(Call&);
  Datum ssm_scan(Call&);
  Datum gated_delta(Call&);
  Datum new_route(const Datum& logits, std::int64_t top);
  Datum moe_route(Call&);
  Datum moe_route_mixer(Call&);
  Datum moe_scale(Call&);
  Datum moe_spread(Call&);
  Datum moe_linear(Call&);
  Datum moe_combine(Call&);
  std::uint32_t slopes(double alibi, double scale, std::int64_t heads);
  Datum scaled(const config::Origin& at, const Datum& x, double a, double b);

  config::Diagnostics& diagnostics_;
  Program out_;
  std::optional<std::int64_t> layer_;
  std::uint32_t op_layer_ = 0;
  std::map<std::string, int> name_counts_;
  std::map<std::string, std::uint32_t> inputs_, slope_tensors_;
  std::map<std::int64_t, std::vector<KeptState>> kept_states_;  // by layer
  std::set<std::string> reported_;                              // places that already said what is wrong with them
  std::set<std::string> written_outputs_;
  std::vector<Mistake> put_off_;  // of lines of `end`, till somebody wants their output
  bool stateful_ = false, full_ = false, ending_ = false;
};

// The code of an activation by any of its names; -1: unknown. `glu`: the kinds that only glu has, else those that only act has.
std::int64_t activation_kind(std::string_view name, bool glu);
const char* activation_name(std::int64_t kind);
const std::vector<std::string>& activation_names();

}  // namespace mekik::program
