/// \file
/// A process-wide pool of threads. A task may run on any thread, so that results depend on how work is divided, but not
/// on the number of threads.
#pragma once

#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "types.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace saddleback {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#elif defined(_M_X64)
  _mm_pause();
#elif defined(_M_ARM64)
  __yield();
#endif
}

/// Workers that help one caller at a time. They are started when a caller first needs them and last as long as the
/// process.
class Pool {
  static constexpr int kHelperBits = 10;

 public:
  static constexpr int kMostThreads = 1 << kHelperBits;  // a caller and its helpers

  /// Takes the pool with `helpers` of its workers, or fewer if the system has no more, unless another caller has it.
  bool try_acquire(int helpers) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    engage(std::min(helpers, kMostHelpers));
    return true;
  }

  void release() { busy_.clear(std::memory_order_release); }

  /// Calls task(0), ..., task(count - 1) in any order and returns when all have ended. Tasks must not throw.
  template <class Task> void run(int count, const Task& task) {
    task_ = &task;
    call_ = [](const void* body, int i) { (*static_cast<const Task*>(body))(i); };
    finished_.store(0, std::memory_order_relaxed);
    announce(count);
    if (sleepers_.load() > 0) {
      std::lock_guard lock(mutex_);
      awake_.notify_all();
    }
    while (help(kCaller)) {
    }
    for (int spins = 0; finished_.load(std::memory_order_acquire) < count; ++spins) {
      if (spins < kSpins) pause_briefly();
      else std::this_thread::yield();
    }
  }

 private:
  // A ticket has the stage, the number of helpers and the number of remaining tasks in one word. So a worker that wakes
  // up late cannot claim a task of a stage other than the one it saw, nor a task of a caller that did not ask for it,
  // and the caller need not wait for workers that claimed nothing.
  static constexpr int kCountBits = 24;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
  static constexpr int kMostHelpers = kMostThreads - 1;
  static constexpr int kCaller = -1;   // comes before all workers, which are numbered from 0
  static constexpr int kSpins = 2000;  // some tens of microseconds

  static bool any_left(std::uint64_t ticket) { return (ticket & kCountMask) != 0; }
  static bool may_help(int worker, std::uint64_t ticket) {
    return worker < static_cast<int>((ticket >> kCountBits) & kMostHelpers);
  }

  void announce(int count) {
    ticket_.store((++stage_ << (kCountBits + kHelperBits)) | (static_cast<std::uint64_t>(helpers_) << kCountBits) |
                  static_cast<std::uint64_t>(count));
  }

  // Workers beyond the number of helpers wait on a separate condition, so that a caller that wants few of many workers
  // does not wake up all of them at every stage.
  void engage(int helpers) {
    if (helpers == helpers_) return;
    std::lock_guard lock(mutex_);
    const bool more = helpers > helpers_;
    helpers_ = helpers;
    announce(0);
    if (more) engaged_.notify_all();
    try {
      for (; workers_ < std::min(helpers, obtainable_); ++workers_) {
        std::thread([this, worker = workers_] { work(worker); }).detach();
      }
    } catch (const std::system_error&) {
      // There are fewer helpers than requested. The caller alone can finish any job.
      obtainable_ = workers_;
    }
  }

  bool help(int worker) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (any_left(ticket) && may_help(worker, ticket)) {
      if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        call_(task_, static_cast<int>(ticket & kCountMask) - 1);
        finished_.fetch_add(1, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  [[noreturn]] void work(int worker) {
    const auto engaged = [&] { return may_help(worker, ticket_.load()); };
    const auto waiting = [&] { return engaged() && !any_left(ticket_.load()); };
    for (;;) {
      while (help(worker)) {
      }
      for (int spins = 0; spins < kSpins && waiting(); ++spins) pause_briefly();
      if (engaged() && !waiting()) continue;
      std::unique_lock lock(mutex_);
      engaged_.wait(lock, engaged);
      sleepers_.fetch_add(1);
      awake_.wait(lock, [&] { return !waiting(); });
      sleepers_.fetch_sub(1);
    }
  }

  const void* task_ = nullptr;
  void (*call_)(const void*, int) = nullptr;
  std::uint64_t stage_ = 0;
  int helpers_ = 0;
  int workers_ = 0;
  int obtainable_ = kMostHelpers;
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<int> finished_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic_flag busy_;
  std::mutex mutex_;
  std::condition_variable awake_, engaged_;
};

/// Maximum number of threads for computations of the calling thread; 0 for the limit of the process. It belongs to a
/// thread, so that solves in several threads do not change the limits of each other.
inline thread_local int own_limit = 0;

/// The number of threads that calls from this thread leave unused, because other work runs at the same time.
inline thread_local int reserved_threads = 0;

/// The limit of the process, and its pool.
class Threads {
 public:
  static Threads& instance() { return *slot(); }

  /// Sets the limit of the calling thread and returns the one it had.
  int set_limit(int limit) {
    const int before = this->limit();
    own_limit = limit;
    return before;
  }

  /// Sets the limit of all threads that have no limit.
  void set_process_limit(int limit) { limit_.store(limit); }

  int limit() const { return own_limit > 0 ? own_limit : limit_.load(); }

  /// The pool, reserved for the caller, or null if it is not available.
  Pool* borrow() {
    const int helpers = limit() - reserved_threads - 1;
    return helpers > 0 && pool_.try_acquire(helpers) ? &pool_ : nullptr;
  }

 private:
  // Never destroyed: at exit the threads end with the process, and after a fork the pool of the parent counts threads
  // that do not exist in the child.
  static Threads*& slot() {
    static Threads* threads = create();
    return threads;
  }

  static Threads* create() {
#if !defined(_WIN32)  // which has no fork
    pthread_atfork(nullptr, nullptr, [] {
      auto* fresh = new Threads;
      fresh->limit_.store(slot()->limit_.load());
      slot() = fresh;
    });
#endif
    return new Threads;
  }

  std::atomic<int> limit_{std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  Pool pool_;
};

/// Runs the stages of one computation: on the pool if there are several tasks and it is free, in the calling thread
/// otherwise.
class Lease {
 public:
  Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (pool_) pool_->release();
  }

  template <class Task> void run(int count, const Task& task) {
    if (count > 1 && acquire()) {
      pool_->run(count, task);
    } else {
      for (int i = 0; i < count; ++i) task(i);
    }
  }

 private:
  bool acquire() {
    if (!std::exchange(asked_, true)) pool_ = Threads::instance().borrow();
    return pool_ != nullptr;
  }

  bool asked_ = false;
  Pool* pool_ = nullptr;
};

/// Part `i` of `parts` nearly equal parts of 0, ..., size - 1.
inline Range part(Index size, int i, int parts) { return {size * i / parts, size * (i + 1) / parts}; }

/// The number of parts into which `work` multiply-adds are divided. It depends on the problem alone, so that sums are
/// associated in the same way for any number of threads.
inline int parts_for(double work, double smallest_part = 1 << 15) {
  constexpr double most = 16;
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(work / smallest_part, 1.0, most))));
}

}  // namespace saddleback
