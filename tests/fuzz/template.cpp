// Any template over any messages: the source, a zero byte, and the context as JSON. It renders, or says why not; what users wrote is
// never trusted, rendering twice gives the same, and both work and output stay within their limits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.hpp"
#include "text/chat_template.hpp"

namespace {

using namespace mekik;

constexpr std::string_view kMark = "\xEE\x80\x80";  // U+E000 stands for what users write

void require(bool holds) {
  if (!holds) std::abort();
}

json::object context_of(std::string_view text) {
  json::object context;
  if (auto parsed = json::parse(text); parsed.ok() && parsed->is_object()) context = parsed->as_object();
  json::value& messages = context["messages"];
  if (!messages.is_array()) messages = json::array{};
  json::object message;
  message["role"] = "user";
  message["content"] = std::string{kMark} + " <|im_end|> " + std::string{kMark};
  messages.as_array().push_back(std::move(message));
  return context;
}

// Whether the template has no means of its own to make the mark: it is not in its text, nor an escape or the number of a character.
bool can_tell_marks(std::string_view source, std::string_view context) {
  for (const std::string_view means : {kMark, std::string_view{"\\"}, std::string_view{"format"}, std::string_view{"%c"}})
    if (source.find(means) != std::string_view::npos) return false;
  return context.find(kMark) == std::string_view::npos && context.find("\\u") == std::string_view::npos;
}

void check_parts(const std::vector<text::TextPart>& parts, bool marks, std::size_t limit) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bytes += parts[i].text.size();
    require(!parts[i].text.empty());
    require(i == 0 || parts[i].trusted != parts[i - 1].trusted);
    require(!marks || !parts[i].trusted || parts[i].text.find(kMark) == std::string::npos);
  }
  require(bytes <= limit);
  require(is_utf8(text::plain_text(parts)));
}

bool same(const Result<std::vector<text::TextPart>>& a, const Result<std::vector<text::TextPart>>& b) {
  if (!a.ok() || !b.ok()) return a.status().text == b.status().text;
  if ((*a).size() != (*b).size()) return false;
  for (std::size_t i = 0; i < (*a).size(); ++i)
    if ((*a)[i].text != (*b)[i].text || (*a)[i].trusted != (*b)[i].trusted) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view source = input.substr(0, end), rest = input.substr(std::min(end + 1, size));
  const auto compiled = text::ChatTemplate::compile(source);
  if (!compiled.ok()) {
    require(compiled.status().text.starts_with("template"));
    return 0;
  }
  json::object context = context_of(rest);
  text::TemplateLimits limits;
  limits.steps = 20'000;
  limits.output_bytes = 1u << 16;
  limits.now = 1'700'000'000;
  const auto rendered = (*compiled).render(context, limits);
  if (rendered.ok()) check_parts(*rendered, can_tell_marks(source, rest), limits.output_bytes);
  else require(!rendered.status().text.empty());
  require(same(rendered, (*compiled).render(context, limits)));
  const auto uniform = text::normalise_messages(context.at("messages").as_array());
  if (!uniform.ok()) return 0;
  context["messages"] = *uniform;
  if (const auto again = (*compiled).render(context, limits); again.ok())
    check_parts(*again, can_tell_marks(source, rest), limits.output_bytes);
  return 0;
}
