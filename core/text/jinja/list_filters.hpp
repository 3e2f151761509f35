// The filters of list_filters.cpp and numbers.cpp, for the table in filters.cpp.
#pragma once
#include <string>

#include "text/jinja/builtins.hpp"

namespace mekik::text::jinja {

// The value at `path` (dotted; numbers are indices) inside an item: what map, sort and others mean by attribute.
Value item_attribute(const Value& item, const Value& path, Budget& budget);

Value map(const Value& v, const std::string& name, Call& call);
Value choose(const Value& v, const std::string& name, Call& call);  // select, reject, selectattr, rejectattr
Value sort(const Value& v, const std::string& name, Call& call);
Value dictsort(const Value& v, const std::string& name, Call& call);
Value unique(const Value& v, const std::string& name, Call& call);
Value groupby(const Value& v, const std::string& name, Call& call);
Value extreme(const Value& v, const std::string& name, Call& call);  // min, max
Value sum(const Value& v, const std::string& name, Call& call);
Value batch(const Value& v, const std::string& name, Call& call);

Value to_int(const Value& v, const std::string& name, Call& call);
Value to_float(const Value& v, const std::string& name, Call& call);

}  // namespace mekik::text::jinja
