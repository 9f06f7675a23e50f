#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "checkpoint/async_saver.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_import.h"
#include "checkpoint/paths.h"
#include "checkpoint/retention.h"
#include "config/compare.h"
#include "config/print.h"
#include "model/counts.h"
#include "train/consumed_log.h"
#include "train/learner.h"
#include "train/plan.h"
#include "train/profile.h"
#include "train/run_lock.h"
#include "train/stop_request.h"
#include "train/training_data.h"

namespace lockstep {
namespace {

double seconds_since(std::int64_t begin_ns) {
  return static_cast<double>(now_ns() - begin_ns) * 1e-9;
}

// One process's part of a run.
class Trainer {
 public:
  Trainer(FileSystem& fs, const Recipe& recipe, const std::vector<PeriodicTask>& tasks,
          const TrainObserver& observer);
  TrainSummary run();

 private:
  void start(const RunStart& start);
  void announce_numerics(const CheckpointReader& checkpoint);
  void check_disk();
  void announce_costs();
  bool one_step(std::int64_t step);
  void pass_over(std::int64_t step);
  void account(const StepRecord& record);
  void log_consumed(std::int64_t step, const std::string& digest, bool passed_over);
  void save(std::int64_t step);
  void run_tasks(std::int64_t step);
  void write_profile();
  void report_replay();

