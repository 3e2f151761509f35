// A row of a CSV file for each finished request.
#include <mekik/plugin.hpp>

#include <fstream>
#include <mutex>

struct Csv {
  static constexpr const char *name = "csv", *version = "1.0", *summary = "Appends a row for each finished request to a CSV file.";
  static constexpr std::array options{mekik::opt::required(mekik::opt::path("path", nullptr, "The file."))};
  static constexpr const char* kColumns[] = {"id", "finish_reason", "prompt_tokens", "completion_tokens", "ttft_seconds", "total_seconds"};

  explicit Csv(mekik::Config config) : file_{std::string{config.text("path")}, std::ios::app} {
    if (!file_) config.reject("path", "cannot be opened for appending");
  }
  void event(std::string_view what, std::uint64_t, mekik::Strided<const mekik_field> fields) {
    const std::lock_guard lock{mutex_};  // events come from any thread
    for (const char* column : kColumns) {
      if (column != kColumns[0]) file_ << ',';
      for (const mekik_field& f : fields)
        if (std::string_view{f.key} == column) f.type == MEKIK_OPT_TEXT ? file_ << mekik::view(f.text) : file_ << f.number;
    }
    file_ << (what == "request_finished" ? "" : "?") << std::endl;
  }
  std::ofstream file_;
  std::mutex mutex_;
};

MEKIK_PLUGIN("org.example.csv", "1.0", mekik::sink<Csv>());
