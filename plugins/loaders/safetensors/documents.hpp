// The JSON and text files beside the weights: what meta() answers.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "folder.hpp"

namespace mekik_safetensors {

// Thread: any. Files are read when they are first asked for.
class Documents {
 public:
  explicit Documents(const Folder& folder) : folder_{folder} {}
  // JSON text that lasts as long as this object. Throws mekik::Error; MEKIK_E_INVALID when the folder has none.
  const std::string& get(const std::string& key);

 private:
  std::string make(const std::string& key) const;
  std::string chat_template(const std::string& name) const;
  std::string tokenizer() const;

  const Folder& folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> made_;
};

}  // namespace mekik_safetensors
