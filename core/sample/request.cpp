#include <algorithm>

#include "config/options.hpp"
#include "sample/chain.hpp"

namespace mekik::sample {

Result<std::string> sampler_request(const std::vector<const mekik_component*>& chain, const json::object& fields,
                                    std::vector<std::string>& unknown) {
  json::object out;
  for (const auto& field : fields) {
    bool known = false;
    for (const auto* component : chain) {
      const auto rows = config::rows_of(*component);
      for (std::uint32_t i = 0; i < rows.count; ++i) {
        if (field.key() != rows[i].key) continue;
        known = true;
        // null is how clients spell "not given"; a text option takes any JSON object as its text (logit_bias).
        if (field.value().is_null()) continue;
        json::value value = field.value();
        if (rows[i].type == MEKIK_OPT_TEXT && value.is_object()) value = json::serialize(value);
        MEKIK_CHECK_OK(config::check_option_json(rows[i], value));
        out[field.key()] = value;
      }
    }
    if (!known) unknown.emplace_back(field.key());
  }
  return json::serialize(out);
}

}  // namespace mekik::sample
