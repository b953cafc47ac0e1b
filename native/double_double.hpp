/// \file
/// Numbers with twice the digits of a double, as the unevaluated sum of two of them (Dekker 1971; Joldes, Muller and
/// Popescu 2017). Products need a fused multiply-add, which `SADDLEBACK_CLONES` makes one instruction.
#pragma once

#include <cmath>

namespace saddleback {

/// hi + lo, with hi the double that is nearest to the sum.
struct DoubleDouble {
  double hi, lo;

  DoubleDouble() = default;
  DoubleDouble(double value) : hi(value), lo(0.0) {}  // NOLINT: as int converts to double
  DoubleDouble(double high, double low) : hi(high), lo(low) {}

  explicit operator double() const { return hi; }

  /// a + b for |a| >= |b|.
  static DoubleDouble ordered_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
  }

  static DoubleDouble sum(double a, double b) {
    const double sum = a + b, own = sum - a;
    return {sum, (a - (sum - own)) + (b - own)};
  }

  static DoubleDouble product(double a, double b) {
    const double product = a * b;
    return {product, std::fma(a, b, -product)};
  }

  DoubleDouble operator-() const { return {-hi, -lo}; }

  friend DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble high = sum(a.hi, b.hi), low = sum(a.lo, b.lo);
    const DoubleDouble most = ordered_sum(high.hi, high.lo + low.hi);
    return ordered_sum(most.hi, most.lo + low.lo);
  }

  friend DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

  friend DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble high = product(a.hi, b.hi);
    return ordered_sum(high.hi, high.lo + (a.hi * b.lo + a.lo * b.hi));
  }

  friend DoubleDouble operator*(DoubleDouble a, double b) {
    const DoubleDouble high = product(a.hi, b);
    return ordered_sum(high.hi, high.lo + a.lo * b);
  }

  friend DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double first = a.hi / b.hi;
    const DoubleDouble rest = a - b * first;
    return ordered_sum(first, rest.hi / b.hi);
  }

  DoubleDouble& operator+=(DoubleDouble other) { return *this = *this + other; }
  DoubleDouble& operator-=(DoubleDouble other) { return *this = *this - other; }
  DoubleDouble& operator*=(DoubleDouble other) { return *this = *this * other; }
};

/// The product of two doubles in the precision of T.
template <class T> T product_of(double a, double b) {
  if constexpr (std::is_same_v<T, DoubleDouble>) return DoubleDouble::product(a, b);
  else return a * b;
}

}  // namespace saddleback
