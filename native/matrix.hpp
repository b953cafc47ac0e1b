/// \file
/// Matrices as collections of columns: views on the caller's memory, read in
/// their stored precision and computed with in double precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "simd.hpp"

namespace saddleback {

using Index = std::int64_t;

/// Most columns handed to a matrix at once.
inline constexpr int kBatch = 64;

/// Dense columns that share each access to a vector.
inline constexpr int kTogether = 4;

/// What the iteration and the products ask of a matrix.
class Columns {
 public:
  Columns(Index rows, Index count) : rows_(rows), count_(count) {}
  virtual ~Columns() = default;

  Index rows() const { return rows_; }
  Index count() const { return count_; }
  virtual Index stored() const = 0;

  /// out[k] = column[k] . y, for at most kBatch columns, which will likely be
  /// added to `sums` next unless that is null.
  virtual void dots(const Index* column, int count, const double* y, double* out,
                    const double* sums = nullptr) const = 0;

  /// v += sum of factor[k] * column[k], for at most kBatch columns; the
  /// `following` ones after them in the list will likely be read next.
  virtual void add(const Index* column, int count, const double* factor, double* v,
                   int following = 0) const = 0;

  /// Appends the rows in which a column is not 0.
  virtual void append_rows(Index column, std::vector<Index>& rows) const = 0;

  /// Adds |column|^power to v and returns its sum; power is 0, which counts what is not 0, 1 or 2.
  virtual double add_powers(Index column, int power, double* v) const = 0;

  /// Whether every row index of the column lies inside the matrix.
  virtual bool valid(Index) const { return true; }

 private:
  Index rows_, count_;
};

/// Contiguous columns a fixed number of entries apart.
template <class T>
class Dense final : public Columns {
 public:
  Dense(const T* data, Index rows, Index count, Index stride)
      : Columns(rows, count), data_(data), stride_(stride) {}

  Index stored() const override { return rows() * count(); }

  void dots(const Index* column, int count, const double* y, double* out,
            const double*) const override {
    int k = 0;
    for (; count - k >= kTogether; k += kTogether) {
      const T* start[] = {at(column[k]), at(column[k + 1]), at(column[k + 2]), at(column[k + 3])};
      simd::dot4(start, y, rows(), out + k);
    }
    for (; k < count; ++k) out[k] = simd::dot(at(column[k]), y, rows());
  }

  void add(const Index* column, int count, const double* factor, double* v,
           int) const override {
    const T* start[kTogether];
    double nonzero[kTogether];
    int used = 0;
    for (int k = 0; k < count; ++k) {
      if (factor[k] == 0) continue;
      start[used] = at(column[k]);
      nonzero[used++] = factor[k];
      if (used < kTogether) continue;
      simd::axpy4(start, nonzero, v, rows());
      used = 0;
    }
    for (int k = 0; k < used; ++k) simd::axpy(start[k], nonzero[k], v, rows());
  }

  void append_rows(Index column, std::vector<Index>& out) const override {
    const T* entry = at(column);
    for (Index i = 0; i < rows(); ++i)
      if (entry[i] != 0) out.push_back(i);
  }

  double add_powers(Index column, int power, double* v) const override {
    const auto sum = power == 0   ? simd::add_powers<0, T>
                     : power == 1 ? simd::add_powers<1, T>
                                  : simd::add_powers<2, T>;
    return sum(at(column), v, rows());
  }

 private:
  static_assert(kTogether == 4);

  const T* at(Index column) const { return data_ + column * stride_; }

  const T* data_;
  Index stride_;
};

/// Compressed sparse columns; rows may be in any order and may repeat.
template <class I, class T>
class Sparse final : public Columns {
 public:
  Sparse(const I* indptr, const I* indices, const T* data, Index stored, Index rows, Index count)
      : Columns(rows, count), indptr_(indptr), indices_(indices), data_(data) {
    const bool ordered = indptr[0] == 0 && std::is_sorted(indptr, indptr + count + 1);
    if (!ordered || static_cast<Index>(indptr[count]) > stored)
      throw std::invalid_argument("indptr must rise from 0 to at most the number of entries");
  }

  Index stored() const override { return indptr_[count()]; }

  void dots(const Index* column, int count, const double* y, double* out,
            const double* sums) const override {
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

  // Adding reads what is in cache already, so that the memory is free to
  // bring in the columns whose products come next.
  void add(const Index* column, int count, const double* factor, double* v,
           int following) const override {
    for (int k = 0; k < count; ++k) {
      const double scale = factor[k];
      if (scale == 0) continue;
      visit(column[k], column[k < following ? k + count : k],
            [&](Index p, int) { v[indices_[p]] += scale * value(p); });
    }
  }

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

  bool valid(Index column) const override {
    return simd::all_below(indices_ + indptr_[column], indptr_[column + 1] - indptr_[column], rows());
  }

 private:
  double value(Index p) const { return static_cast<double>(data_[p]); }

  // Calls body(p, p % 4 counted from the start) for the entries p of a column.
  // Drawn columns lie apart, and most are over before the hardware has seen a
  // pattern: each asks for `next`, line by line, as it is read itself.
  template <class Body>
  void visit(Index column, Index next, const Body& body) const {
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
};

}  // namespace saddleback
