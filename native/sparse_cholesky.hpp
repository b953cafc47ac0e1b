/// \file
/// Cholesky factors of sparse matrices by supernodes.
///
/// Neighbouring columns of L with nearly the same rows form a supernode, which is stored as a dense panel. Each panel
/// gets the updates of the panels before it as dense products (Ng and Peyton 1993; Chen, Davis, Hager and Rajamanickam
/// 2008). All work is done by the BLAS, on one thread, in an order that depends on the pattern alone.
#pragma once

#include <numeric>

#include "tiled_blas.hpp"
#include "types.hpp"

namespace saddleback {

/// The lower triangle of a symmetric matrix in compressed columns, with increasing rows that begin on the diagonal.
struct LowerPattern {
  Index n;
  const Index* start;
  const Index* row;
};

/// The rows of the lower triangle without its diagonal, in compressed form.
struct LowerRows {
  std::vector<Index> start, column;

  explicit LowerRows(const LowerPattern& a) : start(static_cast<std::size_t>(a.n) + 1, 0) {
    for (Index j = 0; j < a.n; ++j)
      for (Index k = a.start[j]; k < a.start[j + 1]; ++k)
        if (a.row[k] > j) ++start[a.row[k] + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    column.resize(start[a.n]);
    std::vector<Index> next(start.begin(), start.end() - 1);
    for (Index j = 0; j < a.n; ++j)
      for (Index k = a.start[j]; k < a.start[j + 1]; ++k)
        if (a.row[k] > j) column[next[a.row[k]]++] = j;
  }
};

/// The parent of each column in the elimination tree; n for a root (Liu 1990).
inline std::vector<Index> elimination_tree(Index n, const LowerRows& rows) {
  std::vector<Index> parent(n, n), ancestor(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index k = rows.start[i]; k < rows.start[i + 1]; ++k) {
      Index j = rows.column[k];
      while (j < i) {
        const Index above = std::exchange(ancestor[j], i);
        if (above == n) {
          parent[j] = i;
          break;
        }
        j = above;
      }
    }
  }
  return parent;
}

/// An order of the columns in which the descendants of each column come right before it.
inline std::vector<Index> postorder(const std::vector<Index>& parent) {
  const Index n = length(parent);
  std::vector<Index> child(n + 1, n), sibling(n, n), order, stack;
  for (Index j = n - 1; j >= 0; --j) sibling[j] = std::exchange(child[parent[j]], j);
  order.reserve(n);
  for (Index root = child[n]; root < n; root = sibling[root]) {
    stack.push_back(root);
    while (!stack.empty()) {
      const Index j = stack.back();
      if (child[j] < n) {
        stack.push_back(std::exchange(child[j], sibling[child[j]]));
      } else {
        order.push_back(j);
        stack.pop_back();
      }
    }
  }
  return order;
}

/// The number of entries in each column of L, its diagonal included; empty if they are more than `most` in all.
inline std::vector<Index> column_counts(Index n, const LowerRows& rows, const std::vector<Index>& parent, Index most) {
  std::vector<Index> count(n, 1), seen(n, n);
  for (Index i = 0, total = n; i < n; ++i) {
    seen[i] = i;
    for (Index k = rows.start[i]; k < rows.start[i + 1]; ++k)
      for (Index j = rows.column[k]; seen[j] != i; j = parent[j]) {
        ++count[j];
        ++total;
        seen[j] = i;
      }
    if (total > most) return {};
  }
  return count;
}

/// Which entries L has, by supernodes, for a matrix whose columns are in postorder.
class Supernodes {
 public:
  Supernodes(const LowerPattern& a, const std::vector<Index>& parent, const std::vector<Index>& counts)
      : n(a.n), of_column(a.n) {
    divide(parent, counts);
    find_rows(a);
  }

  Index count() const { return length(first) - 1; }
  Index width(Index s) const { return first[s + 1] - first[s]; }
  Index height(Index s) const { return row_start[s + 1] - row_start[s]; }
  Index entries() const { return panel_start.back(); }

  /// Multiplications of a factorisation.
  double multiplications() const {
    double total = 0;
    for (Index s = 0; s < count(); ++s)
      for (Index k = 0; k < width(s); ++k) total += 0.5 * std::pow(static_cast<double>(height(s) - k), 2);
    return total;
  }

  Index n;
  std::vector<Index> first;        ///< the first column of each supernode, then n
  std::vector<Index> of_column;    ///< the supernode of each column
  std::vector<Index> row_start;    ///< where the rows of each supernode begin in `rows`
  std::vector<Index> rows;         ///< the rows of each supernode, which begin with its columns
  std::vector<Index> panel_start;  ///< where the panel of each supernode begins

 private:
  /// A supernode before its rows are known: its first column, the rows of that column, and the zeros that it stores.
  struct Node {
    Index first, height;
    double zeros;
  };

