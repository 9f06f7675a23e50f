#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"

namespace lockstep {

// tests/golden/data/`name`, for tests.
inline Json golden_file(const std::string& name) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/data/" + name;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return parse_json(text.str(), path);
}

}  // namespace lockstep
