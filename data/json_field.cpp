#include "data/json_field.h"

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

const Json& field(const Json& object, const char* name, const std::string& what) {
  if (!object.is_object() || !object.contains(name)) {
    fail(ErrorKind::kData, printable(what), ": field '", name, "' is missing");
  }
  return object.at(name);
}

std::uint64_t unsigned_field(const Json& object, const char* name, const std::string& what) {
  const Json& value = field(object, name, what);
  if (!value.is_number_unsigned()) {
    fail(ErrorKind::kData, printable(what), ": field '", name, "' is ", printable(value.dump()),
         " where a whole number >= 0 belongs");
  }
  return value.get<std::uint64_t>();
}

std::string string_field(const Json& object, const char* name, const std::string& what) {
  const Json& value = field(object, name, what);
  if (!value.is_string()) {
    fail(ErrorKind::kData, printable(what), ": field '", name, "' is ", printable(value.dump()),
         " where a text belongs");
  }
  return value.get<std::string>();
}

}  // namespace lockstep
