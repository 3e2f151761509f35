#include "program/page_spec.hpp"

namespace mekik::program {

namespace {

template <class Row>
const Row* find_row(const Named<Row>& rows, std::string_view name) {
  for (const auto& [symbol, row] : rows)
    if (symbol == name) return &row;
  return nullptr;
}

// How deep tables merge by key below each section: 1, the section itself; 2, the tables in it, too; 3, theirs.
int merge_depth(std::string_view section) {
  if (section == "fold") return 3;
  if (section == "rope" || section == "program" || section == "architecture" || section == "convert") return 2;
  return 1;
}

void merge_into(config::Value& base, const config::Value& over, int depth) {
  for (const auto& [key, value] : over.table) {
    config::Value* old = base.find(key);
    if (old == nullptr) base.table.emplace_back(key, value);
    else if (depth > 0 && old->kind == config::Kind::table && value.kind == config::Kind::table) merge_into(*old, value, depth - 1);
    else *old = value;
  }
  base.origin = over.origin;
  base.key_origin = over.key_origin;
}

}  // namespace

std::size_t format_index(const std::string& format) {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (format == kFormats[i]) return i;
  return kNoFormat;
}

const RopeKey* RopeRow::find(std::string_view key) const {
  for (const auto& [name, value] : keys)
    if (name == key) return &value;
  return nullptr;
}

const HparamRow* PageSpec::hparam(std::string_view symbol) const { return find_row(hparams, symbol); }
const WeightRow* PageSpec::weight(std::string_view symbol) const { return find_row(weights, symbol); }
const RopeRow* PageSpec::rope(std::string_view symbol) const { return find_row(ropes, symbol); }

config::Value merge_pages(const config::Value& base, const config::Value& page) {
  config::Value out = base;
  if (config::Value* architecture = out.find("architecture"); architecture != nullptr && architecture->kind == config::Kind::table)
    std::erase_if(architecture->table,
                  [](const auto& entry) { return entry.first == "matches" || entry.first == "extends" || entry.first == "omitted"; });
  for (const auto& [section, value] : page.table) {
    config::Value* old = out.find(section);
    if (old == nullptr) out.table.emplace_back(section, value);
    else if (old->kind == config::Kind::table && value.kind == config::Kind::table) merge_into(*old, value, merge_depth(section) - 1);
    else *old = value;
  }
  out.origin = page.origin;
  return out;
}

}  // namespace mekik::program
