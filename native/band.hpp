/// \file
/// Symmetric band matrices: their assembly from weighted rows, their factors L D L', and solutions, in two threads.
///
/// Column j holds the entries j, ..., j + W of the lower triangle. The width W is known at compile time, so that a
/// column stays in registers: LAPACK spends most of its time on calls if the band is narrow. The numbers are doubles,
/// or have twice their digits.
#pragma once

#include <array>

#include "double_double.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace saddleback {

constexpr std::array<Index, 8> kBandWidths{1, 2, 3, 4, 6, 8, 12, 16};

/// Calls body with the width as a constant. Returns false if there is no such width.
template <class Body> bool with_band_width(Index width, const Body& body) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((kBandWidths[I] == width && (body(std::integral_constant<int, kBandWidths[I]>{}), true)) || ...);
  }(std::make_index_sequence<kBandWidths.size()>{});
}

/// Adds A' diag(weight) A to a band matrix of which each column takes `width` + 1 places, for some rows of A in
/// compressed form with increasing columns, all entries of a row less than `width` + 1 columns apart.
template <class T>
SADDLEBACK_CLONES static void add_band_gram(const Index* row, const Index* start, const Index* column,
                                            const double* value, Index rows, const double* weight, Index width,
                                            T* band) {
  for (Index i = 0; i < rows; ++i) {
    for (Index k = start[i]; k < start[i + 1]; ++k) {
      const T factor = product_of<T>(weight[row[i]], value[k]);
      T* to = band + column[k] * width;  // entry (c, j) is at j (W + 1) + c - j = j W + c
      for (Index other = k; other < start[i + 1]; ++other) to[column[other]] += factor * value[other];
    }
  }
}

