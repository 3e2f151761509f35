// Small helpers for text: UTF-8, suggestions, numbers for people.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mekik {

// Whether all of it is UTF-8 by RFC 3629 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);
// The length of the longest prefix that does not end inside a UTF-8 sequence. Bytes that can never become valid count as whole.
std::size_t utf8_complete_prefix(std::string_view text);
// Invalid sequences become U+FFFD, one for each maximal subpart (Unicode 15, 3.9, table 3-8), as Python's "replace" does.
std::string utf8_replace_invalid(std::string_view text);
std::size_t utf8_length(std::string_view valid_utf8);  // code points
void append_utf8(std::string& out, char32_t code_point);
// Decodes one code point of valid UTF-8 at `at` and advances it.
char32_t next_code_point(std::string_view valid_utf8, std::size_t& at);

// The candidate closest to `word` (Damerau-Levenshtein, at most a third of its length away), or nothing.
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& candidates);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string quoted(std::string_view text);     // "text", escaped and cut to 80 characters: for messages
std::string human_bytes(std::uint64_t bytes);  // 12.3 MiB
// "512", "64KiB", "1.5GiB", "1GB": bytes. Nothing when it is not one.
std::optional<std::uint64_t> parse_size(std::string_view text);
// "250ms", "1.5s", "2m", "1h", "10us", "5ns": nanoseconds.
std::optional<std::uint64_t> parse_duration(std::string_view text);
// Matches a shell-like pattern with * and ?.
bool glob_match(std::string_view pattern, std::string_view text);
std::string sha256_hex(std::string_view bytes);

}  // namespace mekik
