// The filters, tests, methods and globals that templates may use. Nothing else is reachable.
#pragma once
#include <string>

#include "text/jinja/value.hpp"

namespace mekik::text::jinja {

bool has_filter(const std::string& name);
bool has_test(const std::string& name);
std::string unknown_filter(const std::string& name);  // the message, with what was probably meant
std::string unknown_test(const std::string& name);

Value apply_filter(const std::string& name, const Value& value, Call& call);
bool apply_test(const std::string& name, const Value& value, Call& call);

// of.name, as Python and the sandbox see it: a method, else an item of a dict, else undefined.
Value attribute(const Value& of, const std::string& name, Budget& budget);
Value subscript(const Value& of, const Value& index, Budget& budget);
// of[start:stop:step]; none or undefined bounds are absent.
Value slice(const Value& of, const Value& start, const Value& stop, const Value& step, Budget& budget);
Value arithmetic(const std::string& op, const Value& a, const Value& b, Budget& budget);
Value call(const Value& function, Call& arguments);
// The value of a name that the context does not have: range, namespace, raise_exception, ... or undefined.
Value global(const std::string& name);

// Helpers that filters and methods share.
void spend_on(const Call& call);                                                            // for reading all of its arguments once
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);  // in linear time; npos: it is not there
std::size_t find_last_text(std::string_view text, std::string_view part);
const Text& need_text(const Value& value, const char* what);
std::int64_t need_integer(const Value& value, const char* what);
Text strip(const Text& text, const Value* characters, bool left, bool right, Budget& budget);
Text replace(const Text& text, const Text& from, const Text& to, std::int64_t count, Budget& budget);
Text map_case(const Text& text, char kind, Budget& budget);  // u upper, l lower, c capitalize, t title, s swap
List split(const Text& text, const Value* separator, std::int64_t limit, bool from_right, Budget& budget);
// Padded to `width` characters by `fill`; where: -1 on the right, 0 on both sides, 1 on the left.
Text pad(const Text& text, std::int64_t width, const Text& fill, int where, Budget& budget);
Text join(const List& items, const Text& separator, Budget& budget);
Text format_percent(const Text& format, const List& arguments, Budget& budget);
Value text_method(const Value& of, const std::string& name);  // undefined when there is no such method

}  // namespace mekik::text::jinja
