// The backend `reference`: the reference operations as a plugin. Slow and exact: what every other backend is measured by.
#include "reference/backend/device.hpp"

namespace {

class Reference : public mekik::reference_backend::Device<mekik::reference_backend::Exec> {
 public:
  static constexpr const char* name = "reference";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Every operation in plain loops: slow, exact, the measure of the others.";
  using Device::Device;
};

}  // namespace

MEKIK_PLUGIN("mekik.backend.reference", "1.0", mekik::backend<Reference>());
