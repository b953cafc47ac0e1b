/// \file
/// Rows of a sparse matrix that form a triangle, and the sizes of solutions of its equations.
///
/// A row with a single column that is not covered yet covers this column. In the reverse of the order in which columns
/// are covered, each equation B'w = d has one unknown, so that |w| can be bounded without the inverse of a matrix. For
/// the differences of an image, the rows are the edges of a spanning forest whose roots are single data.
#pragma once

#include "types.hpp"

namespace saddleback {

/// A sparse matrix by rows or by columns.
struct SparseView {
  std::span<const std::int64_t> start, index;
  std::span<const double> value;

  Index count() const { return length(start) - 1; }
};

/// The rows, each with the column that it covers, in the order in which columns are covered.
struct Triangle {
  std::vector<Index> row, column;
};

/// Finds a triangle among the rows that may be used, breadth first, so that paths through the triangle are short.
/// Columns in `roots` count as covered from the start.
inline Triangle triangle_of(const SparseView& rows, const SparseView& columns, const bool* usable, const bool* roots) {
  std::vector<Index> open(rows.count());
  std::vector<char> covered(roots, roots + columns.count());
  std::vector<Index> queue;
  const auto consider = [&](Index i) {
    if (open[i] == 1 && usable[i]) queue.push_back(i);
  };
  for (Index i = 0; i < rows.count(); ++i) {
    for (Index p = rows.start[i]; p < rows.start[i + 1]; ++p) open[i] += rows.value[p] != 0 && !covered[rows.index[p]];
    consider(i);
  }
  Triangle found;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const Index i = queue[next];
    if (open[i] != 1) continue;
    Index p = rows.start[i];
    while (rows.value[p] == 0 || covered[rows.index[p]]) ++p;
    const Index j = rows.index[p];
    found.row.push_back(i);
    found.column.push_back(j);
    covered[j] = 1;
    for (Index q = columns.start[j]; q < columns.start[j + 1]; ++q) {
      if (columns.value[q] == 0) continue;
      --open[columns.index[q]];
      consider(columns.index[q]);
    }
  }
  return found;
}

/// w with B'w = d on the rows of the triangle, in place of w; with `bound`, an upper bound on |w| for any |d'| <= d.
///
/// The rounding of a bound is that of its own column: two operations and a product that may underflow for each entry.
inline void solve_triangle(const Triangle& triangle, const SparseView& columns, const double* d, bool bound,
                           double* w) {
  for (Index k = length(triangle.row) - 1; k >= 0; --k) {
    const Index i = triangle.row[k], j = triangle.column[k];
    double rest = d[j], own = 0;
    for (Index q = columns.start[j]; q < columns.start[j + 1]; ++q) {
      const Index other = columns.index[q];
      if (other == i) own += columns.value[q];
      else if (bound) rest += std::abs(columns.value[q]) * w[other] + 0x1p-1074 * (w[other] > 0);
      else rest -= columns.value[q] * w[other];
    }
    const double up = 1 + 0x1p-52 * static_cast<double>(columns.start[j + 1] - columns.start[j] + 8);
    w[i] = bound ? rest / std::abs(own) * up + 0x1p-1074 * (rest > 0) : rest / own;
  }
}

}  // namespace saddleback
