/// \file
/// A' diag(w) A of a sparse matrix, by its rows.
#pragma once

#include <algorithm>

#include "threads.hpp"
#include "types.hpp"

namespace saddleback {

/// A matrix in compressed sparse rows, the columns of each row in increasing order.
struct Rows {
  const Index* start;
  const Index* column;
  const double* value;
  Index count;
};

/// Adds the lower triangle of A' diag(weight) A to an n x n matrix stored by columns. A row with k entries adds
/// k(k+1)/2 products. Each part owns a range of columns of the result and reads all rows for them.
inline void add_gram(const Rows& rows, const double* weight, double* out, Index n) {
  const Index stored = rows.start[rows.count];
  const double per_row = static_cast<double>(stored) / static_cast<double>(std::max<Index>(1, rows.count));
  const int parts = parts_for(0.5 * static_cast<double>(stored) * per_row);
  Lease().run(parts, [&](int i) {
    const Range own = part(n, i, parts);
    for (Index row = 0; row < rows.count; ++row) {
      const Index end = rows.start[row + 1];
      const Index* first = std::lower_bound(rows.column + rows.start[row], rows.column + end, own.begin);
      for (Index at = first - rows.column; at < end && rows.column[at] < own.end; ++at) {
        const double scaled = weight[row] * rows.value[at];
        double* to = out + rows.column[at] * n;
        for (Index k = at; k < end; ++k) to[rows.column[k]] += scaled * rows.value[k];
      }
    }
  });
}

}  // namespace saddleback
