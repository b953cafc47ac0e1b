/// \file
/// The gradient of a smooth loss that separates over the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "prox.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace saddleback {

/// y = gradient of the loss at u, row by row: the point of the conjugate's domain where u y - g*(y) is largest.
class Gradient {
 public:
  using Parameter = std::vector<double>;

  /// A loss whose conjugate has slopes left and right, a positive quadratic term, and bounds.
  static Gradient of_coordinate(Parameter left, Parameter right, const Parameter& quadratic,
                                Parameter lower, Parameter upper) {
    Gradient gradient;
    gradient.kinked_ = left != right;
    const auto infinite = [](double bound) { return std::isinf(bound); };
    gradient.bounded_ = !std::all_of(lower.begin(), lower.end(), infinite) ||
                        !std::all_of(upper.begin(), upper.end(), infinite);
    gradient.slope_.reserve(quadratic.size());
    // Without a quadratic term the domain is a single point, where the bounds put y.
    for (const double q : quadratic) gradient.slope_.push_back(q > 0 ? 1 / q : 0);
    gradient.left_ = std::move(left);
    gradient.right_ = std::move(right);
    gradient.lower_ = std::move(lower);
    gradient.upper_ = std::move(upper);
    return gradient;
  }

  /// weight * log(1 + exp(-label u)).
  static Gradient of_logistic(Parameter label, Parameter weight) {
    Gradient gradient;
    gradient.logistic_ = true;
    gradient.left_ = std::move(label);
    gradient.slope_ = std::move(weight);
    return gradient;
  }

  double operator()(std::int64_t i, double u) const {
    if (logistic_) return logistic(left_[i], slope_[i], u);
    return clip(shrink(u, left_[i], right_[i]) * slope_[i], lower_[i], upper_[i]);
  }

  void operator()(Range rows, const double* u, double* y) const {
    if (logistic_) {
      for (auto i = rows.begin; i < rows.end; ++i) y[i] = logistic(left_[i], slope_[i], u[i]);
    } else if (kinked_) {
      bounded_ ? run<true, true>(rows, u, y) : run<true, false>(rows, u, y);
    } else {
      bounded_ ? run<false, true>(rows, u, y) : run<false, false>(rows, u, y);
    }
  }

 private:
  static double logistic(double label, double weight, double u) {
    return -label * weight / (1 + std::exp(label * u));
  }

  // What a loss does not use it should not have to read for every row.
  template <bool Kinked, bool Bounded>
  SADDLEBACK_CLONES static void run(Range rows, const double* u, double* y, const double* left,
                                    const double* right, const double* slope, const double* lower,
                                    const double* upper) {
#pragma omp simd
    for (auto i = rows.begin; i < rows.end; ++i) {
      const double excess = Kinked ? shrink(u[i], left[i], right[i]) : u[i] - left[i];
      const double free = excess * slope[i];
      y[i] = Bounded ? clip(free, lower[i], upper[i]) : free;
    }
  }

  template <bool Kinked, bool Bounded>
  void run(Range rows, const double* u, double* y) const {
    run<Kinked, Bounded>(rows, u, y, left_.data(), right_.data(), slope_.data(), lower_.data(),
                         upper_.data());
  }

  bool logistic_ = false, kinked_ = false, bounded_ = false;
  Parameter left_, right_, slope_, lower_, upper_;
};

}  // namespace saddleback
