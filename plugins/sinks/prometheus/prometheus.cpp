// Prometheus text format 0.0.4 for GET /metrics.
#include <mekik/plugin.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace {

std::string number(double value) {
  if (std::isnan(value)) return "0";  // a rate before the first event; the format's NaN breaks sums
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string escaped(std::string_view text, bool quote) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\\\";
    else if (c == '\n') out += "\\n";
    else if (c == '"' && quote) out += "\\\"";
    else out += c;
  }
  return out;
}

bool valid_name(std::string_view name, bool label) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c == ':' && !label))) return false;
  return true;
}

// "k=v,k=v" as `k="v",k="v"`; names that are no label names are made ones.
std::string labels_of(const char* labels) {
  std::string out;
  std::string_view rest = labels == nullptr ? "" : labels;
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto equals = part.find('=');
    std::string key{part.substr(0, equals)};
    if (!valid_name(key, true)) key = "label_" + std::to_string(out.size());
    if (!out.empty()) out += ',';
    out += key + "=\"" + escaped(equals == std::string_view::npos ? "" : part.substr(equals + 1), true) + '"';
  }
  return out;
}

std::string line(const std::string& name, const std::string& labels, const std::string& value) {
  return name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
}

void write_histogram(std::string& out, const std::string& name, const std::string& labels, const mekik_sample& s) {
  const auto with = [&](const std::string& bound) { return labels + (labels.empty() ? "" : ",") + "le=\"" + bound + "\""; };
  for (std::uint32_t i = 0; i < s.n_bounds; ++i) out += line(name + "_bucket", with(number(s.bounds[i])), std::to_string(s.counts[i]));
  out += line(name + "_bucket", with("+Inf"), std::to_string(s.count));
  out += line(name + "_sum", labels, number(s.value));
  out += line(name + "_count", labels, std::to_string(s.count));
}

class Prometheus {
 public:
  static constexpr const char* name = "prometheus";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Answers GET /metrics in the Prometheus text format.";
  static constexpr std::array<mekik_option, 0> options{};
  explicit Prometheus(mekik::Config) {}
  void publish(std::uint64_t, mekik::Strided<const mekik_sample>) {}  // Prometheus comes and asks

  template <class Write>
  const char* scrape(std::string_view, mekik::Strided<const mekik_sample> samples, const Write& write) {
    // All series of one name stand together, under one HELP and TYPE.
    std::map<std::string, std::vector<std::size_t>> families;
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (valid_name(samples[i].name, false)) families[samples[i].name].push_back(i);
    for (const auto& [family, members] : families) {
      const auto& first = samples[members.front()];
      static constexpr const char* kTypes[] = {"untyped", "counter", "gauge", "histogram"};
      std::string out = "# HELP " + family + " " + escaped(first.help == nullptr ? "" : first.help, false) + "\n# TYPE " + family + " " +
                        kTypes[first.type <= 3 ? first.type : 0] + "\n";
      for (const auto i : members) {
        const auto labels = labels_of(samples[i].labels);
        if (samples[i].type == MEKIK_SAMPLE_HISTOGRAM) write_histogram(out, family, labels, samples[i]);
        else out += line(family, labels, number(samples[i].value));
      }
      write(out);
    }
    return "text/plain; version=0.0.4; charset=utf-8";
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.sink.prometheus", "1.0", mekik::sink<Prometheus>());
