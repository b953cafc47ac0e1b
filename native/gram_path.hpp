/// \file
/// Coordinate descent along a path of penalties, on a Gram matrix.
#pragma once

#include "prox.hpp"
#include "simd.hpp"

namespace saddleback {

/// The minimisers of f(x) + x'Gx / 2 - c'x for a sequence of separable f, each from the one before.
///
/// A coordinate of x moves to its minimum, x_j = prox(x_j - s_j / G_jj, 1 / G_jj), where s = Gx - c is kept up to date.
/// A sweep visits all coordinates, and those that stay at 0 cost next to nothing.
class GramPath {
 public:
  GramPath(const double* gram, const double* linear, double constant, Index n)
      : gram_(gram), linear_(linear), constant_(constant), n_(n), x_(n, 0.0), slope_(n) {
    for (Index j = 0; j < n; ++j) slope_[j] = -linear[j];
  }

  const std::vector<double>& x() const { return x_; }

  /// Returns the number of sweeps until the error is at most `tol` times the objective; `most` sweeps if it is not.
  Index solve(const std::vector<Coordinate>& f, double tol, Index most) {
    for (Index sweep = 0; sweep < most; ++sweep) {
      for (Index j = 0; j < n_; ++j) {
        const double step = target(f[j], j) - x_[j];
        if (step == 0) continue;
        x_[j] += step;
        simd::axpy(gram_ + j * n_, step, slope_.data(), n_);
      }
      if (is_solved(f, tol)) return sweep + 1;
    }
    return most;
  }

 private:
  double curvature(Index j) const { return gram_[j * n_ + j]; }

  /// The minimum along a coordinate; 0, or the bound next to it, if the column is empty.
  double target(const Coordinate& f, Index j) const {
    const double h = curvature(j);
    return h > 0 ? prox(f, x_[j] - slope_[j] / h, 1 / h) : clip(0, f.lower, f.upper);
  }

  /// Whether an estimate of the duality gap is small. With e_j the distance of -s_j from the slopes of f_j, the gap of
  /// the gradient as a dual point is about sum_j e_j |x_j|, and scaling it into the domain of f* costs at most about
  /// max_j e_j sum_j |x_j|.
  bool is_solved(const std::vector<Coordinate>& f, double tol) const {
    double objective = constant_, product = 0, largest = 0, size = 0;
    for (Index j = 0; j < n_; ++j) {
      const double x = x_[j];
      const double error = (curvature(j) + f[j].quadratic) * std::fabs(target(f[j], j) - x);
      objective += x * (slope_[j] - linear_[j]) / 2 + value(f[j], x);
      product += error * std::fabs(x);
      largest = error > largest ? error : largest;
      size += std::fabs(x);
    }
    return product + largest * size <= tol * objective;
  }

  const double *gram_, *linear_;
  const double constant_;
  const Index n_;
  std::vector<double> x_, slope_;
};

}  // namespace saddleback
