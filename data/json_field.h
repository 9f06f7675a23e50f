#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

// Fields of JSON that came from a file. All throw kData naming `what` (the file) and the field when
// it is missing or of another type: a missing field never becomes a default.
namespace lockstep {

[[nodiscard]] const Json& field(const Json& object, const char* name, const std::string& what);
[[nodiscard]] std::uint64_t unsigned_field(const Json& object, const char* name,
                                           const std::string& what);
[[nodiscard]] std::string string_field(const Json& object, const char* name,
                                       const std::string& what);

}  // namespace lockstep
