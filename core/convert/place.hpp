// Where a result is written: beside its name, under which it appears when it is whole, and not before, whatever happens.
#pragma once
#include <filesystem>

#include "base/status.hpp"

namespace mekik::convert {

class Place {
 public:
  // NAME.mekik-part is what one that was killed left; it is removed.
  static Result<Place> begin(const std::filesystem::path& name, bool folder);
  Place(Place&& other) noexcept;
  Place& operator=(Place&&) = delete;
  ~Place();  // removes what was not finished

  const std::filesystem::path& path() const { return part_; }
  // Everything on disk, then renamed. What lies there by now is left alone, and is an error.
  Status finish();

 private:
  Place(std::filesystem::path name, std::filesystem::path part) : name_{std::move(name)}, part_{std::move(part)} {}
  std::filesystem::path name_, part_;
};

}  // namespace mekik::convert
