// Finds the Transcript of a model: builds its program, then turns every row of the page around.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/emitter.hpp"
#include "program/transcript.hpp"

namespace mekik::program {

class Transcriber : public Emitter {
 public:
  Transcriber(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options, config::Diagnostics& diagnostics,
              std::size_t target, const ReadVector& read);

  // What [fold] says of the target: hyperparameters become what they are afterwards. Before build().
  void fold();
  // Throws Mistake where a row does not turn around.
  Transcript transcribe(Program program);

 private:
  // A part of a target tensor before the tensor's whole size is known.
  struct Slot {
    Transcript::Part part;
    std::vector<std::int64_t> order;  // of the part's axes, in those of the view
    std::vector<std::int64_t> view;   // sizes; those of `axis` count only where the page gives a view
    std::vector<std::int64_t> split;  // sizes that the part has instead, along the tensor's first axis
    std::int64_t axis = -1, start = 0;
    bool viewed = false;
    std::size_t rank = 0;  // of the stored tensor
    std::vector<std::int64_t> stored;
    std::string where;
  };

  // transcribe_weights.cpp
  void weights(Transcript& out);
  void weight_row(const WeightValue& value, const WeightRow& row, Transcript& out);
  std::vector<float> factors_of(const WeightValue& value);
  void place(const WeightValue& value, const WeightSource& source, const Transcript::Part& begun,
             std::vector<std::pair<std::string, Slot>>& out);
  void place_part(const WeightValue& value, const WeightSource& source, const Slot& begun, std::vector<std::pair<std::string, Slot>>& out);
  Slot steps(const WeightValue& value, const WeightSource& source, std::vector<std::int64_t> natural, std::size_t rank);
  std::vector<Undo> undo_of(const WeightValue& value, const Expression& e, const Expr& node);
  void finish(Transcript& out);

  // transcribe_config.cpp
  void config(Transcript& out);
  bool write_hparam(const std::string& symbol, const HparamRow& row, json::object& config);
  std::optional<Datum> stored_value(const HparamRow& row, const Datum& value);
  std::optional<Datum> invert(const Expression& e, const Expr& node, Datum value);
  void put(json::object& config, const std::string& name, const Datum& value);
  void extra_keys(Transcript& out);
  void ropes(Transcript& out);
  void rope(const std::string& name, const RopeRow& row, Transcript& out);
  void long_rope(const RopeRow& row, const TableValue& table, const std::vector<std::pair<std::string, Datum>>& group,
                 const std::string& place, Transcript& out);
  bool recover_scaling(const RopeRow& row, std::uint32_t tensor, json::object& config);

  std::size_t target_;
  const ReadVector& read_;
  std::unique_ptr<ModelReader> unfolded_;  // the model as it was before fold()
  std::set<std::string> explicit_;         // keys that [convert] wrote
  std::vector<std::string> order_;         // of target tensors
  std::unordered_map<std::string, std::vector<Slot>> slots_;
};

// Throws Mistake when the source and what was written for it are not the same model. Another page may call its weights otherwise.
void check_same(const Program& source, const Program& target, bool same_page);

}  // namespace mekik::program