/// Replaces the first n columns of a band matrix by their factors: 1 / D in the place of the diagonal, L below it. The
/// next W columns become their Schur complement. Returns the least pivot relative to its entry of the diagonal, which
/// is what cancellation leaves of it; 0 if a pivot is not positive and finite.
template <int W, class T> SADDLEBACK_CLONES static double factor_band(T* band, const double* diagonal, Index n) {
  double least = 1.0;
  for (Index j = 0; j < n; ++j) {
    T* own = band + j * (W + 1);
    const double pivot = static_cast<double>(own[0]);
    if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) return 0.0;
    least = std::min(least, pivot / diagonal[j]);
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

/// Replaces b by the solution of L y = b. Subtracts from the W entries after it what the factors of the columns that
/// follow must not see again.
template <int W, class T> SADDLEBACK_CLONES static void solve_forward(const T* band, Index n, T* b) {
  T pending[W + 1] = {};  // what the columns so far subtract from the next W entries
  for (Index j = 0; j < n; ++j) {
    const T* own = band + j * (W + 1);
    const T y = b[j] - pending[0];
    for (int k = 1; k <= W; ++k) pending[k - 1] = pending[k] + own[k] * y;
    pending[W] = 0.0;
    b[j] = y;
  }
  for (int k = 0; k < W; ++k) b[n + k] -= pending[k];
}

/// Replaces b by the solution of D L' x = b, given the W entries of the solution after it.
template <int W, class T> SADDLEBACK_CLONES static void solve_backward(const T* band, Index n, T* b) {
  T later[W];  // the next W entries of the solution
  for (int k = 0; k < W; ++k) later[k] = b[n + k];
  for (Index j = n - 1; j >= 0; --j) {
    const T* own = band + j * (W + 1);
    T x = b[j] * own[0];
    for (int k = W; k >= 1; --k) x -= own[k] * later[k - 1];
    for (int k = W - 1; k >= 1; --k) later[k] = later[k - 1];
    later[0] = x;
    b[j] = x;
  }
}

/// A band matrix, eliminated from both ends at the same time.
///
/// The W columns in the middle couple the two halves. The lower half is stored in reverse order, so that both halves
/// are eliminated by the same loops, and the Schur complement of the lower one is added to the middle, which belongs to
/// the upper one. How columns are divided depends on their number alone, and so do all bits of a solution.
template <class T> class TwoEndedBand {
 public:
  TwoEndedBand(Index columns, Index width) : width_(width), lower_(lower_columns(columns, width)) {
    upper_ = columns - lower_ - middle();
  }

  /// The columns of the lower half; none if there are few columns.
  static Index lower_columns(Index columns, Index width) {
    constexpr Index kFew = 4096;
    return columns < kFew ? 0 : (columns - width) / 2;
  }

  /// Forms the matrix: form(half, entries) adds to the band of a half, whose columns are those of that half and then
  /// the middle ones.
  template <class Form> void form(const double* diagonal, const Form& form) {
    Index places[2] = {};
    for (int half = 0; half < halves(); ++half) {  // tasks must not throw, so that memory is taken before them
      places[half] = (size(half) + middle() + width_) * (width_ + 1);  // with room for the next W columns
      entries_[half] = std::make_unique_for_overwrite<T[]>(places[half]);
    }
    in_halves([&](int half) {
      T* own = entries_[half].get();
      std::fill_n(own, places[half], T(0.0));
      for (Index j = 0; j < given(half); ++j) own[j * (width_ + 1)] = diagonal[at(half, j)];
      form(half, own);
    });
  }

  double diagonal(Index column) const {
    const auto [half, j] = place(column);
    return static_cast<double>(entries_[half][j * (width_ + 1)]) + shared(column);
  }

  void set_diagonal(Index column, double value) {
    const auto [half, j] = place(column);
    entries_[half][j * (width_ + 1)] = value - shared(column);
  }

  /// Factors the matrix; returns what `factor_band` returns.
  template <int W> double factor() {
    double least[3] = {1.0, 1.0, 1.0}, of_middle[W];
    for (Index k = 0; k < middle(); ++k) of_middle[k] = diagonal(upper_ + k);
    const auto before = std::make_unique_for_overwrite<double[]>(upper_ + lower_);
    in_halves([&](int half) {
      double* own = before.get() + (half == 0 ? 0 : upper_);
      for (Index j = 0; j < size(half); ++j) own[j] = static_cast<double>(entries_[half][j * (W + 1)]);
      least[half] = factor_band<W>(entries_[half].get(), own, size(half));
    });
    if (lower_ > 0) {
      T* middle = entries_[0].get() + upper_ * (W + 1);
      const T* other = entries_[1].get() + lower_ * (W + 1);  // its entry (r, c) is that of (W - 1 - c, W - 1 - r)
      for (int c = 0; c < W; ++c) {
        for (int r = c; r < W; ++r) middle[c * W + r] += other[(W - 1 - r) * W + (W - 1 - c)];
      }
      least[2] = factor_band<W>(middle, of_middle, W);
    }
    return std::min({least[0], least[1], least[2]});
  }

  /// Writes the solution of a system to `result`.
  template <int W> void solve(const double* right, double* result) const {
    std::unique_ptr<T[]> values[2];
    for (int half = 0; half < halves(); ++half) values[half] = std::make_unique_for_overwrite<T[]>(size(half) + W);
    in_halves([&](int half) {
      T* own = values[half].get();
      std::fill_n(own + size(half), W, T(0.0));
      for (Index j = 0; j < given(half); ++j) own[j] = right[at(half, j)];
      solve_forward<W>(entries_[half].get(), size(half), own);
    });
    if (lower_ > 0) {
      T* middle = values[0].get() + upper_;
      T* other = values[1].get() + lower_;
      T own[2 * W];  // the middle, and room for the entries after it, of which there are none
      for (int k = 0; k < W; ++k) own[k] = middle[k] + other[W - 1 - k], own[W + k] = 0.0;
      solve_forward<W>(entries_[0].get() + upper_ * (W + 1), W, own);
      for (int k = 0; k < W; ++k) own[W + k] = 0.0;
      solve_backward<W>(entries_[0].get() + upper_ * (W + 1), W, own);
      for (int k = 0; k < W; ++k) middle[k] = other[W - 1 - k] = own[k];
    } else {
      std::fill_n(values[0].get() + upper_, W, T(0.0));
    }
    in_halves([&](int half) {
      solve_backward<W>(entries_[half].get(), size(half), values[half].get());
      for (Index j = 0; j < given(half); ++j) result[at(half, j)] = static_cast<double>(values[half][j]);
    });
  }

  Index columns() const { return upper_ + middle() + lower_; }

 private:
  Index middle() const { return lower_ > 0 ? width_ : 0; }
  int halves() const { return lower_ > 0 ? 2 : 1; }
  Index size(int half) const { return half == 0 ? upper_ : lower_; }

  /// The columns whose diagonal and right side a half has: the upper one has those of the middle.
  Index given(int half) const { return half == 0 ? upper_ + middle() : lower_; }

  /// The column of the matrix that is column j of a half.
  Index at(int half, Index j) const { return half == 0 ? j : columns() - 1 - j; }

  /// The half that has the diagonal of a column, and the column in it.
  std::pair<int, Index> place(Index column) const {
    return column < given(0) ? std::pair<int, Index>{0, column} : std::pair<int, Index>{1, columns() - 1 - column};
  }

  /// What the lower half adds to the diagonal of the middle.
  double shared(Index column) const {
    if (column < upper_ || column >= given(0)) return 0.0;
    return static_cast<double>(entries_[1][(columns() - 1 - column) * (width_ + 1)]);
  }

  template <class Body> void in_halves(const Body& body) const {
    Lease lease;
    lease.run(halves(), body);
  }

  Index width_, lower_, upper_ = 0;
  std::unique_ptr<T[]> entries_[2];
};

}  // namespace saddleback
