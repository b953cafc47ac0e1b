/// \file
/// The Python module.
#include <nanobind/nanobind.h>

#include <utility>

#include "bind_arrays.hpp"
#include "bind_barrier.hpp"
#include "bind_blas.hpp"
#include "bind_excess.hpp"
#include "bind_factors.hpp"
#include "bind_kernels.hpp"
#include "bind_matrix.hpp"
#include "bind_proxes.hpp"
#include "bind_row_evaluation.hpp"
#include "bind_triangular_rows.hpp"
#include "threads.hpp"

namespace saddleback {

inline void bind_threads(nb::module_& m) {
  m.attr("MOST_THREADS") = Pool::kMostThreads;
  m.def(
      "set_threads",
      [](int n) {
        require(n >= 1, "at least one thread is needed");
        return Threads::instance().set_limit(n);
      },
      "n"_a, "Limit the threads used in calls from this thread; return the previous limit.");
  m.def(
      "set_process_threads",
      [](int n) {
        require(n >= 1, "at least one thread is needed");
        Threads::instance().set_process_limit(n);
      },
      "n"_a, "Limit the threads used in calls from threads that have no limit.");
  m.def(
      "thread_limit", [] { return Threads::instance().limit(); },
      "Return the number of threads that calls from this thread may use.");
  m.def(
      "reserve_threads", [](int n) { return std::exchange(reserved_threads, n); }, "n"_a,
      "Leave this number of threads unused in calls from this thread; return the previous number.");
}

NB_MODULE(_native, m) {
  m.doc() = "Compiled core: products with a matrix and the block-coordinate iteration.";
  nb::set_leak_warnings(false);  // a problem may live until the interpreter ends
  bind_threads(m);
  bind_matrix(m);
  bind_blas(m);
  bind_proxes(m);
  bind_excess(m);
  bind_barrier(m);
  bind_factors(m);
  bind_losses(m);
  bind_kernel(m);
  bind_descent(m);
  bind_row_evaluation(m);
  bind_triangular_rows(m);
}

}  // namespace saddleback
