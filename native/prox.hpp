/// \file
/// Proximal maps.
#pragma once

#include "types.hpp"

namespace saddleback {

/// The function with slope `left` below 0 and `right` above, plus quadratic x^2 / 2, on [lower, upper]. An infinite
/// left slope is a sign constraint.
struct Coordinate {
  double left, right, quadratic, lower, upper;
};

/// Coordinate functions, parameter by parameter.
struct Coordinates {
  std::vector<double> left, right, quadratic, lower, upper;

  std::vector<Coordinate> by_entry() const {
    std::vector<Coordinate> result;
    result.reserve(left.size());
    for (std::size_t i = 0; i < left.size(); ++i)
      result.push_back({left[i], right[i], quadratic[i], lower[i], upper[i]});
    return result;
  }
};

// Ternaries rather than std::min and std::max, whose references prevent vectorisation.
inline double clip(double v, double lower, double upper) {
  v = v < lower ? lower : v;
  return v > upper ? upper : v;
}

/// v moved towards 0 by the slope on its side of 0.
inline double shrink(double v, double left, double right) { return v - clip(v, left, right); }

inline double prox(const Coordinate& f, double v, double step) {
  const double free = shrink(v, step * f.left, step * f.right) / (1 + step * f.quadratic);
  return clip(free, f.lower, f.upper);
}

/// The value within the bounds.
inline double value(const Coordinate& f, double x) {
  return x == 0 ? 0 : (x > 0 ? f.right : f.left) * x + f.quadratic / 2 * x * x;
}

/// The rho of the proximal map of weight * ||x|| in the metric diag(h). The map is x_i = b_i rho / (h_i rho + weight),
/// or 0 if rho is 0.
///
/// For positive rho the condition is psi(rho) = 1, where psi(rho)^-2 = sum of (b_i / (h_i rho + weight))^2. psi is
/// concave and increasing, so that Newton's method from the left never oversteps.
inline double group_radius(const double* b, const double* h, Index count, double weight) {
  double square = 0, least = std::numeric_limits<double>::infinity(), most = 0;
  for (Index i = 0; i < count; ++i) {
    square += b[i] * b[i];
    least = std::min(least, h[i]);
    most = std::max(most, h[i]);
  }
  const double excess = std::sqrt(square) - weight;
  if (!(excess > 0)) return 0;

  constexpr int most_steps = 100;
  const double upper = excess / least;
  double rho = excess / most;
  for (int step = 0; step < most_steps; ++step) {
    double phi = 0, slope = 0;
    for (Index i = 0; i < count; ++i) {
      const double scale = 1 / (h[i] * rho + weight);
      const double term = b[i] * b[i] * scale * scale;
      phi += term;
      slope += term * h[i] * scale;
    }
    const double next = std::min(rho + phi * (std::sqrt(phi) - 1) / slope, upper);
    if (!(next > rho * (1 + 1e-15))) break;
    rho = next;
  }
  return rho;
}

/// The negative q with q + a / (1 + exp(-q)) + c = 0, given a > 0 and a / 2 + c > 0.
///
/// The left side is convex for q < 0, so that after one step Newton's method approaches the root from the right. It
/// starts from an estimate of the root of q + a exp(q) + c = 0, which is -c - W(a exp(-c)) with Lambert's W.
inline double logistic_root(double a, double c) {
  constexpr int most_steps = 100;
  const double exponent = std::log(a) - c;
  const double l = exponent > 40 ? exponent : std::log1p(std::exp(exponent));
  const double ceiling = std::min(0.0, -c);
  double q = std::min(ceiling, -c - l * (1 - std::log1p(l) / (2 + l)));
  for (int step = 0; step < most_steps; ++step) {
    const double e = std::exp(q);
    const double t = e / (1 + e);
    const double move = (q + a * t + c) / (1 + a * t / (1 + e));
    q = std::min(ceiling, q - move);
    // Convergence is quadratic: the error left is below the square of the move.
    if (!(std::fabs(move) > 1e-8 * (1 - q))) break;
  }
  return q;
}

/// Proximal map of the conjugate of weight * log(1 + exp(-label u)), label +-1.
///
/// The result is -label * weight * t with t in [0, 1] such that log(t / (1 - t)) + a t + c = 0, a = weight / step and
/// c = label v / step.
inline double logistic_dual_prox(double v, double step, double label, double weight) {
  if (!(weight > 0)) return 0;
  constexpr double huge = 1e150;
  const double a = weight / step, c = label * v / step;
  double t;
  if (!(a < huge && std::fabs(c) < huge)) {
    // The logarithm is negligible relative to the other terms.
    t = clip(-label * v / weight, 0, 1);
  } else if (a / 2 + c > 0) {
    const double e = std::exp(logistic_root(a, c));
    t = e / (1 + e);
  } else {
    t = 1 / (1 + std::exp(logistic_root(a, -(a + c))));
  }
  return -label * weight * t;
}

/// A user's compiled proximal map, called with or without its data.
struct Callable {
  void *address, *user_data;
  bool takes_user_data;

  double operator()(double v, double step) const {
    if (takes_user_data) return reinterpret_cast<double (*)(double, double, void*)>(address)(v, step, user_data);
    return reinterpret_cast<double (*)(double, double)>(address)(v, step);
  }
};

}  // namespace saddleback
