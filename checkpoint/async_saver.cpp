#include "checkpoint/async_saver.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace lockstep {
namespace {

constexpr std::size_t kCopyFloats = std::size_t{1} << 18;

struct Piece {
  const float* from;
  float* to;
  std::size_t count;
};

}  // namespace

AsyncSaver::AsyncSaver(FileSystem& fs, std::string checkpoints, Buffer staging, Saved saved)
    : fs_(fs),
      checkpoints_(std::move(checkpoints)),
      saved_(std::move(saved)),
      staging_(std::move(staging)),
      thread_([this] { work(); }) {}

AsyncSaver::~AsyncSaver() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AsyncSaver::save(ThreadPool& pool, CheckpointContents contents) {
  finish();
  std::vector<Piece> pieces;
  auto* to = static_cast<float*>(staging_.data());
  const auto* end = to + staging_.bytes() / static_cast<std::int64_t>(sizeof(float));
  for (auto& tensor : contents.tensors) {
    for (auto* part : {&tensor.weight, &tensor.first_moment, &tensor.second_moment}) {
      LOCKSTEP_CHECK(end - to >= static_cast<std::ptrdiff_t>(part->size()), "staging too small");
      for (std::size_t i = 0; i < part->size(); i += kCopyFloats) {
        pieces.push_back({part->data() + i, to + i, std::min(kCopyFloats, part->size() - i)});
      }
      *part = {to, part->size()};
      to += part->size();
    }
  }
  pool.parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i, int) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    std::memcpy(piece.to, piece.from, piece.count * sizeof(float));
  });
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(contents);
  }
  changed_.notify_all();
}

void AsyncSaver::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!error_) return;
  const Error error = *std::exchange(error_, std::nullopt);
  lock.unlock();
  throw error;
}

void AsyncSaver::check() {
  std::unique_lock lock(mutex_);
  rethrow(lock);
}

void AsyncSaver::finish() {
  std::unique_lock lock(mutex_);
  const std::int64_t begin = now_ns();
  changed_.wait(lock, [&] { return !pending_.has_value(); });
  waited_seconds_ += static_cast<double>(now_ns() - begin) * 1e-9;
  rethrow(lock);
}

void AsyncSaver::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || pending_.has_value(); });
    if (!pending_) return;
    std::optional<Error> error;
    lock.unlock();
    const std::int64_t began = now_ns();
    try {
      write_checkpoint(fs_, checkpoints_, *pending_);
      saved_(pending_->state.step, began);
    } catch (const Error& failure) {
      error = failure;
    } catch (const std::exception& failure) {
      error = Error(ErrorKind::kBug, concat("saving a checkpoint: ", failure.what()));
    }
    lock.lock();
    pending_.reset();
    if (error) error_ = std::move(error);
    changed_.notify_all();
  }
}

}  // namespace lockstep
