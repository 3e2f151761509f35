#include "header_json.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <mekik/plugin.hpp>
#include <unordered_set>

#include <mekik/text.hpp>

namespace mekik_safetensors {

namespace {

using boost::json::error_code;
using boost::json::string_view;
using mekik::loaders::shown;

constexpr std::size_t kMaxName = 4096, kMaxRank = 16, kMaxDepth = 8;

// Takes the header apart while it is parsed: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {..}}.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1), max_key_size = kMaxName,
                               max_string_size = std::size_t(-1);

  std::string why;  // of a stop that is not the parser's
  std::vector<TensorEntry> tensors;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error) {
    if (where_ == Where::top) return go(Where::root);
    if (where_ == Where::metadata) return misplaced(error);
    if (where_ != Where::root) return stop(error, "holds an object where none belongs");
    if (key_ == "__metadata__") return go(Where::metadata);
    fields_ = 0;
    tensors.emplace_back().name = key_;
    return go(Where::tensor);
  }
  bool on_object_end(std::size_t, error_code& error) {
    if (where_ == Where::tensor && fields_ != 7) return stop(error, "lacks one of dtype, shape and data_offsets");
    return go(where_ == Where::root ? Where::top : Where::root);
  }
  bool on_array_begin(error_code& error) {
    if (where_ == Where::top || where_ == Where::root || where_ == Where::metadata) return misplaced(error);
    if (where_ != Where::tensor || (key_ != "shape" && key_ != "data_offsets")) return stop(error, "holds a list where none belongs");
    numbers_.clear();
    return go(Where::list);
  }
  bool on_array_end(std::size_t, error_code& error) {
    where_ = Where::tensor;
    if (key_ == "shape") {
      tensors.back().shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2) return stop(error, "has data_offsets that are not two numbers");
    if (numbers_[0] > numbers_[1])
      return stop(error,
                  "has data_offsets that end before they begin: " + std::to_string(numbers_[0]) + ", " + std::to_string(numbers_[1]));
    tensors.back().begin = numbers_[0];
    tensors.back().bytes = numbers_[1] - numbers_[0];
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& error) {
    text_.append(part.data(), part.size());
    key_.swap(text_);
    text_.clear();
    if (where_ == Where::root) {
      if (!names_.insert(key_).second) return stop(error, "occurs twice", key_);
      if (key_.empty()) return stop_as(error, "a tensor has no name");
      const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
      if (std::any_of(key_.begin(), key_.end(), control)) return stop(error, "has a name with control characters", key_);
    }
    if (where_ == Where::metadata && !metadata_.insert(key_).second) return stop(error, "occurs twice in __metadata__", key_);
    if (where_ != Where::tensor) return true;
    const unsigned field = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
    if (field == 0) return stop(error, "has the unknown field " + shown(key_) + "; a newer program may read it");
    if ((fields_ & field) != 0) return stop(error, "has the field " + shown(key_) + " twice");
    fields_ |= field;
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(string_view part, std::size_t, error_code& error) {
    text_.append(part.data(), part.size());
    std::string value;
    value.swap(text_);
    if (where_ == Where::metadata) return true;
    if (where_ == Where::top || where_ == Where::root || where_ == Where::metadata) return misplaced(error);
    if (where_ != Where::tensor || key_ != "dtype") return stop(error, "holds a text where none belongs");
    const Dtype* dtype = find_dtype(value);
    if (dtype == nullptr) return stop(error, "has the dtype " + shown(value) + "; those that are read: " + dtype_names());
    tensors.back().dtype = dtype;
    return true;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t value, string_view, error_code& error) {
    if (where_ != Where::list) return misplaced(error);
    if (numbers_.size() >= kMaxRank) return stop(error, "has more than " + std::to_string(kMaxRank) + " sizes");
    numbers_.push_back(value);
    return true;
  }
  bool on_int64(std::int64_t value, string_view text, error_code& error) {
    if (where_ != Where::list) return misplaced(error);
    if (value < 0) return stop(error, "has the negative number " + std::to_string(value) + " in its " + key_);
    return on_uint64(static_cast<std::uint64_t>(value), text, error);
  }
  bool on_double(double, string_view, error_code& error) {
    if (where_ != Where::list) return misplaced(error);
    return stop(error, "has a number in its " + key_ + " that is not a whole one of 64 bits");
  }
  bool on_bool(bool, error_code& error) { return misplaced(error); }
  bool on_null(error_code& error) { return misplaced(error); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  enum class Where { top, root, tensor, list, metadata };

  bool go(Where next) {
    where_ = next;
    return true;
  }
  bool stop(error_code& error, std::string text) {
    const bool named = where_ == Where::tensor || where_ == Where::list;
    return named ? stop(error, std::move(text), tensors.back().name) : stop_as(error, std::move(text));
  }
  bool stop(error_code& error, const std::string& text, const std::string& name) {
    return stop_as(error, (name == "__metadata__" ? name : "tensor " + shown(name)) + " " + text);
  }
  bool stop_as(error_code& error, std::string text) {
    why = std::move(text);
    error = boost::json::error::syntax;
    return false;
  }
  bool misplaced(error_code& error) {
    if (where_ == Where::top) return stop_as(error, "the header is not a JSON object");
    if (where_ == Where::metadata) return stop_as(error, "__metadata__ holds something that is not a text under " + shown(key_));
    if (where_ == Where::root) return stop_as(error, "tensor " + shown(key_) + " is not described by an object");
    return stop(error, "holds something else than whole numbers and texts under " + shown(key_));
  }

  Where where_ = Where::top;
  std::string text_, key_;
  std::unordered_set<std::string> names_, metadata_;
  std::vector<std::uint64_t> numbers_;
  unsigned fields_ = 0;  // 1 dtype, 2 shape, 4 data_offsets
};

}  // namespace

std::vector<TensorEntry> parse_header(std::string_view json) {
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::basic_parser<Handler> parser{options};
  error_code error;
  const std::size_t used = parser.write_some(false, json.data(), json.size(), error);
  const auto invalid = [](const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, why}; };
  if (!parser.handler().why.empty()) invalid(parser.handler().why);
  if (error) invalid("the header is not valid JSON at byte " + std::to_string(8 + used) + ": " + error.message());
  if (const std::size_t more = json.find_first_not_of(" \t\r\n", used); more != std::string_view::npos)
    invalid("the header goes on after its JSON, at byte " + std::to_string(8 + more));
  return std::move(parser.handler().tensors);
}

}  // namespace mekik_safetensors
