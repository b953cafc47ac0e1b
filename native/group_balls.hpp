/// \file
/// The projection of groups of coordinates onto balls.
#pragma once

#include "threads.hpp"

namespace saddleback {

/// Writes the projection of v to x: each group times min(1, radius / norm). Group g has the coordinates order[k] with k
/// from start[g] to start[g + 1]; without an order they are k itself. There is one radius, or one per group.
inline void project_on_balls(const double* v, const Index* order, std::span<const Index> start,
                             std::span<const double> radius, double* x) {
  const Index groups = length(start) - 1;
  const int parts = parts_for(4.0 * static_cast<double>(start.back()));
  Lease lease;
  lease.run(parts, [&](int i) {
    const Range own = part(groups, i, parts);
    for (Index g = own.begin; g < own.end; ++g) {
      double square = 0.0;
      for (Index k = start[g]; k < start[g + 1]; ++k) {
        const double entry = v[order ? order[k] : k];
        square += entry * entry;
      }
      const double most = radius[radius.size() == 1 ? 0 : g], norm = std::sqrt(square);
      const double factor = norm > most ? most / norm : 1.0;
      for (Index k = start[g]; k < start[g + 1]; ++k) {
        const Index at = order ? order[k] : k;
        x[at] = factor * v[at];
      }
    }
  });
}

}  // namespace saddleback
