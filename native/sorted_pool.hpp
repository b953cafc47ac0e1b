/// \file
/// Functions of sorted entries: a sort, and the pooling of neighbours that violate an order.
#pragma once

#include "types.hpp"

namespace saddleback {

/// Replaces v by the non-decreasing x that minimises sum_i w_i (x_i - v_i)^2, as in `functions/sorting.py`, which
/// explains it. Each entry is added once and merged at most once, so that the time is proportional to n. The weights
/// are all equal if there is only one.
inline void pool(double* v, Index n, std::span<const double> weight) {
  struct Level {
    double mean, weight;
    Index end;
  };
  const Index stride = weight.size() == 1 ? 0 : 1;
  const auto levels = std::make_unique_for_overwrite<Level[]>(n);
  Index count = 0;
  for (Index i = 0; i < n; ++i) {
    Level top{v[i], weight[i * stride], i + 1};
    while (count > 0 && levels[count - 1].mean > top.mean) {
      const Level& below = levels[--count];
      const double total = below.weight + top.weight;
      top.mean = below.mean + (top.mean - below.mean) * (top.weight / total);
      top.weight = total;
    }
    levels[count++] = top;
  }
  for (Index k = 0, i = 0; k < count; ++k)
    while (i < levels[k].end) v[i++] = levels[k].mean;
}

/// x = the minimiser of sum_i taken_i x_(i) + 1/2 ||x - v||^2, with x_(1) <= x_(2) <= ... and taken in that order too.
/// With `absolute`, of the same sum over the sorted |x_i|.
inline void sort_and_pool(const double* v, const double* taken, bool absolute, Index n, double* x) {
  struct Entry {
    double key;
    Index at;
  };
  const auto entries = std::make_unique_for_overwrite<Entry[]>(n);
  const auto sorted = std::make_unique_for_overwrite<double[]>(n);
  if (std::any_of(v, v + n, [](double value) { return std::isnan(value); })) {  // these have no order
    std::fill_n(x, n, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  for (Index i = 0; i < n; ++i) entries[i] = {absolute ? std::abs(v[i]) : v[i], i};
  std::sort(entries.get(), entries.get() + n,
            [](const Entry& a, const Entry& b) { return a.key < b.key || (a.key == b.key && a.at < b.at); });
  for (Index i = 0; i < n; ++i) sorted[i] = entries[i].key - taken[i];
  const double one = 1.0;
  pool(sorted.get(), n, {&one, 1});
  for (Index i = 0; i < n; ++i) {
    const Index at = entries[i].at;
    x[at] = absolute ? std::copysign(std::max(sorted[i], 0.0), v[at]) : sorted[i];
  }
}

}  // namespace saddleback
