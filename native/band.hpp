/// \file
/// Symmetric band matrices: their assembly from weighted rows, their factors L D L', and solutions.
///
/// Column j holds the entries j, ..., j + W of the lower triangle. The width W is known at compile time, so that a
/// column stays in registers: LAPACK spends most of its time on calls if the band is narrow. The numbers are doubles,
/// or have twice their digits.
#pragma once

#include <array>

#include "double_double.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

constexpr std::array<Index, 8> kBandWidths{1, 2, 3, 4, 6, 8, 12, 16};

/// Calls body with the width as a constant. Returns false if there is no such width.
template <class Body> bool with_band_width(Index width, const Body& body) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((kBandWidths[I] == width && (body(std::integral_constant<int, kBandWidths[I]>{}), true)) || ...);
  }(std::make_index_sequence<kBandWidths.size()>{});
}

/// Adds A' diag(weight) A to a band matrix of which each column takes `width` + 1 places, for A in compressed rows with
/// increasing columns, all entries of a row less than `width` + 1 columns apart.
template <class T>
SADDLEBACK_CLONES static void add_band_gram(const Index* start, const Index* column, const double* value, Index rows,
                                            const double* weight, Index width, T* band) {
  for (Index i = 0; i < rows; ++i) {
    for (Index k = start[i]; k < start[i + 1]; ++k) {
      const T factor = product_of<T>(weight[i], value[k]);
      T* to = band + column[k] * width;  // entry (c, j) is at j (W + 1) + c - j = j W + c
      for (Index other = k; other < start[i + 1]; ++other) to[column[other]] += factor * T(value[other]);
    }
  }
}

/// Replaces a band matrix of n columns by its factors: 1 / D in the place of the diagonal, L below it. Returns the
/// least pivot relative to its entry of the diagonal, which is what cancellation leaves of it; 0 if a pivot is not
/// positive and finite. There is room for W more columns, which hold zeros.
template <int W, class T> SADDLEBACK_CLONES static double factor_band(T* band, Index n) {
  double least = 1.0;
  double diagonal[W + 1];  // the next W + 1 entries of the diagonal, as they were before the elimination
  for (int k = 0; k <= W; ++k) diagonal[k] = static_cast<double>(band[std::min<Index>(k, n) * (W + 1)]);
  for (Index j = 0; j < n; ++j) {
    T* own = band + j * (W + 1);
    const double pivot = static_cast<double>(own[0]);
    if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) return 0.0;
    least = std::min(least, pivot / diagonal[0]);
    for (int k = 0; k < W; ++k) diagonal[k] = diagonal[k + 1];
    diagonal[W] = j + W + 1 < n ? static_cast<double>(own[(W + 1) * (W + 1)]) : 1.0;
    const T inverse = T(1.0) / own[0];
    own[0] = inverse;
    for (int k = 1; k <= W; ++k) {
      const T factor = own[k] * inverse;
      T* later = own + k * (W + 1) - k;
      for (int t = k; t <= W; ++t) later[t] -= factor * own[t];
    }
    for (int k = 1; k <= W; ++k) own[k] *= inverse;
  }
  return least;
}

/// Replaces b by the solution of L D L' x = b.
template <int W, class T> SADDLEBACK_CLONES static void solve_band(const T* band, Index n, T* b) {
  T pending[W + 1] = {};  // what the columns so far subtract from the next W entries
  for (Index j = 0; j < n; ++j) {
    const T* own = band + j * (W + 1);
    const T y = b[j] - pending[0];
    for (int k = 1; k <= W; ++k) pending[k - 1] = pending[k] + own[k] * y;
    pending[W] = 0.0;
    b[j] = y;
  }
  T later[W] = {};  // the next W entries of the solution
  for (Index j = n - 1; j >= 0; --j) {
    const T* own = band + j * (W + 1);
    T x = b[j] * own[0];
    for (int k = W; k >= 1; --k) x -= own[k] * later[k - 1];
    for (int k = W - 1; k >= 1; --k) later[k] = later[k - 1];
    later[0] = x;
    b[j] = x;
  }
}

}  // namespace saddleback
