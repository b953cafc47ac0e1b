/// \file
/// Sums of products with bounds on their rounding (Jeannerod and Rump 2013; Ogita, Rump and Oishi 2005).
///
/// With k terms that are not 0, added in any order, with or without fused multiply-adds, a sum is wrong by at most
/// (k + 3) u sum |a y|, where u = 2^-53. With twice the digits of a double, hi + lo is wrong by at most
/// 2 (k + 3)^2 u^2 sum |a y|; only the sum of what the products and sums in double have lost is rounded, so that the
/// error is also at most 4 (k + 3) u times the absolute values of that, and 0 if nothing was lost. The former sums are
/// made of stretches, which are added with twice the digits: k is at most the length of a stretch. Each product may
/// also have underflowed, which costs at most 2^-1074.
#pragma once

#include "double_double.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

/// A number with twice the digits of a double, a bound on its error, and the sum of the absolute values of its terms.
struct RoundedNumber {
  double hi, lo, error, size;
};

/// A sum of products a y, with the sum of |a y|, the sum of |a| times the radius of y, and the number of terms. With
/// twice the digits also the sum of the absolute values of what was lost, and the number of products that are so small
/// that what they have lost may have underflowed.
struct RoundedSum {
  static constexpr double kUnit = 0x1p-53, kUnderflow = 0x1p-1074, kSmall = 0x1p-960;

  static constexpr Index kStretch = 4096;

  double hi = 0, lo = 0, size = 0, moved = 0, terms = 0, lost = 0, small = 0;

  /// Adds the sum of a stretch.
  void add(const RoundedSum& stretch) {
    const DoubleDouble sum = DoubleDouble::sum(hi, stretch.hi);
    hi = sum.hi;
    lo += sum.lo + stretch.lo;
    size += stretch.size;
    moved += stretch.moved;
    terms += stretch.terms;
    lost += std::fabs(sum.lo) + stretch.lost;
    small += stretch.small;
  }

  void add(double a, double y, double radius, bool precise) {
    const double product = a * y;
    if (precise) {
      const DoubleDouble sum = DoubleDouble::sum(hi, product);
      const double rest = std::fma(a, y, -product);
      lo += sum.lo + rest;
      hi = sum.hi;
      lost += std::fabs(sum.lo) + std::fabs(rest);
      small += is_small(a, y, product) + is_small(a, radius, std::fabs(a) * radius);
    } else {
      hi += product;
    }
    size += std::fabs(product);
    moved += std::fabs(a) * radius;
    terms += a != 0 && (y != 0 || radius != 0);
  }

  /// 1 for a product that is not 0 but so small that it may have underflowed, or what it has lost; otherwise 0.
  static double is_small(double a, double y, double product) {
    return (a != 0) & (y != 0) & (std::fabs(product) < kSmall) ? 1.0 : 0.0;
  }

  /// The sum with its bounds; `longest` is the largest number of terms that were added with the digits of a double.
  RoundedNumber bounded(double longest) const {
    const double k = terms + 3, most = size * (1 + k * kUnit) + terms * kUnderflow;
    double rounding = 2 * k * k * kUnit * kUnit * most;
    if (longest > 0) rounding += (std::min(terms, longest) + 3) * kUnit * most;
    else rounding = std::min(rounding, 4 * k * kUnit * lost * (1 + 16 * k * kUnit));
    const double underflow = 2 * (longest > 0 ? terms : small) * kUnderflow;
    const double error = (rounding + moved * (1 + k * kUnit) + underflow) * (1 + 8 * kUnit);
    const DoubleDouble sum = DoubleDouble::sum(hi, lo);
    return {sum.hi, sum.lo, error, most};
  }
};

/// The terms of column . y. The radius may be null.
template <class T>
SADDLEBACK_CLONES static RoundedSum plain_dot(const T* column, const double* y, const double* radius, Index rows) {
  double sum = 0, size = 0, moved = 0, terms = 0;
#pragma omp simd reduction(+ : sum, size, terms)
  for (Index i = 0; i < rows; ++i) {
    const double product = static_cast<double>(column[i]) * y[i];
    sum += product;
    size += std::fabs(product);
    terms += (column[i] != 0) & (y[i] != 0) ? 1.0 : 0.0;
  }
  if (radius) {
#pragma omp simd reduction(+ : moved, terms)
    for (Index i = 0; i < rows; ++i) {
      moved += std::fabs(static_cast<double>(column[i])) * radius[i];
      terms += (column[i] != 0) & (radius[i] != 0) ? 1.0 : 0.0;
    }
  }
  return {sum, 0, size, moved, terms};
}

/// The number of terms of column . y that are small.
template <class T> SADDLEBACK_CLONES static double count_small(const T* column, const double* y, Index rows) {
  double small = 0;
#pragma omp simd reduction(+ : small)
  for (Index i = 0; i < rows; ++i) {
    const double a = static_cast<double>(column[i]);
    small += RoundedSum::is_small(a, y[i], a * y[i]);
  }
  return small;
}

