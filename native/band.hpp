/// \file
/// Symmetric band matrices: their assembly from weighted rows, their factors L D L', and solutions.
///
/// Column j holds the entries j, ..., j + W of the lower triangle. The width W is known at compile time, so that a
/// column stays in registers: LAPACK spends most of its time on calls if the band is narrow.
#pragma once

#include <array>

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
inline void add_band_gram(const Index* start, const Index* column, const double* value, Index rows,
                          const double* weight, Index width, double* band) {
  for (Index i = 0; i < rows; ++i) {
    for (Index k = start[i]; k < start[i + 1]; ++k) {
      const double factor = weight[i] * value[k];
      double* to = band + column[k] * width;  // entry (c, j) is at j (W + 1) + c - j = j W + c
      for (Index other = k; other < start[i + 1]; ++other) to[column[other]] += factor * value[other];
    }
  }
}

/// Replaces a band matrix of n columns by its factors: 1 / D in the place of the diagonal, L below it. Returns whether
/// all pivots are positive and finite. There is room for W more columns, which hold zeros.
template <int W> bool factor_band(double* band, Index n) {
  for (Index j = 0; j < n; ++j) {
    double* own = band + j * (W + 1);
    const double pivot = own[0];
    if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) return false;
    const double inverse = 1.0 / pivot;
    own[0] = inverse;
    for (int k = 1; k <= W; ++k) {
      const double factor = own[k] * inverse;
      double* later = own + k * (W + 1) - k;
      for (int t = k; t <= W; ++t) later[t] -= factor * own[t];
    }
    for (int k = 1; k <= W; ++k) own[k] *= inverse;
  }
  return true;
}

/// Replaces b by the solution of L D L' x = b.
template <int W> void solve_band(const double* band, Index n, double* b) {
  double pending[W + 1] = {};  // what the columns so far subtract from the next W entries
  for (Index j = 0; j < n; ++j) {
    const double* own = band + j * (W + 1);
    const double y = b[j] - pending[0];
    for (int k = 1; k <= W; ++k) pending[k - 1] = pending[k] + own[k] * y;
    pending[W] = 0.0;
    b[j] = y;
  }
  double later[W] = {};  // the next W entries of the solution
  for (Index j = n - 1; j >= 0; --j) {
    const double* own = band + j * (W + 1);
    double x = b[j] * own[0];
    for (int k = W; k >= 1; --k) x -= own[k] * later[k - 1];
    for (int k = W - 1; k >= 1; --k) later[k] = later[k - 1];
    later[0] = x;
    b[j] = x;
  }
}

}  // namespace saddleback
