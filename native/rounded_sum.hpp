/// \file
/// Sums of products with bounds on their rounding (Jeannerod and Rump 2013; Ogita, Rump and Oishi 2005).
///
/// With k terms that are not 0, added in any order, with or without fused multiply-adds, a sum is wrong by at most
/// (k + 3) u sum |a y|, where u = 2^-53. With twice the digits of a double, hi + lo is wrong by at most
/// 2 (k + 3)^2 u^2 sum |a y|. The former sums are made of stretches, which are added with twice the digits: k is at
/// most the length of a stretch. Each product may also have underflowed, which costs at most 2^-1074.
#pragma once

#include "double_double.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

/// A number with twice the digits of a double, a bound on its error, and the sum of the absolute values of its terms.
struct RoundedNumber {
  double hi, lo, error, size;
};

/// A sum of products a y, with the sum of |a y|, the sum of |a| times the radius of y, and the number of terms.
struct RoundedSum {
  static constexpr double kUnit = 0x1p-53, kUnderflow = 0x1p-1074;

  static constexpr Index kStretch = 4096;

  double hi = 0, lo = 0, size = 0, moved = 0, terms = 0;

  /// Adds the sum of a stretch.
  void add(const RoundedSum& stretch) {
    const DoubleDouble sum = DoubleDouble::sum(hi, stretch.hi);
    hi = sum.hi;
    lo += sum.lo + stretch.lo;
    size += stretch.size;
    moved += stretch.moved;
    terms += stretch.terms;
  }

  void add(double a, double y, double radius, bool precise) {
    const double product = a * y;
    if (precise) {
      const DoubleDouble sum = DoubleDouble::sum(hi, product);
      lo += sum.lo + std::fma(a, y, -product);
      hi = sum.hi;
    } else {
      hi += product;
    }
    size += std::fabs(product);
    moved += std::fabs(a) * radius;
    terms += a != 0 && (y != 0 || radius != 0);
  }

  /// The sum with its bounds; `longest` is the largest number of terms that were added with the digits of a double.
  RoundedNumber bounded(double longest) const {
    const double k = terms + 3, underflow = terms * kUnderflow;
    const double most = size * (1 + k * kUnit) + underflow;
    const double relative = (longest > 0 ? (std::min(terms, longest) + 3) * kUnit : 0) + 2 * k * k * kUnit * kUnit;
    const double error = (relative * most + moved * (1 + k * kUnit) + 2 * underflow) * (1 + 8 * kUnit);
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

/// column . y with twice the digits of a double. The chains of the lanes are independent, so that they overlap.
template <class T> SADDLEBACK_CLONES static DoubleDouble precise_dot(const T* column, const double* y, Index rows) {
  constexpr int lanes = 16;
  double high[lanes] = {}, low[lanes] = {};
  Index i = 0;
  for (; i + lanes <= rows; i += lanes) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      const double a = static_cast<double>(column[i + lane]), b = y[i + lane];
      const double product = a * b, total = high[lane] + product, own = total - high[lane];
      low[lane] += ((high[lane] - (total - own)) + (product - own)) + std::fma(a, b, -product);
      high[lane] = total;
    }
  }
  RoundedSum sum;
  for (; i < rows; ++i) sum.add(static_cast<double>(column[i]), y[i], 0, true);
  for (int lane = 0; lane < lanes; ++lane) sum.add({high[lane], low[lane], 0, 0, 0});
  return {sum.hi, sum.lo};
}

/// Adds the terms of column . y.
template <class T>
void add_dot(RoundedSum& sum, const T* column, const double* y, const double* radius, Index rows, bool precise) {
  for (Index i = 0; i < rows; i += RoundedSum::kStretch) {
    const Index own = std::min(RoundedSum::kStretch, rows - i);
    RoundedSum stretch = plain_dot(column + i, y + i, radius ? radius + i : nullptr, own);
    if (precise) {
      const DoubleDouble product = precise_dot(column + i, y + i, own);
      stretch.hi = product.hi, stretch.lo = product.lo;
    }
    sum.add(stretch);
  }
}

/// One such sum per row, as vectors.
struct RoundedSums {
  double *hi, *lo, *size, *moved, *terms;

  explicit RoundedSums(std::vector<double>& storage) : RoundedSums(storage.data(), storage.size() / 5) {}
  RoundedSums(double* first, std::size_t rows)
      : hi(first), lo(first + rows), size(first + 2 * rows), moved(first + 3 * rows), terms(first + 4 * rows) {}
  RoundedSums from(Index row) const {
    RoundedSums rest = *this;
    for (double** vector : {&rest.hi, &rest.lo, &rest.size, &rest.moved, &rest.terms}) *vector += row;
    return rest;
  }

  RoundedSum row(Index i) const { return {hi[i], lo[i], size[i], moved[i], terms[i]}; }
  void set(Index i, const RoundedSum& sum) const {
    hi[i] = sum.hi, lo[i] = sum.lo, size[i] = sum.size, moved[i] = sum.moved, terms[i] = sum.terms;
  }
};

/// Adds factor * column to the sums of some rows, for every factor within a radius.
template <class T>
SADDLEBACK_CLONES static void add_scaled(const RoundedSums& sums, const T* column, double factor, double radius,
                                         Index rows, bool precise) {
  double *high = sums.hi, *low = sums.lo, *size = sums.size, *moved = sums.moved, *terms = sums.terms;
  if (precise) {
#pragma omp simd
    for (Index i = 0; i < rows; ++i) {
      const double a = static_cast<double>(column[i]), product = a * factor;
      const double total = high[i] + product, own = total - high[i];
      low[i] += ((high[i] - (total - own)) + (product - own)) + std::fma(a, factor, -product);
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
