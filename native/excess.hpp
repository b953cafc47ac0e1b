/// \file
/// The excess of one-dimensional functions over lines, F(p) + F*(s) - p s, with bounds that hold in floating point.
///
/// F has two slopes, a square and bounds (`Coordinate`). Its excess is the largest integral of s - F' from p to another
/// point of the domain: a sum of products of numbers that are not negative, in which nothing cancels. The data of a
/// loss, which are the slopes of F, are subtracted from s with twice the digits of a double.
#pragma once

#include "double_double.hpp"
#include "prox.hpp"
#include "threads.hpp"

namespace saddleback {

/// Vectors of one value per coordinate, or one for all coordinates.
struct PerCoordinate {
  const double* data;
  Index stride;

  double operator[](Index i) const { return data[i * stride]; }
};

/// A point p with a radius, and a slope high + low with an error and the size of its terms, per coordinate.
struct Lines {
  PerCoordinate left, right, quadratic, lower, upper;
  PerCoordinate point, radius, high, low, error, size;
};

/// A sum with twice the digits of a double, a bound on the error of its terms, and the sum of their absolute values.
struct BoundedSum {
  double hi = 0, lo = 0, error = 0, size = 0;

  void add(double term, double its_error, double its_size) {
    const DoubleDouble sum = DoubleDouble::sum(hi, term);
    hi = sum.hi;
    lo += sum.lo;
    error += its_error;
    size += its_size;
  }

  void add(const BoundedSum& other) {
    add(other.hi, other.error, other.size);
    lo += other.lo;
  }
};

/// What `Excess` in `functions/excess.py` describes, before sums are rounded.
struct ExcessSums {
  double gap = 0, exact = 0, missed = 0, infeasibility = 0, multiple = 1;
  BoundedSum value, conjugate;
  bool point_inside = true, slope_inside = true, rounded = true;

  void add(const ExcessSums& other) {
    gap += other.gap;
    exact += other.exact;
    missed += other.missed;
    infeasibility = std::max(infeasibility, other.infeasibility);
    multiple = std::min(multiple, other.multiple);
    value.add(other.value);
    conjugate.add(other.conjugate);
    point_inside = point_inside && other.point_inside;
    slope_inside = slope_inside && other.slope_inside;
    rounded = rounded && other.rounded;
  }
};

class CoordinateExcess {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kUnit = 0x1p-53;
  static constexpr double kTiny = 0x1p-960, kUnderflow = 0x1p-1060;  ///< products below the first may have underflowed
  static constexpr double kForgiven = 4 * kUnit;  ///< of a violation, relative to the terms of its own product

  /// A number with a bound on its error.
  struct Near {
    double value, error;
  };

  /// A slope less those of F on either side of 0.
  struct Slopes {
    double left, right;
  };

 public:
  CoordinateExcess(double left, double right, double quadratic, double lower, double upper) {
    if (!(left > -kInfinity)) left = std::min(0.0, right), lower = std::max(lower, 0.0);
    if (!(right < kInfinity)) right = std::max(0.0, left), upper = std::min(upper, 0.0);
    f_ = {left, right, quadratic, lower, upper};
    inverse_ = quadratic > 0 ? 1 / quadratic : 0.0;
    open_below_ = quadratic == 0 && lower == -kInfinity;
    open_above_ = quadratic == 0 && upper == kInfinity;
  }

