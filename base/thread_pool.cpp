#include "base/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include "base/error.h"

namespace lockstep {
namespace {

// About 20 microseconds of spinning before a thread parks: longer than the serial code between two
// ops of a step, far shorter than a time slice.
constexpr int kSpins = 2000;

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) fail(ErrorKind::kConfig, "threads = ", threads, ": must be at least 1");
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { work(i); });
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (threads == 1 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < threads) return;
  // The caller's thread is the user's: it is left where it is, and no worker is put there too.
  const int own = sched_getcpu();
  if (own >= 0 && CPU_ISSET(own, &allowed)) CPU_CLR(own, &allowed);
  int cpu = -1;
  for (std::thread& worker : workers_) {
    do {
      ++cpu;
    } while (!CPU_ISSET(cpu, &allowed));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(worker.native_handle(), sizeof one, &one);
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

int ThreadPool::available_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  return CPU_COUNT(&allowed);
}

void ThreadPool::run(std::int64_t count, Call call, const void* context) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (std::int64_t i = 0; i < count; ++i) call(context, i, 0);
    return;
  }
  LOCKSTEP_CHECK(busy_.load() == 0, "parallel_for inside parallel_for");
  count_ = count;
  call_ = call;
  context_ = context;
  error_ = nullptr;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  drain(0);
  for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::drain(int thread) {
  while (true) {
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    try {
      call_(context_, index, thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation_.load(std::memory_order_acquire) != seen || stop_) break;
      _mm_pause();
    }
    if (generation_.load(std::memory_order_acquire) == seen && !stop_) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen || stop_.load(); });
    }
    if (stop_) return;
    ++seen;
    drain(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace lockstep
