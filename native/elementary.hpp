/// \file
/// exp and log1p where losses need them, as formulas without branches: loops that call these are vectorised, which
/// those that call the standard library are not.
#pragma once

#include <bit>

#include "types.hpp"

namespace saddleback {

/// The polynomial with these coefficients, from that of the highest power on. A loop over the coefficients would not be
/// unrolled in time for the vectorisation of the loop around it.
template <class... Coefficients> double polynomial(double x, double highest, Coefficients... others) {
  ((highest = highest * x + others), ...);
  return highest;
}

/// exp(t) for t <= 0, up to one unit of the last place; exp(-708) = 3e-308 for all smaller t.
///
/// With t = n log(2) + r and |r| <= log(2) / 2 it is 2^n times the Taylor series of exp(r).
inline double exp_of_negative(double t) {
  // Added to a number, it rounds it to an integer, which then stands in the last bits of the sum.
  constexpr double rounding = 0x1.8p52, per_log2 = 0x1.71547652b82fep0;
  constexpr double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;  // n log2_high has no rounding error
  t = t < -708 ? -708 : t;
  const double sum = t * per_log2 + rounding, n = sum - rounding;
  const double r = (t - n * log2_high) - n * log2_low;
  const double series = polynomial(r, 1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0,
                                   1 / 40320.0, 1 / 5040.0, 1 / 720.0, 1 / 120.0, 1 / 24.0, 1 / 6.0, 0.5, 1.0, 1.0);
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(sum) + 1023;
  return series * std::bit_cast<double>(exponent << 52);
}

/// log(1 + e) for 0 <= e <= 1, up to two units of the last place: 2 artanh(s) with s = e / (2 + e) <= 1 / 3, as a
/// series in s^2.
inline double log1p_of_share(double e) {
  const double s = e / (2 + e);
  const double series =
      polynomial(s * s, 1 / 35.0, 1 / 33.0, 1 / 31.0, 1 / 29.0, 1 / 27.0, 1 / 25.0, 1 / 23.0, 1 / 21.0, 1 / 19.0,
                 1 / 17.0, 1 / 15.0, 1 / 13.0, 1 / 11.0, 1 / 9.0, 1 / 7.0, 1 / 5.0, 1 / 3.0, 1.0);
  return 2 * s * series;
}

}  // namespace saddleback
