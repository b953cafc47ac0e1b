/// \file
/// A bound on the largest eigenvalue of a positive semidefinite matrix.
#pragma once

#include "types.hpp"

namespace saddleback {

/// A bound on the largest eigenvalue of a diagonal block of a Gram matrix, from the trace of its 16th power: at most
/// size^(1/16) times too large.
inline double eigenvalue_bound(const double* gram, Index stride, Index first, Index size) {
  if (size == 1) return gram[first * stride + first];
  std::vector<double> power(size * size), square(size * size);
  double trace = 0;
  for (Index a = 0; a < size; ++a) trace += gram[(first + a) * stride + first + a];
  if (!(trace > 0)) return 0;
  for (Index a = 0; a < size; ++a)
    for (Index b = 0; b < size; ++b) power[a * size + b] = gram[(first + a) * stride + first + b] / trace;
  for (int doubling = 0; doubling < 4; ++doubling) {
    std::fill(square.begin(), square.end(), 0.0);
    for (Index a = 0; a < size; ++a)
      for (Index c = 0; c < size; ++c)
        for (Index b = 0; b < size; ++b) square[a * size + b] += power[a * size + c] * power[c * size + b];
    power.swap(square);
  }
  double of_power = 0;
  for (Index a = 0; a < size; ++a) of_power += power[a * size + a];
  return trace * std::pow(of_power, 1.0 / 16);
}

}  // namespace saddleback
