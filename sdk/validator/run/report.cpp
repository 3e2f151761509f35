#include "run/report.hpp"

#include <algorithm>
#include <cstdio>

namespace mekik::validate {

namespace {

const char* word(Verdict v) { return v == Verdict::passed ? "passed" : v == Verdict::failed ? "failed" : "skipped"; }

std::string json_text(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    char code[8];
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F)
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c)), out += code;
    else out += c;
  }
  return out + "\"";
}

std::string xml_text(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F) out += c;
    else out += c == '\n' || c == '\t' ? ' ' : '?';
  }
  return out;
}

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", s);
  return text;
}

}  // namespace

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(found.begin(), found.end(), [&](const Found& f) { return f.outcome.verdict == verdict; }));
}

std::string as_text(const Found& f) {
  std::string out = std::string{word(f.outcome.verdict)} + "  " + (f.component.empty() ? "" : f.component + "  ") + f.check;
  if (f.outcome.verdict == Verdict::skipped) return out + "  (" + (f.outcome.faults.empty() ? "" : f.outcome.faults[0]) + ")\n";
  out += "\n";
  for (const std::string& fault : f.outcome.faults) out += "        " + fault + "\n";
  return out;
}

std::string summary(const Report& r) {
  return r.file + ": " + std::to_string(r.found.size()) + " checks, " + std::to_string(r.count(Verdict::passed)) + " passed, " +
         std::to_string(r.count(Verdict::failed)) + " failed, " + std::to_string(r.count(Verdict::skipped)) + " skipped (--seed " +
         std::to_string(r.seed) + ")\n";
}

std::string as_json(const Report& r) {
  std::string out = "{\"file\":" + json_text(r.file) + ",\"seed\":" + std::to_string(r.seed) +
                    ",\"passed\":" + std::to_string(r.count(Verdict::passed)) + ",\"failed\":" + std::to_string(r.count(Verdict::failed)) +
                    ",\"skipped\":" + std::to_string(r.count(Verdict::skipped)) + ",\"checks\":[";
  for (std::size_t i = 0; i < r.found.size(); ++i) {
    const Found& f = r.found[i];
    out += std::string{i == 0 ? "" : ","} + "\n{\"component\":" + (f.component.empty() ? "null" : json_text(f.component)) +
           ",\"check\":" + json_text(f.check) + ",\"verdict\":\"" + word(f.outcome.verdict) +
           "\",\"seconds\":" + seconds(f.outcome.seconds) + (f.outcome.verdict == Verdict::skipped ? ",\"why\":[" : ",\"faults\":[");
    for (std::size_t j = 0; j < f.outcome.faults.size(); ++j) out += (j == 0 ? "" : ",") + json_text(f.outcome.faults[j]);
    out += "]}";
  }
  return out + "\n]}\n";
}

std::string as_junit(const Report& r) {
  double all = 0;
  for (const Found& f : r.found) all += f.outcome.seconds;
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"" + xml_text(r.file) + "\" tests=\"" +
                    std::to_string(r.found.size()) + "\" failures=\"" + std::to_string(r.count(Verdict::failed)) +
                    "\" errors=\"0\" skipped=\"" + std::to_string(r.count(Verdict::skipped)) + "\" time=\"" + seconds(all) + "\">\n";
  for (const Found& f : r.found) {
    out += "<testcase classname=\"" + xml_text(f.component.empty() ? "file" : f.component) + "\" name=\"" + xml_text(f.check) +
           "\" time=\"" + seconds(f.outcome.seconds) + "\"";
    if (f.outcome.verdict == Verdict::passed) {
      out += "/>\n";
      continue;
    }
    std::string whole;
    for (const std::string& fault : f.outcome.faults) whole += fault + "\n";
    const std::string first = f.outcome.faults.empty() ? "" : f.outcome.faults[0];
    if (f.outcome.verdict == Verdict::skipped) out += ">\n<skipped message=\"" + xml_text(first) + "\"/>\n</testcase>\n";
    else out += ">\n<failure message=\"" + xml_text(first) + "\">" + xml_text(whole) + "</failure>\n</testcase>\n";
  }
  return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace mekik::validate
