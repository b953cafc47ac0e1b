/// \file
/// Matrices side by side.
#pragma once

#include "matrix.hpp"
#include "types.hpp"

namespace saddleback {

/// Matrices side by side, read as one matrix.
class Stack {
 public:
  Stack(Index rows, std::vector<std::shared_ptr<const Columns>> matrices)
      : rows_(rows), matrices_(std::move(matrices)), first_{0} {
    for (const auto& matrix : matrices_) {
      if (matrix->rows() != rows) throw std::invalid_argument("all matrices must have as many rows as the loss");
      require_valid(matrix->all_valid());
      first_.push_back(first_.back() + matrix->count());
      stored_ += static_cast<double>(matrix->stored());
      sliceable_ &= matrix->sliceable();
    }
  }

  Index rows() const { return rows_; }
  Range all() const { return {0, rows_}; }
  Index columns() const { return first_.back(); }
  double stored() const { return stored_; }
  double stored_per_column() const { return stored_ / static_cast<double>(std::max<Index>(1, columns())); }
  bool sliceable() const { return sliceable_; }

  /// The products of `Columns`, for any number of columns.
  void dots(Range rows, const Index* column, Index count, const double* y, double* out,
            const double* sums = nullptr) const {
    visit(column, count, 0, [&](const Columns& matrix, const Index* local, int size, int, Index at) {
      matrix.dots(rows, local, size, y, out + at, sums);
    });
  }

  void add(Range rows, const Index* column, Index count, const double* factor, double* v, Index following = 0) const {
    visit(column, count, following, [&](const Columns& matrix, const Index* local, int size, int further, Index at) {
      matrix.add(rows, local, size, factor + at, v, further);
    });
  }

  /// Calls body() while v holds weight * column; v is 0 before and after.
  template <class Body> void with_scattered(Index column, const double* weight, double* v, const Body& body) const {
    const auto [matrix, local] = find(column);
    matrix.scatter(local, weight, v);
    body();
    for_each_row(matrix.rows_of(local), [v](Index i) { v[i] = 0; });
  }

  struct Place {
    const Columns& matrix;
    Index column;
  };

  /// The matrix with a column, and the number of the column there.
  Place find(Index column) const {
    const std::size_t home = home_of(column);
    return {*matrices_[home], column - first_[home]};
  }

 private:
  std::size_t home_of(Index column) const {
    std::size_t home = 0;
    while (column >= first_[home + 1]) ++home;
    return home;
  }

  /// Cuts a list of columns into batches that lie in one matrix each, and shows each batch which columns follow it
  /// there: up to `following` columns after the end of the list.
  template <class Body> void visit(const Index* column, Index count, Index following, const Body& body) const {
    for (Index at = 0; at < count;) {
      const std::size_t home = home_of(column[at]);
      const Index first = first_[home], stop = first_[home + 1];
      const Index most = std::min(Index{2} * kBatch, count + following - at);
      Index local[2 * kBatch];
      int seen = 0;
      for (; seen < most && column[at + seen] >= first && column[at + seen] < stop; ++seen)
        local[seen] = column[at + seen] - first;
      const int size = static_cast<int>(std::min<Index>({seen, kBatch, count - at}));
      body(*matrices_[home], local, size, seen - size, at);
      at += size;
    }
  }

  Index rows_;
  std::vector<std::shared_ptr<const Columns>> matrices_;
  std::vector<Index> first_;
  double stored_ = 0;
  bool sliceable_ = true;
};

}  // namespace saddleback
