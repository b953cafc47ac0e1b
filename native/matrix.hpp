/// \file
/// Matrices as collections of columns: views on the caller's memory, read in
/// their stored precision and computed with in double precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "simd.hpp"

namespace saddleback {

using Index = std::int64_t;

/// Columns handed to a matrix at once: few enough that those of a dense matrix
/// stay in cache between the product with y and the update of v.
inline constexpr int kBatch = 4;

/// What the iteration and the products ask of a matrix.
class Columns {
 public:
  Columns(Index rows, Index count) : rows_(rows), count_(count) {}
  virtual ~Columns() = default;

  Index rows() const { return rows_; }
  Index count() const { return count_; }
  virtual Index stored() const = 0;

  /// out[k] = column[k] . y, for at most kBatch columns.
  virtual void dots(const Index* column, int count, const double* y, double* out) const = 0;

  /// v += sum of factor[k] * column[k], for at most kBatch columns.
  virtual void add(const Index* column, int count, const double* factor, double* v) const = 0;

  /// Adds |column|^power to v and returns its sum; power is 1 or 2.
  virtual double add_powers(Index column, int power, double* v) const = 0;

  /// Whether every row index of the column lies inside the matrix.
  virtual bool valid(Index) const { return true; }

  /// Asks for a column that is to be read soon.
  virtual void prefetch(Index) const {}

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

  void dots(const Index* column, int count, const double* y, double* out) const override {
    const T* start[kBatch];
    for (int k = 0; k < count; ++k) start[k] = at(column[k]);
    if (count == 4) return simd::dot4(start, y, rows(), out);
    for (int k = 0; k < count; ++k) out[k] = simd::dot(start[k], y, rows());
  }

  void add(const Index* column, int count, const double* factor, double* v) const override {
    const T* start[kBatch];
    double nonzero[kBatch];
    int used = 0;
    for (int k = 0; k < count; ++k) {
      if (factor[k] == 0) continue;
      start[used] = at(column[k]);
      nonzero[used++] = factor[k];
    }
    if (used == 4) return simd::axpy4(start, nonzero, v, rows());
    for (int k = 0; k < used; ++k) simd::axpy(start[k], nonzero[k], v, rows());
  }

  double add_powers(Index column, int power, double* v) const override {
    return power == 1 ? simd::add_powers<1>(at(column), v, rows())
                      : simd::add_powers<2>(at(column), v, rows());
  }

 private:
  static_assert(kBatch == 4);

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

  void dots(const Index* column, int count, const double* y, double* out) const override {
    for (int k = 0; k < count; ++k) out[k] = dot(column[k], y);
  }

  void add(const Index* column, int count, const double* factor, double* v) const override {
    for (int k = 0; k < count; ++k) {
      const double scale = factor[k];
      if (scale == 0) continue;
      for (Index p = indptr_[column[k]], end = indptr_[column[k] + 1]; p < end; ++p)
        v[indices_[p]] += scale * static_cast<double>(data_[p]);
    }
  }

  double add_powers(Index column, int power, double* v) const override {
    double sum = 0;
    for (Index p = indptr_[column], end = indptr_[column + 1]; p < end; ++p) {
      const double entry = std::fabs(static_cast<double>(data_[p]));
      const double term = power == 1 ? entry : entry * entry;
      sum += term;
      v[indices_[p]] += term;
    }
    return sum;
  }

  bool valid(Index column) const override {
    return simd::all_below(indices_ + indptr_[column], indptr_[column + 1] - indptr_[column], rows());
  }

  // Short columns in random order end before the hardware has seen a pattern.
  void prefetch(Index column) const override {
    constexpr Index most = 512, line = 64;
    const Index begin = indptr_[column], end = std::min<Index>(begin + most, indptr_[column + 1]);
    for (Index p = begin; p < end; p += line / sizeof(I)) simd::prefetch(indices_ + p);
    for (Index p = begin; p < end; p += line / sizeof(T)) simd::prefetch(data_ + p);
  }

 private:
  // Four partial sums: one alone would wait for each addition in turn.
  double dot(Index column, const double* y) const {
    Index p = indptr_[column];
    const Index end = indptr_[column + 1];
    double a = 0, b = 0, c = 0, d = 0;
    for (; end - p >= 4; p += 4) {
      a += static_cast<double>(data_[p]) * y[indices_[p]];
      b += static_cast<double>(data_[p + 1]) * y[indices_[p + 1]];
      c += static_cast<double>(data_[p + 2]) * y[indices_[p + 2]];
      d += static_cast<double>(data_[p + 3]) * y[indices_[p + 3]];
    }
    for (; p < end; ++p) a += static_cast<double>(data_[p]) * y[indices_[p]];
    return (a + b) + (c + d);
  }

  const I* indptr_;
  const I* indices_;
  const T* data_;
};

}  // namespace saddleback
