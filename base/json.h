#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep {

using Json = nlohmann::json;
// Keeps the order in which keys were put; for output that people read.
using OrderedJson = nlohmann::ordered_json;

// Parses strict JSON from an untrusted source: no comments, no NaN, no trailing text, nesting at
// most 64, no key twice in an object, valid UTF-8. Throws kInput naming `what` (a file and line,
// say) and the byte offset.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view what);

}  // namespace lockstep