  /// Whether two neighbouring supernodes become one: if the zeros that this stores are few.
  static bool worth_merging(Index columns, double zeros, double entries) {
    const double share = zeros / entries;
    return columns <= 4 || (columns <= 16 && share < 0.8) || (columns <= 48 && share < 0.1) || share < 0.05;
  }

  void divide(const std::vector<Index>& parent, const std::vector<Index>& counts) {
    std::vector<Node> nodes;
    for (Index j = 0; j < n; ++j) {
      if (j > 0 && parent[j - 1] == j && counts[j] == counts[j - 1] - 1) continue;
      merge_last(nodes, j, parent);
      nodes.push_back({j, counts[j], 0.0});
    }
    merge_last(nodes, n, parent);
    for (const Node& node : nodes) first.push_back(node.first);
    first.push_back(n);
    for (Index s = 0; s < count(); ++s)
      for (Index j = first[s]; j < first[s + 1]; ++j) of_column[j] = s;
  }

  /// Merges the last supernodes, which end before column `end`, as long as that is worthwhile.
  static void merge_last(std::vector<Node>& nodes, Index end, const std::vector<Index>& parent) {
    while (nodes.size() > 1) {
      const Node &last = nodes.back(), &before = nodes[nodes.size() - 2];
      if (parent[last.first - 1] >= end) return;
      const Index own = last.first - before.first, columns = end - before.first, height = own + last.height;
      const double added = static_cast<double>(own) * static_cast<double>(height - before.height);
      const double zeros = before.zeros + last.zeros + added;
      const double entries = static_cast<double>(columns) * (static_cast<double>(height) - 0.5 * (columns - 1));
      if (!worth_merging(columns, zeros, entries)) return;
      nodes.pop_back();
      nodes.back().height = height;
      nodes.back().zeros = zeros;
    }
  }

  /// The rows of a supernode are those of its columns of A, and those of its children beyond their own columns.
  void find_rows(const LowerPattern& a) {
    std::vector<Index> seen(n, -1), child(count(), -1), sibling(count(), -1);
    row_start.push_back(0);
    panel_start.push_back(0);
    for (Index s = 0; s < count(); ++s) {
      const Index begin = length(rows), end = first[s + 1];
      for (Index j = first[s]; j < end; ++j) {
        seen[j] = s;
        rows.push_back(j);
      }
      const auto take = [&](Index i) {
        if (i >= end && std::exchange(seen[i], s) != s) rows.push_back(i);
      };
      for (Index j = first[s]; j < end; ++j)
        for (Index k = a.start[j]; k < a.start[j + 1]; ++k) take(a.row[k]);
      for (Index c = child[s]; c >= 0; c = sibling[c])
        for (Index k = row_start[c] + width(c); k < row_start[c + 1]; ++k) take(rows[k]);
      std::sort(rows.begin() + begin + width(s), rows.end());
      row_start.push_back(length(rows));
      panel_start.push_back(panel_start.back() + width(s) * height(s));
      if (height(s) > width(s)) {
        const Index above = of_column[rows[begin + width(s)]];
        sibling[s] = std::exchange(child[above], s);
      }
    }
  }
};

/// The panels of L, one after the other, each stored by columns.
class SparseCholesky {
 public:
  explicit SparseCholesky(std::shared_ptr<const Supernodes> nodes)
      : nodes_(std::move(nodes)), values_(new double[static_cast<std::size_t>(nodes_->entries())]) {}

  /// Factors a matrix with the pattern of the supernodes. Returns whether it is positive definite.
  bool factor(const LowerPattern& a, const double* value) {
    const Supernodes& nodes = *nodes_;
    const Index count = nodes.count();
    std::vector<Index> list(count, -1), next(count, -1), reached(count, 0), place(nodes.n, 0);
    std::vector<double> room;
    for (Index s = 0; s < count; ++s) {
      assemble(s, a, value, place);
      for (Index d = list[s]; d >= 0;) {
        const Index after = next[d];
        reached[d] = update(s, d, reached[d], place, room);
        wait(d, reached[d], list, next);
        d = after;
      }
      if (!eliminate(s)) return false;
      reached[s] = nodes.width(s);
      wait(s, reached[s], list, next);
    }
    return true;
  }