  /// Adds what is known of one coordinate.
  void add_to(ExcessSums& sums, double p, double radius, double high, double low, double error, double size) const {
    if (!std::isfinite(std::abs(p) + radius + std::abs(high) + std::abs(low) + error + size)) {
      sums.gap = sums.missed = kInfinity;
      sums.infeasibility = 1;
      sums.point_inside = sums.slope_inside = sums.rounded = false;
      return;
    }
    // the slopes of the line less those of F on either side of 0: s - F' falls from these values at the rate q
    const Near a = minus(high, low, f_.left, error), b = minus(high, low, f_.right, error);
    const auto end_of_radius = [&](double side) {  // rounded outwards
      return radius > 0 ? std::nextafter(p + side * radius, side * kInfinity) : p;
    };
    sums.point_inside = sums.point_inside && end_of_radius(-1) >= f_.lower && end_of_radius(1) <= f_.upper;

    const double above = open_above_ ? b.value + b.error : -kInfinity;
    const double below = open_below_ ? a.error - a.value : -kInfinity;
    const double violation = std::max(std::max(above, below), 0.0);
    double clearly = 0;  // the violation without the error
    if (violation > 0) {
      clearly = std::max(above >= below ? b.value : -a.value, 0.0);
      violated(sums, above >= below ? f_.right : f_.left, violation, clearly, high, low, error, size);
      const double reach = std::abs(p) + radius;
      if (reach > 0) sums.missed += reach * violation;
    }

    // E is convex in s with the derivative t - p, where s touches F at t, and convex in p with the derivative F' - s
    const Slopes at = admitted(a.value, b.value);
    const double from = touching(admitted(a.value - a.error, b.value - b.error));
    const double to = touching(admitted(a.value + a.error, b.value + b.error));
    const double t = touching(at), q = clip(p, f_.lower, f_.upper), reach = std::max(a.error, b.error);
    const double steepest = std::max(std::abs(a.value), std::abs(b.value)) + reach;
    // for the rounding of a t that is a quotient
    const double inexact = inverse_ > 0 && t != 0 ? 32 * kUnit * kUnit * steepest * (steepest * inverse_) : 0;
    const Near own = integral(q, t, at);
    double moved = reach * (std::max(std::abs(from - q), std::abs(to - q)) + radius);
    if (radius > 0) moved += radius * steepest_within(q, radius, at);
    sums.gap += (own.value + own.error + moved + inexact + lost(moved)) * (1 + 16 * kUnit);
    sums.exact += std::max(own.value - own.error, 0.0) + (p != 0 ? std::abs(p) * clearly : 0.0);

    const Near conjugate = integral(0, t, at);
    const double within = reach * std::max(std::abs(from), std::abs(to));
    sums.conjugate.add(conjugate.value, (conjugate.error + within + inexact + lost(within)) * (1 + 8 * kUnit),
                       std::abs(conjugate.value));

    const double slope = p > 0 ? f_.right : f_.left, linear = p == 0 ? 0 : slope * p, square = f_.quadratic / 2 * p * p;
    double value_error = 4 * kUnit * (std::abs(linear) + square);
    const bool bent = slope != 0 || f_.quadratic != 0;
    if (p != 0 && bent && std::abs(linear) + square < kTiny) value_error += kUnderflow;
    if (radius > 0)
      value_error += radius * (std::max(std::abs(f_.left), std::abs(f_.right)) + f_.quadratic * (std::abs(p) + radius));
    sums.value.add(linear + square, value_error, std::abs(linear) + square);
  }

  /// Adds what is known of one coordinate of F*, whose excess is that of F with point and slope in each other's place.
  void add_conjugate_to(ExcessSums& sums, double p, double radius, double high, double low, double error,
                        double size) const {
    const double at = high + low, reach = error + 2 * kUnit * std::abs(at), inside = clip(at, f_.lower, f_.upper);
    ExcessSums swapped;
    add_to(swapped, inside, reach, p, 0, radius, std::abs(p));
    sums.gap += swapped.gap;
    sums.exact += swapped.exact;
    sums.value.add(swapped.conjugate);
    sums.conjugate.add(swapped.value);
    sums.point_inside = sums.point_inside && swapped.slope_inside;
    if (at - reach >= f_.lower && at + reach <= f_.upper) return;
    const double beyond = std::abs(at - inside), end = at > 0 ? f_.upper : f_.lower;
    const double above = std::nextafter(at + reach, kInfinity) - f_.upper;
    const double below = f_.lower - std::nextafter(at - reach, -kInfinity);
    const double violation = std::max(above, below) * (1 + 4 * kUnit);
    sums.slope_inside = false;
    if (p != 0) sums.missed += (std::abs(p) + radius) * violation;
    if (p != 0) sums.exact += std::abs(p) * beyond;
    judge(sums, end, violation, beyond, size);
    if (end != 0) scale(sums, end, std::abs(at) + reach);
  }

 private:
  /// high + low - c, whatever the error of the slope.
  static Near minus(double high, double low, double c, double error) {
    const DoubleDouble sum = DoubleDouble::sum(high, -c);
    const double value = sum.hi + (sum.lo + low);
    return {value, 3 * kUnit * (std::abs(value) + std::abs(sum.lo) + std::abs(low)) + error};
  }

  /// A bound on the underflow of a product that may not be 0.
  static double lost(double product) { return product > 0 && product < kTiny ? kUnderflow : 0.0; }

  /// s - left and s - right for the s of the domain of F* that is nearest to the slope.
  Slopes admitted(double a, double b) const {
    if (open_below_) a = std::max(a, 0.0);
    if (open_above_) b = std::min(b, 0.0);
    if (open_below_ && open_above_) {
      const double width = (f_.right - f_.left) * (1 + 4 * kUnit);
      a = std::min(a, width), b = std::max(b, -width);
    }
    return {a, b};
  }