  FileSystem& fs_;
  const Recipe& recipe_;
  const std::vector<PeriodicTask>& tasks_;
  const TrainObserver& observer_;
  std::string directory_;
  std::string checkpoints_;
  Profile profile_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<EventLog> events_;
  CpuStream stream_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<Learner> learner_;
  TrainingState state_;
  std::int64_t resumed_from_ = -1;
  std::int64_t last_step_ = 0;
  Schedule schedule_;
  double flops_per_token_ = 0;

  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<ReplayCheck> replay_;
  std::unique_ptr<ConsumedLog> consumed_;
  std::unique_ptr<AsyncSaver> saver_;
  std::unique_ptr<Loader> loader_;
  StopRequest stop_;
  Batch batch_;
  std::int64_t saved_step_ = -1;
  double recent_seconds_ = 0;  // of a step, smoothed
  bool replay_reported_ = false;
  TrainSummary summary_;
};

Trainer::Trainer(FileSystem& fs, const Recipe& recipe, const std::vector<PeriodicTask>& tasks,
                 const TrainObserver& observer)
    : fs_(fs),
      recipe_(recipe),
      tasks_(tasks),
      observer_(observer),
      directory_(recipe.directory()),
      checkpoints_(join_path(directory_, paths::kCheckpoints)),
      profile_(recipe.profile, directory_),
      stream_(recipe.cpu.thread_count(), recipe.cpu.kernel_isa()) {
  fs_.create_directories(directory_);
  lock_ = std::make_unique<RunLock>(directory_);
  events_ = std::make_unique<EventLog>(fs_, directory_);
  const RunStart start_point = open_run(fs_, recipe_, *events_, observer_.say);
  data_ = std::make_unique<TrainingData>(fs_, recipe_, stream_.pool());
  const auto instances = static_cast<std::int64_t>(data_->source().instances());
  last_step_ = recipe_.last_step(instances);
  schedule_ = recipe_.lr_schedule(instances);
  flops_per_token_ = instance_flops(recipe_.model, recipe_.data.sequence_length).window_exact /
                     static_cast<double>(recipe_.data.sequence_length);
  learner_ = std::make_unique<Learner>(recipe_, stream_);
  start(start_point);
  metrics_ = std::make_unique<MetricsLog>(
      fs_, directory_, state_.step,
      MetricsLog::Options{.tensorboard = recipe_.metrics.tensorboard, .csv = recipe_.metrics.csv});
  replay_ = std::make_unique<ReplayCheck>(metrics_->superseded());
  consumed_ = std::make_unique<ConsumedLog>(fs_, directory_, state_.step);
  const std::int64_t staging = learner_->checkpoint_floats() * std::int64_t{sizeof(float)};
  constexpr const char* kWhat = "the copy that is being saved";
  saver_ = std::make_unique<AsyncSaver>(
      fs_, checkpoints_,
      recipe_.train.offload == Offload::kDisk ? Buffer(staging, kWhat, directory_)
                                              : Buffer(staging, kWhat),
      [this](std::int64_t, std::int64_t began_ns) {
        profile_.add(Profile::Row::kSaver, "checkpoint write", began_ns, now_ns());
        apply_retention(fs_, checkpoints_,
                        {.keep_last = recipe_.checkpoint.keep_last,
                         .keep_every = recipe_.checkpoint.keep_every,
                         .keep_steps = recipe_.checkpoint.also_at},
                        resumed_from_);
      });
  // Before the loader's thread wants a CPU too: a low peak would make every MFU of the run too
  // high.
  summary_.peak = ops::measure_peak(stream_, 3, ops::MeasureRead::kNo);
  loader_ = data_->loader(state_.next_batch);
}

void Trainer::start(const RunStart& start) {
  const bool resume = start.kind == StartKind::kResume;
  if (start.checkpoint) {
    const bool all = resume || recipe_.init.continue_step;
    learner_->load(*start.checkpoint, resume || recipe_.init.moments);
    if (all) {
      state_ = start.checkpoint->state();
    } else if (recipe_.init.moments) {
      // The moments go with their own count of updates: bias correction must not start over.
      state_.adam_step = start.checkpoint->state().adam_step;
    }
    announce_numerics(*start.checkpoint);
  } else if (!start.hf_directory.empty()) {
    HfModel(fs_, start.hf_directory)
        .load(learner_->model().table(), learner_->model().weights(), stream_.pool());
    learner_->refresh();
  } else {
    learner_->initialise();
  }
  if (resume) {
    if (state_.data_fingerprint != data_->source().fingerprint()) {
      fail(ErrorKind::kConfig, printable(directory_), ": the run was trained on data ",
           state_.data_fingerprint, ", the recipe's is ", data_->source().fingerprint(),
           "; give it the same token files, or fork with run.fork_from=STEP");
    }
    resumed_from_ = state_.step;
    observer_.say(concat("resuming from step ", with_commas(state_.step)));
  } else if (start.kind == StartKind::kFrom) {
    observer_.say(
        concat("starting from ", printable(recipe_.init.from), ", step counter at ", state_.step));
  }
  OrderedJson fields;
  fields["kernel_set"] = learner_->kernel_set();
  fields["precision"] = to_name(recipe_.train.precision);
  fields["threads"] = stream_.pool().threads();
  fields["data_fingerprint"] = data_->source().fingerprint();
  events_->add(resume ? "resume" : "start", state_.step, fields);
  state_.data_fingerprint = data_->source().fingerprint();
  state_.precision = to_name(recipe_.train.precision);
  state_.kernel_set = learner_->kernel_set();
}

void Trainer::announce_numerics(const CheckpointReader& checkpoint) {
  const TrainingState& saved = checkpoint.state();
  const std::string precision(to_name(recipe_.train.precision));
  if (saved.precision == precision && saved.kernel_set == learner_->kernel_set()) return;
  const std::string text = concat(
      "not bit-exact from here: the checkpoint was made in ", saved.precision, " with ",
      saved.kernel_set, ", this process computes in ", precision, " with ", learner_->kernel_set());
  events_->add("warning", saved.step, {{"text", text}});
  observer_.say("warning: " + text);
}

void Trainer::check_disk() {
  const auto wanted = static_cast<std::uint64_t>(learner_->checkpoint_floats()) * sizeof(float);
  const std::uint64_t found = fs_.free_space(checkpoints_);
  if (found < wanted + wanted / 64) {
    fail(ErrorKind::kIo, printable(checkpoints_), ": ", human_bytes(found),
         " free, one checkpoint takes ", human_bytes(wanted), "; make room or use another run.dir");
  }
}

// What the run will take, before its first step.
void Trainer::announce_costs() {
  const MemoryPlan memory = plan_memory(recipe_, last_step_, stream_.isa());
  const double peak = recipe_.train.precision == Precision::kBf16 ? summary_.peak.bf16_flops
                                                                  : summary_.peak.fp32_flops;
  constexpr double kUsualMfu = 0.6;
  const double seconds = flops_per_token_ * static_cast<double>(recipe_.tokens_per_step()) *
                         static_cast<double>(last_step_ - state_.step) / (kUsualMfu * peak);
  observer_.say(concat(human_count(static_cast<double>(parameter_count(recipe_.model))),
                       " parameters, ", with_commas(last_step_ - state_.step), " steps of ",
                       with_commas(recipe_.tokens_per_step()), " tokens; about ",
                       human_seconds(seconds), " at 60% of the measured ", human_count(peak / 1e9),
                       " GFLOP/s, ", human_bytes(static_cast<std::uint64_t>(memory.total())),
                       " of memory, ", human_bytes(static_cast<std::uint64_t>(memory.disk_bytes)),
                       " of disk"));
}

TrainSummary Trainer::run() {
  summary_.directory = directory_;
  summary_.last_step = state_.step;
  summary_.tokens = state_.tokens;
  if (state_.step >= last_step_) {
    observer_.say(concat("nothing to train: step ", with_commas(state_.step), " of ",
                         with_commas(last_step_), " is done"));
    return summary_;
  }
  check_disk();
  summary_.first_step = state_.step + 1;
  saved_step_ = resumed_from_;
  announce_costs();
  const std::int64_t begin = now_ns();
  while (state_.step < last_step_ && stop_.signal() == 0) {
    const std::int64_t step = state_.step + 1;
    if (recipe_.passes_over(step)) {
      pass_over(step);
    } else if (!one_step(step)) {
      saver_->finish();
      fail(ErrorKind::kNumeric, "step ", step, ": ", state_.skip.skipped_in_row,
           " steps in a row were skipped (train.max_skipped_in_row); the last checkpoint is of "
           "step ",
           saved_step_, "; lower the learning rate or pass the data over with train.steps_to_skip");
    }
    if (recipe_.saves_at(step)) save(step);
    saver_->check();
    run_tasks(step);
    if (profile_.covers(step) && !profile_.covers(step + 1)) write_profile();
  }
  if (saved_step_ != state_.step) save(state_.step);
  write_profile();  // of a run that ended among its steps
  saver_->finish();
  summary_.seconds = seconds_since(begin);
  summary_.overhead_seconds += saver_->waited_seconds();
  summary_.last_step = state_.step;
  summary_.tokens = state_.tokens;
  summary_.skipped_total = state_.skip.skipped_total;
  summary_.stop_signal = state_.step < last_step_ ? stop_.signal() : 0;
  report_replay();
  events_->add(summary_.stop_signal != 0 ? "stop" : "finish", state_.step,
               {{"signal", summary_.stop_signal}});
  return summary_;
}

void Trainer::write_profile() {
  if (!profile_.active()) return;
  saver_->finish();
  stream_.set_trace(nullptr);
  profile_.write(fs_);
}

bool Trainer::one_step(std::int64_t step) {
  profile_.begin(step);
  stream_.set_trace(profile_.ops());
  const ProfileSpan span(profile_, Profile::Row::kRun, "step");
  const std::int64_t begin = now_ns();
  loader_->next(batch_);
  const double data_seconds = seconds_since(begin);
  profile_.add(Profile::Row::kLoader, "loader wait", begin, now_ns());
  StepRecord record;
  record.lr = schedule_.lr(step);
  const StepResult result = learner_->step(batch_, record.lr, state_);
  record.step = step;
  record.epoch = static_cast<std::int64_t>(batch_.epoch);
  record.batch = static_cast<std::int64_t>(batch_.step);
  record.loss = result.loss();
  record.ce_loss = result.ce_loss;
  record.z_loss = result.z_loss;
  record.grad_norm = result.grad_norm;
  record.batch_digest = batch_.digest;
  record.targets = result.targets;
  for (const auto& leaf : batch_.leaves) {
    record.filtered += std::count(leaf.filtered.begin(), leaf.filtered.end(), 1);
  }
  if (result.verdict != StepVerdict::kTake) record.skipped = to_name(result.verdict);
  state_.step = step;
  state_.next_batch = record.batch + 1;
  state_.tokens += static_cast<std::int64_t>(batch_.real_tokens());
  record.tokens = state_.tokens;
  record.data_seconds = data_seconds;
  record.seconds = seconds_since(begin);
  {
    const ProfileSpan logging(profile_, Profile::Row::kRun, "metrics");
    account(record);
    log_consumed(step, batch_.digest, false);
  }
  return recipe_.train.max_skipped_in_row == 0 ||
         state_.skip.skipped_in_row < recipe_.train.max_skipped_in_row;
}

void Trainer::account(const StepRecord& measured) {
  StepRecord record = measured;
  const auto tokens = static_cast<double>(recipe_.tokens_per_step());
  const double peak = recipe_.train.precision == Precision::kBf16 ? summary_.peak.bf16_flops
                                                                  : summary_.peak.fp32_flops;
  record.tokens_per_s = tokens / record.seconds;
  record.mfu = record.tokens_per_s * flops_per_token_ / peak;
  record.memory_bytes = resident_bytes();
  metrics_->add(record);
  replay_->add(record);
  if (replay_->complete() && !replay_reported_) report_replay();
  recent_seconds_ =
      recent_seconds_ == 0 ? record.seconds : 0.9 * recent_seconds_ + 0.1 * record.seconds;
  const double trained = static_cast<double>(record.step - summary_.first_step + 1);
  summary_.loss = record.loss;
  summary_.overhead_seconds += record.data_seconds;
  summary_.tokens_per_s += (record.tokens_per_s - summary_.tokens_per_s) / trained;
  summary_.mfu += (record.mfu - summary_.mfu) / trained;
  observer_.step(record,
                 {.last_step = last_step_,
                  .seconds_left = recent_seconds_ * static_cast<double>(last_step_ - record.step)});
}

void Trainer::pass_over(std::int64_t step) {
  loader_->next(batch_);
  StepRecord record;
  record.step = step;
  record.epoch = static_cast<std::int64_t>(batch_.epoch);
  record.batch = static_cast<std::int64_t>(batch_.step);
  record.lr = schedule_.lr(step);
  record.batch_digest = batch_.digest;
  record.passed_over = true;
  state_.step = step;
  state_.next_batch = record.batch + 1;
  state_.tokens += static_cast<std::int64_t>(batch_.real_tokens());
  record.tokens = state_.tokens;
  metrics_->add(record);
  log_consumed(step, batch_.digest, true);
}

void Trainer::log_consumed(std::int64_t step, const std::string& digest, bool passed_over) {
  const std::int64_t batch = recipe_.instances_per_step();
  const auto per_epoch = static_cast<std::int64_t>(data_->plan().steps_per_epoch());
  const std::int64_t in_epoch = static_cast<std::int64_t>(batch_.step) % per_epoch;
  consumed_->add({.step = step,
                  .epoch = static_cast<std::int64_t>(batch_.epoch),
                  .begin = in_epoch * batch,
                  .end = (in_epoch + 1) * batch,
                  .passed_over = passed_over,
                  .batch_digest = digest});
}

void Trainer::save(std::int64_t step) {
  consumed_->flush();
  {
    const ProfileSpan wait(profile_, Profile::Row::kRun, "wait for the last checkpoint");
    saver_->finish();
  }
  const ProfileSpan span(profile_, Profile::Row::kRun, "checkpoint snapshot");
  saver_->save(stream_.pool(), {.state = state_,
                                .recipe_toml = config_toml(recipe_),
                                .recipe_fingerprint = config_fingerprint(recipe_),
                                .hf_config = hf_config_json(recipe_.model, StoredDType::kF32),
                                .tensors = learner_->tensors()});
  saved_step_ = step;
  events_->add("save", step);
}

void Trainer::run_tasks(std::int64_t step) {
  for (const auto& task : tasks_) {
    if (task.interval <= 0 || (step % task.interval != 0 && step != last_step_)) continue;
    if (saved_step_ != step) save(step);  // a crash in the task must not lose the run
    saver_->finish();
    const ProfileSpan span(profile_, Profile::Row::kRun, task.name);
    OrderedJson fields = task.run(learner_->model(), step, [this] { return stop_.signal() != 0; });
    events_->add(task.name, step, fields);
  }
}

void Trainer::report_replay() {
  if (replay_->compared() == 0 || replay_reported_) return;
  replay_reported_ = true;
  summary_.replay = {{"first_step", replay_->first_step()},
                     {"last_step", replay_->last_step()},
                     {"compared", replay_->compared()},
                     {"different", replay_->different()},
                     {"max_loss_difference", replay_->max_loss_difference()}};
  events_->add("replay", state_.step, summary_.replay);
  observer_.say(replay_->text());
}

}  // namespace

TrainSummary train(FileSystem& fs, const Recipe& recipe, const std::vector<PeriodicTask>& tasks,
                   const TrainObserver& observer) {
  return Trainer(fs, recipe, tasks, observer).run();
}

}  // namespace lockstep
