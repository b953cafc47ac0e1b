/// \file
/// Matrices as collections of columns: views of the caller's memory, which is read in its stored precision. All
/// computations are in double precision.
#pragma once

#include "rounded_sum.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

/// Maximum number of columns per call.
inline constexpr int kBatch = 64;

/// Dense columns that share each access to a vector.
inline constexpr int kTogether = 4;

/// What the kernels and the products need from a matrix.
class Columns {
 public:
  Columns(Index rows, Index count) : rows_(rows), count_(count) {}
  virtual ~Columns() = default;

  Index rows() const { return rows_; }
  Range all() const { return {0, rows_}; }
  Index count() const { return count_; }
  virtual Index stored() const = 0;

  /// Whether a range of rows can be read without the other rows. Otherwise products are over all rows.
  virtual bool sliceable() const = 0;

  /// out[k] = column[k] . y over some rows, for at most kBatch columns. Unless `sums` is null, the columns will likely
  /// be added to it next.
  virtual void dots(Range rows, const Index* column, int count, const double* y, double* out,
                    const double* sums = nullptr) const = 0;

  /// v += sum of factor[k] * column[k] over some rows, for at most kBatch columns. The next `following` columns in the
  /// list will likely be read next.
  virtual void add(Range rows, const Index* column, int count, const double* factor, double* v,
                   int following = 0) const = 0;

  /// Writes weight * column, entry by entry, to v, which must be 0 in the rows of the column.
  virtual void scatter(Index column, const double* weight, double* v) const = 0;

  /// The rows in which a column has entries.
  virtual RowList rows_of(Index) const { return all(); }

  /// Appends the rows in which a column is not 0.
  virtual void append_rows(Index column, std::vector<Index>& rows) const = 0;

  /// Adds |column|^power to v and returns its sum. The power is 0 (which counts the nonzero entries), 1 or 2.
  virtual double add_powers(Index column, int power, double* v) const = 0;

  /// products[k] = column[k] . y and squares[k] = |column[k]|^2. Adds all squares to v, row by row.
  virtual void scan(const Index* column, int count, const double* y, double* products, double* squares,
                    double* v) const = 0;

  /// Whether at most kBatch columns lie inside the memory of the matrix, and their row indices inside its rows.
  virtual bool valid(const Index*, int) const { return true; }

  /// Adds the terms of column . y, and what they become within the radius of y unless it is null.
  virtual void add_to(RoundedSum& sum, Index column, const double* y, const double* radius, bool precise) const = 0;

  /// Adds the terms of factor * column, for a factor within a radius, to the sums of some rows.
  virtual void add_to(const RoundedSums& sums, Range rows, Index column, double factor, double radius,
                      bool precise) const = 0;

  /// The same for neighbouring columns, which are checked in one go.
  virtual bool valid(Range) const { return true; }
  bool all_valid() const { return valid(Range{0, count_}); }

  /// Whether the row indices of every column increase, given that all columns are valid.
  virtual bool canonical() const { return true; }

 private:
  Index rows_, count_;
};

