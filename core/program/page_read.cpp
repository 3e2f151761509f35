// From the TOML tree of a page to its PageSpec.
#include <algorithm>

#include "base/text.hpp"
#include "program/page_spec.hpp"
#include "program/page_value.hpp"

namespace mekik::program {

namespace {

using config::Kind;
using config::Value;

class Reader : ValueReader {
 public:
  explicit Reader(config::Diagnostics& diagnostics) : ValueReader{diagnostics} {}

  PageSpec page(const Value& raw);

 private:
  PerFormat per_format(const Value& value, std::string_view what);

  void architecture(const Value& table, PageSpec& page);
  void matches(const Value& table, PageSpec& page);
  HparamRow hparam(const Value& value);
  WeightRow weight(const Value& value);
  WeightSource source(const Value& value);
  RopeRow rope(const std::string& name, const Value& value);
  std::vector<Item> items(const Value& list, int depth);
  Item item(const Value& value, int depth);
  ProgramSpec program(const Value& table, std::string name);
  std::size_t format_of(const std::string& section, const std::string& format, const Value& table);
  void convert(const std::string& format, const Value& table, PageSpec& page);
  void fold(const std::string& format, const Value& table, PageSpec& page);
  void programs(const Value& table, PageSpec& page);
  void symbols_once(const PageSpec& page);
};

PerFormat Reader::per_format(const Value& value, std::string_view what) {
  PerFormat out;
  if (value.kind != Kind::table) {
    const Expression one = read_expression(value);
    for (auto& entry : out.each) entry = one;
    return out;
  }
  for (const auto& [key, entry] : value.table) {
    const std::size_t format = format_index(key);
    if (format == kNoFormat) wrong(entry.key_origin, std::string{what} + " has one expression, or one for each of gguf and hf");
    out.each[format] = read_expression(entry);
  }
  return out;
}

void Reader::matches(const Value& table, PageSpec& page) {
  need(table, Kind::table, "matches");
  known_keys(table, "matches", {"gguf", "hf", "when"});
  for (const auto& [key, value] : table.table) {
    if (key == "when") page.matches_when = read_expression(value);
    else if (const std::size_t format = format_index(key); format != kNoFormat) page.matches[format] = text_list(value, "a list of names");
  }
}

void Reader::architecture(const Value& table, PageSpec& page) {
  known_keys(table, "[architecture]", {"name", "extends", "matches", "written", "prefix", "ignore", "refuse", "omitted"});
  for (const auto& entry : table.table) {
    const std::string& key = entry.first;
    const Value& value = entry.second;
    guard([&] {
      if (key == "matches") matches(value, page);
      if (key == "written") {
        known_keys(value, "written", {"gguf", "hf"});
        for (std::size_t format = 0; format < kFormats.size(); ++format)
          if (const Value* called = value.find(kFormats[format])) page.written[format] = name(*called).text;
      }
      if (key == "ignore") page.ignore = name_list(value);
      if (key == "prefix") {
        need(value, Kind::table, "prefix");
        for (const auto& [symbol, texts] : value.table) page.prefixes.emplace_back(symbol, text_list(texts, "a list of prefixes"));
      }
      if (key == "omitted") {
        need(value, Kind::table, "omitted");
        for (const auto& [name, meaning] : value.table)
          page.omitted.emplace_back(name, literal(meaning, "omitted gives a text, a number or a boolean for a key of config.json"));
      }
      if (key != "refuse") return;
      need(value, Kind::list, "refuse");
      for (const Value& row : value.list) {
        need(row, Kind::table, "refuse");
        known_keys(row, "refuse", {"when", "say"});
        const Value* when = row.find("when");
        const Value* say = row.find("say");
        if (when == nullptr || say == nullptr || say->kind != Kind::text)
          wrong(row.origin, "refuse needs { when = \"condition\", say = \"why\" }");
        page.refuse.push_back({read_expression(*when), say->text});
      }
    });
  }
}

HparamRow Reader::hparam(const Value& value) {
  HparamRow out;
  out.origin = value.origin;
  if (value.kind != Kind::table) {
    out.direct = read_expression(value);
    return out;
  }
  known_keys(value, "a hyperparameter", {"gguf", "hf", "default", "map", "value", "optional"});
  for (const auto& [key, entry] : value.table) {
    if (const std::size_t format = format_index(key); format != kNoFormat) out.names[format] = name_list(entry);
    else if (key == "default") out.fallback = per_format(entry, "default");
    else if (key == "value") out.value = per_format(entry, "value");
    else if (key == "optional") out.optional = flag(entry, "optional");
    else if (key == "map") {
      need(entry, Kind::table, "map");
      for (const auto& [stored, meaning] : entry.table) {
        out.map.emplace_back(stored, literal(meaning, "map gives a text, a number or a boolean for a stored value"));
      }
    }
  }
  return out;
}

WeightSource Reader::source(const Value& value) {
  WeightSource out;
  out.origin = value.origin;
  if (value.kind == Kind::text) {
    out.from = name(value);
    return out;
  }
  need(value, Kind::table, "where a weight is kept");
  known_keys(value, "a weight's source", {"from", "scheme", "view", "take", "split", "order", "stored", "stack", "join", "axis"});
  const auto expressions = [&](const Value& list, std::string_view what) {
    need(list, Kind::list, what);
    std::vector<Expression> all;
    for (const Value& item : list.list) all.push_back(read_expression(item));
    return all;
  };
  for (const auto& [key, entry] : value.table) {
    if (key == "from") out.from = name(entry);
    else if (key == "scheme") out.scheme = name(entry).text;
    else if (key == "view") out.view = expressions(entry, "view");
    else if (key == "take") out.take = expressions(entry, "take");
    else if (key == "split") out.split = expressions(entry, "split");
    else if (key == "stored") out.stored = expressions(entry, "stored");
    else if (key == "stack") out.stack = read_expression(entry);
    else if (key == "axis") {
      need(entry, Kind::integer, "axis");
      out.axis = entry.integer;
    } else if (key == "order") {
      need(entry, Kind::list, "order");
      for (const Value& axis : entry.list) {
        need(axis, Kind::integer, "an axis of order");
        out.order.push_back(axis.integer);
      }
    } else if (key == "join") {
      need(entry, Kind::list, "join");
      for (const Value& part : entry.list) out.join.push_back(source(part));
    }
  }
  if (out.from.text.empty() == out.join.empty()) wrong(value.origin, "a weight's source needs either from or join");
  if (!out.take.empty() && out.take.size() != 3) wrong(value.origin, "take needs [axis, start, count]");
  if (out.axis && out.join.empty()) wrong(value.origin, "axis belongs to join");
  if (!out.join.empty() && (!out.view.empty() || !out.take.empty() || !out.order.empty() || out.stack))
    wrong(value.origin, "view, take, order and stack belong to the parts of a join");
  if (!out.join.empty() && std::any_of(out.join.begin(), out.join.end(), [](const WeightSource& part) { return !part.join.empty(); }))
    wrong(value.origin, "a join cannot hold another join");
  return out;
}

WeightRow Reader::weight(const Value& value) {
  need(value, Kind::table, "a weight");
  WeightRow out;
  out.origin = value.key_origin;
  known_keys(value, "a weight", {"shape", "gguf", "hf", "default", "optional", "present", "value", "numbers"});
  for (const auto& [key, entry] : value.table) {
    if (const std::size_t format = format_index(key); format != kNoFormat) {
      for (const Value& one : entry.kind == Kind::list ? entry.list : std::vector<Value>{entry}) {
        out.sources[format].push_back(source(one));
        if (!out.sources[format].back().split.empty()) wrong(one.origin, "split belongs to the weights of [fold]");
      }
    } else if (key == "shape") {
      need(entry, Kind::list, "shape");
      for (const Value& size : entry.list) out.shape.push_back(read_expression(size));
    } else if (key == "value") {
      out.value = per_format(entry, "value");
    } else if (key == "numbers") {
      out.numbers = read_expression(entry);
    } else if (key == "optional") {
      out.optional = flag(entry, "optional");
    } else if (key == "present") {
      out.present = per_format(entry, "present");
    } else if (key == "default") {
      out.fallback = name(entry).text;
      out.fallback_origin = entry.origin;
    }
  }
  if (out.shape.empty() || out.shape.size() > 3) wrong(value.key_origin, "a weight needs a shape of one to three sizes");
  if (out.numbers && value.table.size() > 2) wrong(value.key_origin, "a weight of numbers has a shape and nothing else");
  return out;
}

RopeRow Reader::rope(const std::string& symbol, const Value& value) {
  need(value, Kind::table, "[rope." + symbol + "]");
  known_keys(value, "[rope." + symbol + "]",
             {"dim", "base", "pairs", "scaling", "context", "original", "factors", "short", "long", "attn_factor", "truncate", "axes",
              "sections", "spread"});
  RopeRow out;
  out.origin = value.key_origin.line != 0 ? value.key_origin : value.origin;
  for (const auto& [key, entry] : value.table) {
    RopeKey one;
    one.origin = entry.origin;
    if (entry.kind == Kind::table) {
      known_keys(entry, "a key of a rotary table", {"gguf", "hf"});
      for (const auto& [format, names] : entry.table)
        if (const std::size_t at = format_index(format); at != kNoFormat) one.names[at] = name_list(names);
    } else {
      one.direct = read_expression(entry);
    }
    if (key == "scaling" && one.direct) wrong(entry.origin, "scaling names the group of each format: { gguf = \"..\", hf = \"..\" }");
    out.keys.emplace_back(key, std::move(one));
  }
  for (const char* key : {"dim", "base"})
    if (out.find(key) == nullptr) wrong(out.origin, "[rope." + symbol + "] needs " + key);
  return out;
}

Item Reader::item(const Value& value, int depth) {
  Item out;
  out.origin = value.origin;
  if (value.kind == Kind::text) {
    out.line = read_line(value);
    return out;
  }
  need(value, Kind::table, "an item of a program");
  if (depth > 16) wrong(value.origin, "groups may be at most 16 deep");
  known_keys(value, "a group", {"when", "do", "else"});
  const Value* when = value.find("when");
  const Value* then = value.find("do");
  if (when == nullptr || then == nullptr) wrong(value.origin, "a group needs { when = \"condition\", do = [..] }");
  out.when = read_expression(*when);
  out.then = items(*then, depth + 1);
  if (const Value* otherwise = value.find("else")) out.otherwise = items(*otherwise, depth + 1);
  return out;
}

std::vector<Item> Reader::items(const Value& list, int depth) {
  need(list, Kind::list, "a list of lines");
  std::vector<Item> out;
  for (const Value& value : list.list) guard([&] { out.push_back(item(value, depth)); });
  return out;
}

ProgramSpec Reader::program(const Value& table, std::string name) {
  ProgramSpec out;
  out.name = std::move(name);
  out.origin = table.origin;
  for (const auto& entry : table.table) {
    const std::string& key = entry.first;
    const Value& value = entry.second;
    guard([&] {
      if (key == "begin") out.begin = items(value, 0);
      else if (key == "layer") out.layer = items(value, 0);
      else if (key == "end") out.end = items(value, 0);
      else if (key == "layers") out.layers = read_expression(value);
      else if (key == "outputs") out.outputs = text_list(value, "outputs");
    });
  }
  return out;
}

// The format of [section.FORMAT].
std::size_t Reader::format_of(const std::string& section, const std::string& format, const Value& table) {
  const std::size_t at = format_index(format);
  if (at == kNoFormat) wrong(table.key_origin, "[" + section + "] has the formats gguf and hf, not " + mekik::quoted(format));
  need(table, Kind::table, "[" + section + "." + format + "]");
  return at;
}

void Reader::convert(const std::string& format, const Value& table, PageSpec& page) {
  const std::size_t at = format_of("convert", format, table);
  for (const auto& [key, value] : table.table) page.convert[at].emplace_back(key, read_expression(value));
}

void Reader::fold(const std::string& format, const Value& table, PageSpec& page) {
  FoldSpec& out = page.fold[format_of("fold", format, table)];
  known_keys(table, "[fold." + format + "]", {"symbols", "times", "weights"});
  for (const auto& [part, rows] : table.table) {
    need(rows, Kind::table, "[fold." + format + "." + part + "]");
    for (const auto& [symbol, value] : rows.table)
      if (part == "weights") out.weights.emplace_back(symbol, source(value));
      else (part == "times" ? out.times : out.symbols).emplace_back(symbol, read_expression(value));
  }
}

void Reader::programs(const Value& table, PageSpec& page) {
  page.main = program(table, "");
  for (const auto& [key, value] : table.table) {
    if (value.kind == Kind::table) {
      known_keys(value, "[program." + key + "]", {"begin", "layer", "end", "layers", "outputs"});
      page.programs.push_back(program(value, key));
    } else if (key != "begin" && key != "layer" && key != "end" && key != "layers" && key != "outputs") {
      diagnostics_.error(value.key_origin, "unknown key " + mekik::quoted(key) + " in [program]");
    }
  }
}

void Reader::symbols_once(const PageSpec& page) {
  for (const auto& [symbol, row] : page.weights)
    if (page.hparam(symbol) != nullptr || page.rope(symbol) != nullptr)
      diagnostics_.error(row.origin, mekik::quoted(symbol) + " is the name of a weight and of another symbol of this page");
  for (const auto& [symbol, row] : page.weights)
    if (!row.fallback.empty() && page.weight(row.fallback) == nullptr)
      diagnostics_.error(row.fallback_origin,
                         "default of weight " + mekik::quoted(symbol) + ": there is no weight " + mekik::quoted(row.fallback));
}

PageSpec Reader::page(const Value& raw) {
  PageSpec out;
  out.origin = raw.origin;
  known_keys(raw, "a page", {"architecture", "hparams", "rope", "weights", "program", "image", "convert", "fold"});
  for (const auto& entry : raw.table) {
    const std::string& section = entry.first;
    const Value& table = entry.second;
    if (table.kind != Kind::table) {
      diagnostics_.error(table.origin, "[" + section + "] must be a table");
      continue;
    }
    if (section == "architecture") architecture(table, out);
    if (section == "program") programs(table, out);
    if (section == "image") out.has_image = true;
    for (const auto& row : table.table) {
      const std::string& symbol = row.first;
      guard([&, &value = row.second] {
        if (section == "hparams") out.hparams.emplace_back(symbol, hparam(value));
        if (section == "weights") out.weights.emplace_back(symbol, weight(value));
        if (section == "rope") out.ropes.emplace_back(symbol, rope(symbol, value));
        if (section == "convert") convert(symbol, value, out);
        if (section == "fold") fold(symbol, value, out);
      });
    }
  }
  symbols_once(out);
  return out;
}

}  // namespace

PageSpec read_page(const Value& raw, config::Diagnostics& diagnostics) { return Reader{diagnostics}.page(raw); }

}  // namespace mekik::program
