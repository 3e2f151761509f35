// What plugins said through mekik_host.fail, per thread.
#pragma once
#include <mekik/plugin.h>

#include <string>
#include <string_view>

namespace mekik::plugin {

// Remembers why this thread's current ABI call is about to fail.
void remember_failure(std::string_view why);
// The same for mekik_config_api.reject: `placed` has file, line and column. A wrapper reports the bare `why` once more when its exception
// crosses the border; that must not hide the place.
void remember_rejection(std::string placed, std::string_view why);

}  // namespace mekik::plugin
