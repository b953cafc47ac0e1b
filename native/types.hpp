/// \file
/// Types that all parts share, and the standard headers that nearly all of them need.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace saddleback {

using Index = std::int64_t;

/// A half-open range of indices.
struct Range {
  Index begin, end;

  Index size() const { return end - begin; }
};

template <class Vector> Index length(const Vector& vector) { return static_cast<Index>(vector.size()); }

/// Some rows of a matrix: a range, or a list as a sparse matrix stores it.
using RowList = std::variant<Range, std::span<const std::int32_t>, std::span<const std::int64_t>>;

template <class Body> void for_each_row(const RowList& rows, const Body& body) {
  std::visit(
      [&](const auto& list) {
        if constexpr (std::is_same_v<std::decay_t<decltype(list)>, Range>) {
          for (Index i = list.begin; i < list.end; ++i) body(i);
        } else {
          for (const Index i : list) body(i);
        }
      },
      rows);
}

/// The vectors of length n that an iteration reads and writes, and the y that it starts from.
struct Primal {
  const double* h;
  double* x;
  double* x_sum;  ///< null if no sum is kept
  const double* y;
};

/// The vectors of length m that the dual half of an iteration reads and writes.
struct Dual {
  double extrapolation;
  double* change;  ///< v = A dx, set to zero after use
  double* u;       ///< A x
  double* y;
  double* y_sum;
};

/// Adds the numbers of all other processes to those of this process, in place.
using Exchange = std::function<void(double*)>;

}  // namespace saddleback
