// An architecture page after reading: TOML checked for keys and kinds, every expression parsed, nothing evaluated.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/value.hpp"
#include "program/datum.hpp"
#include "program/expr.hpp"

namespace mekik::program {

// The formats that pages know, in the order of the arrays below.
inline constexpr std::array<const char*, 2> kFormats{"gguf", "hf"};
inline constexpr std::size_t kNoFormat = kFormats.size();
std::size_t format_index(const std::string& format);  // kNoFormat: unknown

struct NameText {  // with {placeholders}
  std::string text;
  config::Origin origin;
  bool exact = true;
};

// One expression for all formats, or one each.
struct PerFormat {
  std::array<std::optional<Expression>, kFormats.size()> each;
  const Expression* get(std::size_t format) const { return each[format] ? &*each[format] : nullptr; }
};

struct HparamRow {
  config::Origin origin;
  std::optional<Expression> direct;  // symbol = "expr"
  std::array<std::vector<NameText>, kFormats.size()> names;
  PerFormat fallback, value;
  std::vector<std::pair<std::string, Datum>> map;
  bool optional = false;
};

struct WeightSource {
  config::Origin origin;
  NameText from;
  std::string scheme;
  std::vector<Expression> view, take;  // take: axis, start, count
  std::vector<std::int64_t> order;
  std::vector<Expression> split;   // sizes of what is taken along the first axis; then order counts these. Of [fold] only
  std::vector<Expression> stored;  // the sizes that the tensor is written with, where its use does not tell
  std::optional<Expression> stack;
  std::vector<WeightSource> join;
  std::optional<std::int64_t> axis;
};

struct WeightRow {
  config::Origin origin;
  std::vector<Expression> shape;
  std::array<std::vector<WeightSource>, kFormats.size()> sources;
  PerFormat value;
  std::optional<Expression> numbers;  // instead of sources: what is at place i
  std::string fallback;               // another weight
  config::Origin fallback_origin;
  bool optional = false;
  PerFormat present;  // whether it is there; none: whether or not, as for `optional`
};

// A key of a rotary table: an expression, or where each format keeps it.
struct RopeKey {
  config::Origin origin;
  std::optional<Expression> direct;
  std::array<std::vector<NameText>, kFormats.size()> names;
};

struct RopeRow {
  config::Origin origin;
  std::vector<std::pair<std::string, RopeKey>> keys;
  const RopeKey* find(std::string_view key) const;
};

struct Item {
  config::Origin origin;
  std::optional<Line> line;
  std::optional<Expression> when;  // then `then` and `otherwise`
  std::vector<Item> then, otherwise;
};

struct ProgramSpec {
  std::string name;  // "": the main one
  config::Origin origin;
  std::optional<Expression> layers;
  std::vector<std::string> outputs;
  std::vector<Item> begin, layer, end;
};

struct Refusal {
  Expression when;
  std::string say;
};

template <class Row>
using Named = std::vector<std::pair<std::string, Row>>;

// What a model becomes before it is written in a format whose files hold some of its numbers elsewhere.
struct FoldSpec {
  Named<Expression> symbols;    // hyperparameters as they are afterwards
  Named<Expression> times;      // what a weight is multiplied by: a number, or [[rows, number], ..]
  Named<WeightSource> weights;  // in another order than a model of this format is read
};

struct PageSpec {
  std::string name;
  config::Origin origin;
  std::array<std::vector<std::string>, kFormats.size()> matches;  // of the page itself, never inherited
  std::optional<Expression> matches_when;
  std::array<std::string, kFormats.size()> written;  // the architecture that files get, where another page reads them
  Named<std::vector<std::string>> prefixes;
  std::vector<NameText> ignore;
  std::vector<Refusal> refuse;
  Named<Datum> omitted;  // of the page itself: what config.json means where it leaves a key out
  Named<HparamRow> hparams;
  Named<WeightRow> weights;
  Named<RopeRow> ropes;
  ProgramSpec main;
  std::vector<ProgramSpec> programs;  // [program.NAME]
  bool has_image = false;
  std::array<FoldSpec, kFormats.size()> fold;
  std::array<Named<Expression>, kFormats.size()> convert;  // keys of a configuration that only other programs read

  const HparamRow* hparam(std::string_view symbol) const;
  const WeightRow* weight(std::string_view symbol) const;
  const RopeRow* rope(std::string_view symbol) const;
};

inline constexpr std::size_t kMaxPageBytes = 256u << 10;
inline constexpr std::size_t kMaxExtends = 8;

// The tree of a page on top of the page it extends: tables merge by key; a row, a list and [architecture] matches and omitted are replaced
// whole.
config::Value merge_pages(const config::Value& base, const config::Value& page);
// `raw` is already merged. All mistakes go to `diagnostics`; what is returned holds the rest.
PageSpec read_page(const config::Value& raw, config::Diagnostics& diagnostics);

}  // namespace mekik::program
