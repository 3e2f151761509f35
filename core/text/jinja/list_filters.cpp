// Filters over sequences: map, select, sort and their like.
#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "text/jinja/list_filters.hpp"

namespace mekik::text::jinja {

namespace {

Value fold_key(const Value& v, bool case_sensitive, Budget& budget) {
  return v.is(Type::text) && !case_sensitive ? Value::text(map_case(v.as_text(), 'l', budget)) : v;
}

void sort_by(List& items, const std::function<Value(const Value&)>& key, bool reverse, Budget& budget) {
  std::vector<std::pair<Value, Value>> keyed;
  keyed.reserve(items.size());
  for (Value& item : items) {
    Value own = key(item);
    budget.spend(1 + own.weight());
    keyed.emplace_back(std::move(own), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const int order = compare(a.first, b.first, budget);
    return reverse ? order > 0 : order < 0;
  });
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
}

}  // namespace

// The value of `path` (dotted; numbers are indices) inside an item: what map, sort and others mean by attribute.
Value item_attribute(const Value& item, const Value& path, Budget& budget) {
  if (path.is(Type::integer)) return subscript(item, path, budget);
  Value out = item;
  for (const std::string& part : mekik::split(need_text(path, "an attribute").bytes, '.')) {
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = error == std::errc{} && end == part.data() + part.size();
    out = subscript(out, number ? Value::integer(index) : Value::text(part, true), budget);
  }
  return out;
}

Value map(const Value& v, const std::string&, Call& c) {
  List out;
  const Value* by = c.positional.empty() ? c.find(1, "attribute") : nullptr;
  if (by == nullptr && c.positional.empty()) throw TemplateError{"map needs a filter or attribute="};
  const Value fallback = c.get(~std::size_t{0}, "default", Value{});
  for (const Value& item : iterate(v, *c.budget)) {
    if (by != nullptr) {
      Value got = item_attribute(item, *by, *c.budget);
      out.push_back(got.is(Type::undefined) && !fallback.is(Type::undefined) ? fallback : std::move(got));
    } else {
      Call inner{{c.positional.begin() + 1, c.positional.end()}, c.named, c.budget};
      out.push_back(apply_filter(need_text(c.positional[0], "map").bytes, item, inner));
    }
  }
  return Value::generator(std::move(out));
}

// select, reject, selectattr, rejectattr
Value choose(const Value& v, const std::string& name, Call& c) {
  const bool by_attribute = name.ends_with("attr"), wanted = name[0] == 's';
  const std::size_t test_at = by_attribute ? 1 : 0;
  if (c.positional.size() < test_at) throw TemplateError{name + " needs an attribute"};
  List out;
  for (const Value& item : iterate(v, *c.budget)) {
    const Value subject = by_attribute ? item_attribute(item, c.positional[0], *c.budget) : item;
    bool holds = false;
    if (c.positional.size() > test_at) {
      Call inner{{c.positional.begin() + static_cast<std::ptrdiff_t>(test_at) + 1, c.positional.end()}, c.named, c.budget};
      holds = apply_test(need_text(c.positional[test_at], name.c_str()).bytes, subject, inner);
    } else {
      holds = subject.truthy();
    }
    if (holds == wanted) out.push_back(item);
  }
  return Value::generator(std::move(out));
}

Value sort(const Value& v, const std::string&, Call& c) {
  c.check("sort", 0, 3, {"reverse", "case_sensitive", "attribute"});
  const bool sensitive = c.get(1, "case_sensitive", Value::boolean(false)).truthy();
  const Value by = c.get(2, "attribute", Value::none());
  List items = iterate(v, *c.budget);
  sort_by(
      items,
      [&](const Value& item) { return fold_key(by.is(Type::none) ? item : item_attribute(item, by, *c.budget), sensitive, *c.budget); },
      c.get(0, "reverse", Value::boolean(false)).truthy(), *c.budget);
  return Value::list(std::move(items));
}

Value dictsort(const Value& v, const std::string&, Call& c) {
  c.check("dictsort", 0, 3, {"case_sensitive", "by", "reverse"});
  if (!v.is(Type::dict)) throw TemplateError{std::string{"dictsort needs a dict, not "} + type_name(v)};
  const bool sensitive = c.get(0, "case_sensitive", Value::boolean(false)).truthy();
  const bool by_value = to_text(c.get(1, "by", Value::text("key", true)), *c.budget).bytes == "value";
  List items;
  for (const auto& [key, value] : v.as_dict().items) items.push_back(Value::tuple({key, value}));
  sort_by(
      items, [&](const Value& item) { return fold_key(item.as_list()[by_value ? 1 : 0], sensitive, *c.budget); },
      c.get(2, "reverse", Value::boolean(false)).truthy(), *c.budget);
  return Value::list(std::move(items));
}

Value unique(const Value& v, const std::string&, Call& c) {
  c.check("unique", 0, 2, {"case_sensitive", "attribute"});
  const bool sensitive = c.get(0, "case_sensitive", Value::boolean(false)).truthy();
  const Value by = c.get(1, "attribute", Value::none());
  List out, keys;
  for (const Value& item : iterate(v, *c.budget)) {
    const Value key = fold_key(by.is(Type::none) ? item : item_attribute(item, by, *c.budget), sensitive, *c.budget);
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& seen) { return equal(seen, key, *c.budget); })) continue;
    keys.push_back(key);
    out.push_back(item);
  }
  return Value::generator(std::move(out));
}

