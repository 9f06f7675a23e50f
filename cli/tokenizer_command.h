#pragma once

#include "base/thread_pool.h"
#include "cli/command.h"

namespace lockstep::cli {

// `lockstep tokenizer train`; `parent` is the group of tokenizer commands.
void add_tokenizer_train_command(CLI::App& parent, Context& context);

[[nodiscard]] inline int threads_or_cpus(int threads) {
  return threads > 0 ? threads : ThreadPool::available_cpus();
}

}  // namespace lockstep::cli