  /// A point at which the slope touches F.
  double touching(Slopes s) const {
    if (f_.lower > 0 || (s.right > 0 && f_.upper > 0)) {
      const double free = inverse_ > 0 ? s.right * inverse_ : s.right > 0 ? kInfinity : 0.0;
      return clip(free, std::max(f_.lower, 0.0), f_.upper);
    }
    if (f_.upper < 0 || (s.left < 0 && f_.lower < 0)) {
      const double free = inverse_ > 0 ? s.left * inverse_ : s.left < 0 ? -kInfinity : 0.0;
      return clip(free, f_.lower, std::min(f_.upper, 0.0));
    }
    return 0;
  }

  /// The integral of s - F' from p to t: a sum of at most two products of one sign if s touches F at t.
  Near integral(double p, double t, Slopes s) const {
    Near sum{0, 0};
    const auto add_piece = [&](double begin, double end, double slope) {
      const double distance = end - begin, mean = slope - f_.quadratic * (0.5 * (begin + end));
      if (distance == 0) return;
      const double term = distance * mean;
      sum.value += term;
      sum.error +=
          8 * kUnit * std::abs(distance) * (std::abs(slope) + f_.quadratic * (std::abs(begin) + std::abs(end)));
      if (mean != 0 && std::abs(term) < kTiny) sum.error += kUnderflow;
    };
    add_piece(std::max(p, 0.0), std::max(t, 0.0), s.right);
    add_piece(std::min(p, 0.0), std::min(t, 0.0), s.left);
    return sum;
  }

  /// The largest |F' - s| within a radius of p.
  double steepest_within(double p, double radius, Slopes s) const {
    const double here = std::abs(p) + radius;
    if (std::abs(p) <= radius) return std::max(std::abs(s.left), std::abs(s.right)) + f_.quadratic * here;
    const double slope = p > 0 ? s.right : s.left, bent = f_.quadratic * p;
    return std::abs(slope - bent) + f_.quadratic * radius + 4 * kUnit * (std::abs(slope) + std::abs(bent));
  }

  /// Notes a slope that is not proved to be in the domain of F*, which ends at `end`.
  void violated(ExcessSums& sums, double end, double violation, double clearly, double high, double low, double error,
                double size) const {
    sums.slope_inside = false;
    judge(sums, end, violation, clearly, size);
    const bool single = open_below_ && open_above_ && f_.left == f_.right;
    if (single || end == 0) return;  // no multiple of the slope but 0 is any better
    scale(sums, end, (std::abs(high) + std::abs(low) + error) * (1 + 8 * kUnit));
  }

  /// Counts a violation that is more than the rounding of its own product.
  static void judge(ExcessSums& sums, double end, double violation, double clearly, double size) {
    if (clearly <= kForgiven * size) return;
    sums.rounded = false;
    sums.infeasibility = std::max(sums.infeasibility, std::min(violation / (std::abs(end) + size), 1.0));
  }

  /// Notes how far a slope has to be scaled to lie within an end.
  static void scale(ExcessSums& sums, double end, double reach) {
    sums.multiple = std::min(sums.multiple, std::abs(end) / reach * (1 - 16 * kUnit));
  }

  Coordinate f_;
  double inverse_;  ///< 1 / quadratic, or 0
  bool open_below_, open_above_;
};

/// The excess of all coordinates, in parts that do not depend on the number of threads.
inline ExcessSums piecewise_excess(const Lines& of, Index count, bool conjugate) {
  constexpr double per_coordinate = 64;  // multiply-adds that take as long
  const int parts = parts_for(per_coordinate * static_cast<double>(count));
  std::vector<ExcessSums> sums(parts);
  Lease().run(parts, [&](int i) {
    const Range own = part(count, i, parts);
    ExcessSums mine;
    for (Index k = own.begin; k < own.end; ++k) {
      const CoordinateExcess at(of.left[k], of.right[k], of.quadratic[k], of.lower[k], of.upper[k]);
      const auto add = conjugate ? &CoordinateExcess::add_conjugate_to : &CoordinateExcess::add_to;
      (at.*add)(mine, of.point[k], of.radius[k], of.high[k], of.low[k], of.error[k], of.size[k]);
    }
    sums[i] = mine;
  });
  for (int i = 1; i < parts; ++i) sums[0].add(sums[i]);
  return sums[0];
}

}  // namespace saddleback
