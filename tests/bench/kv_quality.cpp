// What a form of KV costs in quality: bench_kv_quality MODEL TOKENS WINDOW FORM... reads token ids from the file TOKENS, runs them in
// windows of WINDOW tokens with keys and values in F32 and in each FORM, and prints a line of JSON for each. kv_quality.py makes a table of
// them. All settings but cache.kv are the model's own, so the difference is that of the form.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "app/session.hpp"
#include "engine/evaluate.hpp"

namespace mekik::app {

namespace {

std::unique_ptr<engine::Model> load(Session& session, const std::string& path, const std::string& form, std::size_t window) {
  config::Diagnostics diagnostics;
  auto pipeline = config::default_pipeline(path, {{"cache.kv=" + form}, {"scheduler.max_sequences=512"}}, session.registry(), diagnostics);
  if (!diagnostics.ok() || !pipeline) throw Failure{kMisused, diagnostics.render(), true};
  pipeline->model.planned = static_cast<std::uint32_t>(window);
  auto model = session.open(*pipeline);
  session.load(*model);
  return model;
}

// Natural logarithms of a row's probabilities, in place.
void to_logs(std::vector<float>& row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(x - most);
  const double shift = most + std::log(sum);
  for (float& x : row) x = static_cast<float>(x - shift);
}

struct Sums {
  std::vector<double> divergence;
  double loss = 0;
  std::size_t losses = 0, same = 0;
};

// The rows of a window with one form, against those of the first.
void measure(engine::Model& model, std::span<const std::int32_t> tokens, std::vector<std::vector<float>>& truth, bool first, Sums& sums) {
  std::size_t at = 0;
  need(engine::evaluate(model, tokens, true, [&](std::span<const float> logits) {
    std::vector<float> row{logits.begin(), logits.end()};
    to_logs(row);
    if (at + 1 < tokens.size()) {
      sums.loss -= row[static_cast<std::size_t>(tokens[at + 1])];
      ++sums.losses;
    }
    if (!first) {
      const std::vector<float>& wanted = truth[at];
      double divergence = 0;
      for (std::size_t i = 0; i < row.size(); ++i) divergence += std::exp(double{wanted[i]}) * (double{wanted[i]} - row[i]);
      sums.divergence.push_back(divergence);
      sums.same +=
          std::max_element(row.begin(), row.end()) - row.begin() == std::max_element(wanted.begin(), wanted.end()) - wanted.begin();
    } else {
      truth[at] = std::move(row);
    }
    ++at;
  }));
}

void print(const std::string& form, std::uint64_t token_bytes, Sums& sums) {
  std::sort(sums.divergence.begin(), sums.divergence.end());
  double mean = 0;
  for (const double d : sums.divergence) mean += d;
  const std::size_t n = sums.divergence.size();
  std::printf("{\"kv\":\"%s\",\"token_bytes\":%llu,\"perplexity\":%.5f,\"kl_mean\":%.4e,\"kl_p99\":%.4e,\"same_top\":%.5f}\n", form.c_str(),
              static_cast<unsigned long long>(token_bytes), std::exp(sums.loss / static_cast<double>(sums.losses)),
              n != 0 ? mean / static_cast<double>(n) : 0.0, n != 0 ? sums.divergence[n * 99 / 100] : 0.0,
              n != 0 ? static_cast<double>(sums.same) / static_cast<double>(n) : 1.0);
}

int run(int count, char** words) {
  std::ifstream file{words[2]};
  const std::vector<std::int32_t> tokens{std::istream_iterator<std::int32_t>{file}, {}};
  const auto window = static_cast<std::size_t>(std::atoi(words[3]));
  if (window == 0 || tokens.size() < window) throw Failure{kMisused, "fewer tokens than a window"};
  std::vector<std::string> forms{"f32"};
  forms.insert(forms.end(), words + 4, words + count);
  Session session;
  std::vector<std::unique_ptr<engine::Model>> models;
  for (const std::string& form : forms) models.push_back(load(session, words[1], form, window));
  std::vector<Sums> sums(forms.size());
  std::vector<std::vector<float>> truth(window);
  for (std::size_t at = 0; at + window <= tokens.size(); at += window)
    for (std::size_t m = 0; m < models.size(); ++m) measure(*models[m], {tokens.data() + at, window}, truth, m == 0, sums[m]);
  for (std::size_t m = 0; m < models.size(); ++m) print(forms[m], models[m]->plan().token_bytes + models[m]->plan().window_bytes, sums[m]);
  return 0;
}

}  // namespace

}  // namespace mekik::app

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "bench_kv_quality MODEL TOKENS WINDOW FORM...\n");
    return 2;
  }
  try {
    return mekik::app::run(count, words);
  } catch (const mekik::app::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return failure.code;
  }
}
