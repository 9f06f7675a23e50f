#include <map>

#include "cli/eval_options.h"

namespace lockstep::cli {

void add_task_options(CLI::App& command, EvalOptions& options) {
  command
      .add_option("--tasks", options.tasks,
                  "Multiple-choice tasks, a group (mmlu_stem) or a subtask (mmlu_anatomy)")
      ->delimiter(',');
  command.add_option("--data", options.data,
                     "The directory of the tasks' data sets, as JSON lines");
  command.add_option("--tasks-dir", options.tasks_directory,
                     "Further tasks, a TOML file each; one replaces a built-in one of its name");
  CLI::Option* count =
      command.add_option("--fewshot", options.fewshot, "Examples before each question (0)")
          ->check(CLI::Range(0U, 1000U));
  command
      .add_option("--fewshot-ids", options.fewshot_ids,
                  "These examples instead, by their place in the file (in the subtask), from 0")
      ->delimiter(',')
      ->excludes(count);
  command
      .add_option("--fewshot-sampler", options.fewshot_sampler,
                  "task: as the task says, first, or random: lm-evaluation-harness's draws (task)")
      ->check(CLI::IsMember({"task", "first", "random"}));
  command.add_option("--fewshot-seed", options.fewshot_seed, "Of the random draws (1234)");
  command
      .add_option("--limit", options.limit,
                  "Questions of each task and subtask, documents of each request file; 0: all (0)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--log-samples", options.log_samples,
                     "Writes a JSON line for every question to this file (.gz and .zst compress)");
  command.add_flag("--no-prefix-reuse", options.no_prefix_reuse,
                   "Runs what a question's choices share once for each; the same bits, slower");
  command.add_option("--requests", options.requests,
                     "Frozen request files of Ai2's in-loop evaluation");
}

FewshotOptions fewshot_options(const EvalOptions& options) {
  static const std::map<std::string, FewshotSampler> kSamplers = {
      {"task", FewshotSampler::kOfTask},
      {"first", FewshotSampler::kFirst},
      {"random", FewshotSampler::kRandom}};
  return {.count = options.fewshot.value_or(0),
          .sampler = kSamplers.at(options.fewshot_sampler),
          .ids = options.fewshot_ids,
          .seed = options.fewshot_seed};
}

void add_surface_options(CLI::App& command, EvalOptions& options) {
  command
      .add_option("--surfaces", options.surface_names,
                  "Held-out loss, tasks and token KL at once, into an evaluation file: all that "
                  "there is data for, or those named: heldout,tasks,kl")
      ->delimiter(',')
      ->expected(0, 3);
  command.add_option("--reference", options.reference,
                     "For token KL: another model, a run or bundle with a checkpoint of the same "
                     "step, or a file of logits (as for parity)");
  command.add_option("--reference-precision", options.reference_precision, "fp32 or bf16 (fp32)");
  command
      .add_option("--kl-tokens", options.kl_tokens,
                  "Held-out tokens compared, in whole documents; 0: all (65536)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--c4", options.c4,
                     "Label of the domain that stands for C4; default: the first that holds c4");
  command.add_option("-o,--output", options.output,
                     "The evaluation file; default: RUN/evals/step-N.json of the model's run. What "
                     "else it holds of the same model stays");
}

}  // namespace lockstep::cli
