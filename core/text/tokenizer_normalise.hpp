// Unicode normalisation of text before it is tokenized.
#pragma once
#include <string>
#include <string_view>

namespace mekik::text {

// NFC of valid UTF-8 in O(n log n), also for long runs of combining marks. Returns false, leaving `out` alone, when the text is
// plainly NFC already (nothing at or above U+0300), which nearly all text is.
bool to_nfc(std::string_view text, std::string& out);

}  // namespace mekik::text
