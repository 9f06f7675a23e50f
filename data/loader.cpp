#include "data/loader.h"

#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

LoaderOptions checked(const InstanceSource& source, const StepPlan& plan, LoaderOptions options) {
  const PlanSpec& spec = plan.spec();
  if (source.instances() != spec.instances) {
    fail(ErrorKind::kConfig, "loader: the data hold ", source.instances(),
         " instances and the plan orders ", spec.instances);
  }
  if (options.microbatch == 0 || spec.batch % options.microbatch != 0) {
    fail(ErrorKind::kConfig, "loader: microbatches of ", options.microbatch,
         " instances do not divide a batch of ", spec.batch);
  }
  const std::uint64_t leaves = spec.batch / options.microbatch;
  if (options.first_leaf >= leaves || options.leaf_count > leaves - options.first_leaf) {
    fail(ErrorKind::kConfig, "loader: leaves ", options.first_leaf, "+", options.leaf_count,
         " of a step that has ", leaves);
  }
  if (options.leaf_count == 0) options.leaf_count = leaves - options.first_leaf;
  return options;
}

}  // namespace

Loader::Loader(const InstanceSource& source, const StepPlan& plan, const LoaderOptions& options,
               std::uint64_t first_step)
    : source_(source),
      plan_(plan),
      options_(checked(source, plan, options)),
      builder_(source, options.rules),
      entries_(options_.leaf_count * options_.microbatch),
      next_step_(first_step),
      make_step_(first_step) {
  if (options_.prefetch > 0) worker_ = std::thread([this] { make_ahead(); });
}

Loader::~Loader() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Loader::seek(std::uint64_t step) {
  next_step_ = step;
  const std::lock_guard lock(mutex_);
  restart(step);
}

void Loader::restart(std::uint64_t step) {
  ++generation_;
  make_step_ = step;
  for (Made& made : ready_) spare_.push_back(std::move(made.batch));
  ready_.clear();
  changed_.notify_all();
}

void Loader::next(Batch& batch) {
  if (options_.prefetch == 0) {
    make(next_step_, batch);
    ++next_step_;
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  if (ready_.front().error) {
    const std::exception_ptr error = ready_.front().error;
    restart(next_step_);
    std::rethrow_exception(error);
  }
  std::swap(batch, ready_.front().batch);
  spare_.push_back(std::move(ready_.front().batch));
  ready_.pop_front();
  ++next_step_;
  changed_.notify_all();
}

void Loader::make(std::uint64_t step, Batch& batch) {
  plan_.entries(step, options_.first_leaf * options_.microbatch, entries_);
  batch.step = step;
  batch.epoch = plan_.epoch_of(step);
  batch.first_leaf = options_.first_leaf;
  batch.leaves.resize(options_.leaf_count);
  batch.tokens_by_label.assign(source_.labels().size(), 0);
  batch.digest.clear();
  std::string rows;
  for (std::size_t i = 0; i < batch.leaves.size(); ++i) {
    builder_.build(std::span(entries_).subspan(i * options_.microbatch, options_.microbatch),
                   batch.leaves[i], batch.tokens_by_label);
    rows += batch.leaves[i].row_digests;
  }
  if (entries_.size() == plan_.spec().batch) batch.digest = batch_digest(rows);
}

void Loader::make_ahead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      const bool failed = !ready_.empty() && ready_.back().error;
      return stop_ || (ready_.size() < options_.prefetch && !failed);
    });
    if (stop_) return;
    Made made;
    if (!spare_.empty()) {
      made.batch = std::move(spare_.back());
      spare_.pop_back();
    }
    const std::uint64_t step = make_step_;
    const std::uint64_t generation = generation_;
    lock.unlock();
    try {
      make(step, made.batch);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    if (generation != generation_) {
      spare_.push_back(std::move(made.batch));
      continue;
    }
    ready_.push_back(std::move(made));
    make_step_ = step + 1;
    changed_.notify_all();
  }
}

}  // namespace lockstep