/// column . y with twice the digits of a double. The chains of the lanes are independent, so that they overlap.
template <class T> SADDLEBACK_CLONES static RoundedSum precise_dot(const T* column, const double* y, Index rows) {
  constexpr int lanes = 16;
  double high[lanes] = {}, low[lanes] = {}, lost[lanes] = {};
  Index i = 0;
  for (; i + lanes <= rows; i += lanes) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      const double a = static_cast<double>(column[i + lane]), b = y[i + lane];
      const double product = a * b, total = high[lane] + product, own = total - high[lane];
      const double of_sum = (high[lane] - (total - own)) + (product - own), rest = std::fma(a, b, -product);
      low[lane] += of_sum + rest;
      lost[lane] += std::fabs(of_sum) + std::fabs(rest);
      high[lane] = total;
    }
  }
  RoundedSum sum;
  for (; i < rows; ++i) sum.add(static_cast<double>(column[i]), y[i], 0, true);
  for (int lane = 0; lane < lanes; ++lane) sum.add({high[lane], low[lane], 0, 0, 0, lost[lane], 0});
  return sum;
}

/// Adds the terms of column . y.
template <class T>
void add_dot(RoundedSum& sum, const T* column, const double* y, const double* radius, Index rows, bool precise) {
  for (Index i = 0; i < rows; i += RoundedSum::kStretch) {
    const Index own = std::min(RoundedSum::kStretch, rows - i);
    RoundedSum stretch = plain_dot(column + i, y + i, radius ? radius + i : nullptr, own);
    if (precise) {
      const RoundedSum product = precise_dot(column + i, y + i, own);
      stretch.hi = product.hi, stretch.lo = product.lo, stretch.lost = product.lost;
      stretch.small = count_small(column + i, y + i, own) + (radius ? count_small(column + i, radius + i, own) : 0);
    }
    sum.add(stretch);
  }
}

/// One such sum per row, as vectors.
struct RoundedSums {
  static constexpr int kVectors = 7;

  double *hi, *lo, *size, *moved, *terms, *lost, *small;

  explicit RoundedSums(std::vector<double>& storage) : RoundedSums(storage.data(), storage.size() / kVectors) {}
  RoundedSums(double* first, std::size_t rows)
      : hi(first), lo(first + rows), size(first + 2 * rows), moved(first + 3 * rows), terms(first + 4 * rows),
        lost(first + 5 * rows), small(first + 6 * rows) {}
  RoundedSums from(Index row) const {
    RoundedSums rest = *this;
    for (double** vector : {&rest.hi, &rest.lo, &rest.size, &rest.moved, &rest.terms, &rest.lost, &rest.small})
      *vector += row;
    return rest;
  }

  RoundedSum row(Index i) const { return {hi[i], lo[i], size[i], moved[i], terms[i], lost[i], small[i]}; }
  void set(Index i, const RoundedSum& sum) const {
    hi[i] = sum.hi, lo[i] = sum.lo, size[i] = sum.size, moved[i] = sum.moved, terms[i] = sum.terms;
    lost[i] = sum.lost, small[i] = sum.small;
  }
};

/// Adds factor * column to the sums of some rows, for every factor within a radius.
template <class T>
SADDLEBACK_CLONES static void add_scaled(const RoundedSums& sums, const T* column, double factor, double radius,
                                         Index rows, bool precise) {
  double *high = sums.hi, *low = sums.lo, *size = sums.size, *moved = sums.moved, *terms = sums.terms;
  double *lost = sums.lost, *small = sums.small;
  if (precise) {
#pragma omp simd
    for (Index i = 0; i < rows; ++i) {
      const double a = static_cast<double>(column[i]), product = a * factor;
      const double total = high[i] + product, own = total - high[i];
      const double of_sum = (high[i] - (total - own)) + (product - own), rest = std::fma(a, factor, -product);
      low[i] += of_sum + rest;
      lost[i] += std::fabs(of_sum) + std::fabs(rest);
      small[i] += RoundedSum::is_small(a, factor, product) + RoundedSum::is_small(a, radius, std::fabs(a) * radius);
      high[i] = total;
    }
  } else {
#pragma omp simd
    for (Index i = 0; i < rows; ++i) high[i] += static_cast<double>(column[i]) * factor;
  }
  const double reach = std::fabs(factor);
#pragma omp simd
  for (Index i = 0; i < rows; ++i) {
    const double a = std::fabs(static_cast<double>(column[i]));
    size[i] += a * reach;
    moved[i] += a * radius;
    terms[i] += a != 0 ? 1.0 : 0.0;
  }
}

}  // namespace saddleback
