#pragma once

#include "cli/command.h"

namespace lockstep::cli {

// `lockstep data audit` (cli/data_audit_command.cpp).
void add_data_audit_command(CLI::App& group, Context& context);

}  // namespace lockstep::cli