/// Contiguous columns at a fixed distance.
template <class T> class Dense final : public Columns {
 public:
  Dense(const T* data, Index rows, Index count, Index stride) : Columns(rows, count), data_(data), stride_(stride) {}

  Index stored() const override { return rows() * count(); }

  bool sliceable() const override { return true; }

  void dots(Range range, const Index* column, int count, const double* y, double* out, const double*) const override {
    const Index size = range.end - range.begin;
    y += range.begin;
    int k = 0;
    for (; count - k >= kTogether; k += kTogether) {
      const T* start[] = {at(column[k], range), at(column[k + 1], range), at(column[k + 2], range),
                          at(column[k + 3], range)};
      simd::dot4(start, y, size, out + k);
    }
    for (; k < count; ++k) out[k] = simd::dot(at(column[k], range), y, size);
  }

  void add(Range range, const Index* column, int count, const double* factor, double* v, int) const override {
    const Index size = range.end - range.begin;
    v += range.begin;
    const T* start[kTogether];
    double nonzero[kTogether];
    int used = 0;
    for (int k = 0; k < count; ++k) {
      if (factor[k] == 0) continue;
      start[used] = at(column[k], range);
      nonzero[used++] = factor[k];
      if (used < kTogether) continue;
      simd::axpy4(start, nonzero, v, size);
      used = 0;
    }
    for (int k = 0; k < used; ++k) simd::axpy(start[k], nonzero[k], v, size);
  }

  void scatter(Index column, const double* weight, double* v) const override {
    simd::multiply(at(column), weight, v, rows());
  }

  void append_rows(Index column, std::vector<Index>& out) const override {
    const T* entry = at(column);
    for (Index i = 0; i < rows(); ++i)
      if (entry[i] != 0) out.push_back(i);
  }

  double add_powers(Index column, int power, double* v) const override {
    const auto sum = power == 0 ? simd::add_powers<0, T> : power == 1 ? simd::add_powers<1, T> : simd::add_powers<2, T>;
    return sum(at(column), v, rows());
  }

  void scan(const Index* column, int count, const double* y, double* products, double* squares,
            double* v) const override {
    int k = 0;
    for (; count - k >= kTogether; k += kTogether) {
      const T* start[] = {at(column[k]), at(column[k + 1]), at(column[k + 2]), at(column[k + 3])};
      simd::scan4(start, y, rows(), products + k, squares + k, v);
    }
    for (; k < count; ++k) {
      products[k] = simd::dot(at(column[k]), y, rows());
      squares[k] = simd::add_powers<2>(at(column[k]), v, rows());
    }
  }

  void add_to(RoundedSum& sum, Index column, const double* y, const double* radius, bool precise) const override {
    add_dot(sum, at(column), y, radius, rows(), precise);
  }

  void add_to(const RoundedSums& sums, Range range, Index column, double factor, double radius,
              bool precise) const override {
    add_scaled(sums, at(column, range), factor, radius, range.end - range.begin, precise);
  }

 private:
  static_assert(kTogether == 4);

  const T* at(Index column) const { return data_ + column * stride_; }
  const T* at(Index column, Range range) const { return at(column) + range.begin; }

  const T* data_;
  Index stride_;
};