  /// Replaces b by the solution of L L' x = b.
  void solve(double* b) const {
    const Supernodes& nodes = *nodes_;
    for (Index s = 0; s < nodes.count(); ++s) {
      const Index width = nodes.width(s), height = nodes.height(s);
      const Index* row = nodes.rows.data() + nodes.row_start[s];
      for (Index k = 0; k < width; ++k) {
        const double* column = panel(s) + k * height;
        const double y = b[row[k]] /= column[k];
        for (Index i = k + 1; i < height; ++i) b[row[i]] -= column[i] * y;
      }
    }
    for (Index s = nodes.count() - 1; s >= 0; --s) {
      const Index height = nodes.height(s);
      const Index* row = nodes.rows.data() + nodes.row_start[s];
      for (Index k = nodes.width(s) - 1; k >= 0; --k) {
        const double* column = panel(s) + k * height;
        double x = b[row[k]];
        for (Index i = k + 1; i < height; ++i) x -= column[i] * b[row[i]];
        b[row[k]] = x / column[k];
      }
    }
  }

  Index size() const { return nodes_->n; }

 private:
  double* panel(Index s) const { return values_.get() + nodes_->panel_start[s]; }

  /// Lets a supernode wait for the next one that it updates.
  void wait(Index d, Index reached, std::vector<Index>& list, std::vector<Index>& next) const {
    if (reached == nodes_->height(d)) return;
    const Index s = nodes_->of_column[nodes_->rows[nodes_->row_start[d] + reached]];
    next[d] = std::exchange(list[s], d);
  }

  /// Copies the columns of A into the panel of a supernode, and sets the place of each of its rows in the panel.
  void assemble(Index s, const LowerPattern& a, const double* value, std::vector<Index>& place) const {
    const Index height = nodes_->height(s);
    const Index* row = nodes_->rows.data() + nodes_->row_start[s];
    double* to = panel(s);
    std::fill_n(to, nodes_->width(s) * height, 0.0);
    for (Index i = 0; i < height; ++i) place[row[i]] = i;
    for (Index j = nodes_->first[s]; j < nodes_->first[s + 1]; ++j, to += height)
      for (Index k = a.start[j]; k < a.start[j + 1]; ++k) to[place[a.row[k]]] = value[k];
  }

  /// Subtracts the product of a supernode d with itself from supernode s, from its row `begin` on. Returns the row up
  /// to which d has been used.
  Index update(Index s, Index d, Index begin, const std::vector<Index>& place, std::vector<double>& room) const {
    const Index height = nodes_->height(d), width = nodes_->width(d), own = nodes_->height(s);
    const Index* row = nodes_->rows.data() + nodes_->row_start[d];
    Index end = begin;
    while (end < height && row[end] < nodes_->first[s + 1]) ++end;
    const Index columns = end - begin, rows = height - begin;
    if (length(room) < rows * columns) room.resize(rows * columns);
    const double* from = panel(d) + begin;
    multiply_self(true, columns, width, 1.0, from, height, 0.0, room.data(), rows);
    if (rows > columns)
      multiply_add(true, rows - columns, columns, width, 1.0, from + columns, height, from, height, 0.0,
                   room.data() + columns, rows);
    for (Index k = 0; k < columns; ++k) {
      double* to = panel(s) + (row[begin + k] - nodes_->first[s]) * own;
      const double* product = room.data() + k * rows;
      for (Index i = k; i < rows; ++i) to[place[row[begin + i]]] -= product[i];
    }
    return end;
  }

  /// Factors the square on top of a panel, and divides the rest by it.
  bool eliminate(Index s) const {
    const Blas& blas = Blas::instance();
    int width = static_cast<int>(nodes_->width(s)), height = static_cast<int>(nodes_->height(s)), failed = 0;
    char lower = 'L', side = 'R', transposed = 'T', diagonal = 'N';
    blas.dpotrf(&lower, &width, panel(s), &height, &failed);
    for (Index k = 0; k < width; ++k) failed |= !std::isfinite(panel(s)[k * (height + 1)]);
    if (failed != 0) return false;
    int rest = height - width;
    double one = 1.0;
    if (rest > 0)
      blas.dtrsm(&side, &lower, &transposed, &diagonal, &rest, &width, &one, panel(s), &height, panel(s) + width,
                 &height);
    return true;
  }

  std::shared_ptr<const Supernodes> nodes_;
  std::unique_ptr<double[]> values_;
};

/// Adds A' diag(weight) A to the values of a lower triangle, for A in compressed rows with increasing columns. Returns
/// whether the pattern has a place for every product.
inline bool add_pattern_gram(const Index* start, const Index* column, const double* value, Index rows,
                             const double* weight, const LowerPattern& to, double* values) {
  for (Index i = 0; i < rows; ++i) {
    for (Index k = start[i]; k < start[i + 1]; ++k) {
      const double factor = weight[i] * value[k];
      Index at = to.start[column[k]];
      const Index end = to.start[column[k] + 1];
      for (Index other = k; other < start[i + 1]; ++other) {
        while (at < end && to.row[at] < column[other]) ++at;
        if (at == end || to.row[at] != column[other]) return false;
        values[at] += factor * value[other];
      }
    }
  }
  return true;
}

}  // namespace saddleback