Value groupby(const Value& v, const std::string&, Call& c) {
  c.check("groupby", 1, 2, {"attribute", "default"});
  const Value by = c.get(0, "attribute", Value::none());
  const auto key = [&](const Value& item) {
    Value k = item_attribute(item, by, *c.budget);
    return k.is(Type::undefined) ? c.get(1, "default", Value::none()) : k;
  };
  List items = iterate(v, *c.budget), groups;
  sort_by(
      items, [&](const Value& item) { return fold_key(key(item), false, *c.budget); }, false, *c.budget);
  for (std::size_t i = 0; i < items.size();) {
    const Value k = key(items[i]);
    List group;
    for (; i < items.size() && equal(fold_key(key(items[i]), false, *c.budget), fold_key(k, false, *c.budget), *c.budget); ++i)
      group.push_back(items[i]);
    groups.push_back(Value::tuple({k, Value::list(std::move(group))}));
  }
  return Value::list(std::move(groups));
}

Value extreme(const Value& v, const std::string& name, Call& c) {
  c.check(name, 0, 2, {"case_sensitive", "attribute"});
  const List items = iterate(v, *c.budget);
  const Value by = c.get(1, "attribute", Value::none());
  const bool sensitive = c.get(0, "case_sensitive", Value::boolean(false)).truthy();
  const auto key = [&](const Value& item) {
    return fold_key(by.is(Type::none) ? item : item_attribute(item, by, *c.budget), sensitive, *c.budget);
  };
  const Value* best = nullptr;
  for (const Value& item : items) {
    if (best != nullptr) {
      const int order = compare(key(item), key(*best), *c.budget);
      if (name == "max" ? order <= 0 : order >= 0) continue;
    }
    best = &item;
  }
  return best ? *best : Value::undefined("the " + name + " of nothing");
}

Value sum(const Value& v, const std::string&, Call& c) {
  c.check("sum", 0, 2, {"attribute", "start"});
  Value total = c.get(1, "start", Value::integer(0));
  const Value by = c.get(0, "attribute", Value::none());
  for (const Value& item : iterate(v, *c.budget))
    total = arithmetic("+", total, by.is(Type::none) ? item : item_attribute(item, by, *c.budget), *c.budget);
  return total;
}

Value batch(const Value& v, const std::string&, Call& c) {
  c.check("batch", 1, 2, {"linecount", "fill_with"});
  const std::int64_t size = need_integer(c.get(0, "linecount", Value::none()), "batch");
  if (size < 1) throw TemplateError{"batch needs a positive size"};
  const Value fill = c.get(1, "fill_with", Value::none());
  List out, row;
  for (const Value& item : iterate(v, *c.budget)) {
    row.push_back(item);
    if (static_cast<std::int64_t>(row.size()) == size) out.push_back(Value::list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (!fill.is(Type::none)) {
      if (static_cast<std::uint64_t>(size) > c.budget->max_output_bytes / sizeof(Value)) c.budget->spend_bytes(~std::uint64_t{0});
      c.budget->spend_bytes(static_cast<std::uint64_t>(size) * sizeof(Value));
      row.resize(static_cast<std::size_t>(size), fill);
    }
    out.push_back(Value::list(std::move(row)));
  }
  return Value::generator(std::move(out));
}

}  // namespace mekik::text::jinja