/// Compressed sparse columns; rows may be in any order and may repeat.
template <class I, class T> class Sparse final : public Columns {
 public:
  /// Reads nothing: check that columns are `valid` before using them.
  Sparse(const I* indptr, const I* indices, const T* data, Index stored, Index rows, Index count)
      : Columns(rows, count), indptr_(indptr), indices_(indices), data_(data), stored_(stored) {}

  Index stored() const override { return stored_; }
  bool sliceable() const override { return false; }

  void dots(Range, const Index* column, int count, const double* y, double* out, const double* sums) const override {
    if (!sums && column[count - 1] - column[0] == count - 1) return dots_in_turn(column, count, y, out);
    constexpr int ahead = 4;
    for (int k = 0; k < count; ++k) {
      // Four partial sums: one alone would wait for each addition in turn.
      double sum[4] = {};
      visit(column[k], column[std::min(k + ahead, count - 1)], [&](Index p, int lane) {
        sum[lane] += value(p) * y[indices_[p]];
        if (sums) simd::prefetch(sums + indices_[p]);
      });
      out[k] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
  }

  // The columns to add are in cache already, so that the memory is free to load the columns whose products come next.
  void add(Range, const Index* column, int count, const double* factor, double* v, int following) const override {
    for (int k = 0; k < count; ++k) {
      const double scale = factor[k];
      if (scale == 0) continue;
      visit(column[k], column[k < following ? k + count : k],
            [&](Index p, int) { v[indices_[p]] += scale * value(p); });
    }
  }

  void scatter(Index column, const double* weight, double* v) const override {
    for (Index p = indptr_[column], end = indptr_[column + 1]; p < end; ++p)
      v[indices_[p]] += weight[indices_[p]] * value(p);
  }

  RowList rows_of(Index column) const override { return indices(column); }
  std::span<const I> indices(Index column) const {
    return {indices_ + indptr_[column], indices_ + indptr_[column + 1]};
  }
  const T* values(Index column) const { return data_ + indptr_[column]; }

  void append_rows(Index column, std::vector<Index>& out) const override {
    for (Index p = indptr_[column], end = indptr_[column + 1]; p < end; ++p)
      if (data_[p] != 0) out.push_back(indices_[p]);
  }

  double add_powers(Index column, int power, double* v) const override {
    double sum = 0;
    for (Index p = indptr_[column], end = indptr_[column + 1]; p < end; ++p) {
      const double entry = std::fabs(value(p));
      const double term = power == 0 ? entry != 0 : power == 1 ? entry : entry * entry;
      sum += term;
      v[indices_[p]] += term;
    }
    return sum;
  }

  void scan(const Index* column, int count, const double* y, double* products, double* squares,
            double* v) const override {
    for (int k = 0; k < count; ++k) {
      double product = 0, square = 0;
      for (Index p = indptr_[column[k]], end = indptr_[column[k] + 1]; p < end; ++p) {
        const double entry = value(p), squared = entry * entry;
        product += entry * y[indices_[p]];
        square += squared;
        v[indices_[p]] += squared;
      }
      products[k] = product;
      squares[k] = square;
    }
  }

  void add_to(RoundedSum& sum, Index column, const double* y, const double* radius, bool precise) const override {
    const Index end = indptr_[column + 1];
    for (Index p = indptr_[column]; p < end;) {
      RoundedSum stretch;
      for (const Index stop = std::min(p + RoundedSum::kStretch, end); p < stop; ++p)
        stretch.add(value(p), y[indices_[p]], radius ? radius[indices_[p]] : 0.0, precise);
      sum.add(stretch);
    }
  }

  void add_to(const RoundedSums& sums, Range, Index column, double factor, double radius, bool precise) const override {
    for (Index p = indptr_[column], end = indptr_[column + 1]; p < end; ++p) {
      RoundedSum sum = sums.row(indices_[p]);
      sum.add(value(p), factor, radius, precise);
      sums.set(indices_[p], sum);
    }
  }

  bool valid(const Index* column, int count) const override {
    for (int k = 0; k < count;) {
      int size = 1;
      while (k + size < count && column[k + size] == column[k] + size) ++size;
      if (!valid(Range{column[k], column[k] + size})) return false;
      k += size;
    }
    return true;
  }

  bool valid(Range columns) const override {
    const I *start = indptr_ + columns.begin, *stop = indptr_ + columns.end;
    return *start >= 0 && static_cast<Index>(*stop) <= stored_ && std::is_sorted(start, stop + 1) &&
           simd::all_below(indices_ + *start, *stop - *start, rows());
  }

  bool canonical() const override {
    const Index first = indptr_[0], stop = indptr_[count()];
    Index between = 0;  // an index may fall from one column to the next
    for (Index c = 1; c < count(); ++c) {
      const Index p = indptr_[c];
      between += indptr_[c - 1] < p && p < stop && indices_[p] <= indices_[p - 1];
    }
    return simd::falls(indices_ + first, stop - first) == between;
  }

 private:
  double value(Index p) const { return static_cast<double>(data_[p]); }

  // Neighbouring columns are one stream, which the hardware prefetches. The partial sums are those of `visit`, because
  // the choice between the two depends on earlier calls and must not change the result.
  void dots_in_turn(const Index* column, int count, const double* y, double* out) const {
    for (int k = 0; k < count; ++k) {
      Index p = indptr_[column[k]];
      const Index end = indptr_[column[k] + 1];
      double sum[4] = {};
      for (; end - p >= 8; p += 8)
        for (int i = 0; i < 8; ++i) sum[i % 4] += value(p + i) * y[indices_[p + i]];
      for (; p < end; ++p) sum[0] += value(p) * y[indices_[p]];
      out[k] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
  }

  // Calls body(p, lane) for the entries p of a column, with lanes 0, 1, 2, 3, 0, ... The drawn columns are scattered in
  // memory, and most end before the hardware detects a pattern: reading a column prefetches `next`, line by line.
  template <class Body> void visit(Index column, Index next, const Body& body) const {
    constexpr int stretch = 8;
    Index p = indptr_[column], q = indptr_[next];
    const Index end = indptr_[column + 1];
    simd::prefetch(indices_ + q);
    simd::prefetch(data_ + q);
    for (; end - p >= stretch; p += stretch, q += stretch) {
      simd::prefetch(indices_ + q + 2 * stretch);
      simd::prefetch(data_ + q + stretch);
      for (int i = 0; i < stretch; ++i) body(p + i, i % 4);
    }
    for (; p < end; ++p) body(p, 0);
  }

  const I* indptr_;
  const I* indices_;
  const T* data_;
  Index stored_;
};

inline void require_valid(bool valid) {
  if (!valid) {
    throw std::invalid_argument(
        "indptr must rise from 0 to at most the number of entries, and row indices lie inside the matrix");
  }
}

}  // namespace saddleback
