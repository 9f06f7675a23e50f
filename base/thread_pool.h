#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

// A fixed set of threads that run the indices of a loop, the caller being one of them. Which thread
// runs which index is a matter of timing, so a task must write only what belongs to its index:
// then no result depends on the number of threads. One parallel_for at a time; not reentrant.
class ThreadPool {
 public:
  // threads >= 1, the caller included. Throws kConfig for less. Worker threads are pinned, to
  // CPUs other than the caller's, when the process may run on at least that many CPUs.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // task(index, thread) for every index in [0, count), thread in [0, threads()). Returns when all
  // are done. An exception that a task throws is thrown here, after the others have finished.
  template <class Task>
  void parallel_for(std::int64_t count, const Task& task) {
    run(
        count,
        [](const void* context, std::int64_t index, int thread) {
          (*static_cast<const Task*>(context))(index, thread);
        },
        &task);
  }

  // The CPUs that this process may use.
  [[nodiscard]] static int available_cpus();

 private:
  using Call = void (*)(const void* context, std::int64_t index, int thread);
  void run(std::int64_t count, Call call, const void* context);
  void work(int thread);
  void drain(int thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> busy_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace lockstep
