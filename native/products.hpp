/// \file
/// Products with a matrix and its transpose, sums of powers of its entries, and Gram matrices.
#pragma once

#include <atomic>
#include <new>

#include "matrix.hpp"
#include "threads.hpp"

namespace saddleback {

/// One vector of sums for each lane of a computation, initially zero.
class Accumulators {
 public:
  Accumulators(int lanes, Index rows)
      : lanes_(lanes), stride_((rows + 7) / 8 * 8), storage_(new Line[lanes * stride_ / 8]()) {}

  int lanes() const { return lanes_; }
  double* lane(int i) { return storage_.get()->entry + i * stride_; }

  /// Moves all sums over the rows into the first lane, in the order of the lanes.
  void fold(Range rows) {
    constexpr Index strip = 1024;  // the total stays in the first-level cache
    for (Index at = rows.begin; at < rows.end; at += strip)
      for (int i = 1; i < lanes_; ++i) simd::drain(lane(i) + at, lane(0) + at, std::min(strip, rows.end - at));
  }

 private:
  struct alignas(64) Line {
    double entry[8];
  };

  int lanes_;
  Index stride_;
  std::unique_ptr<Line[]> storage_;
};

/// The number of lanes for `work` multiply-adds: a lane must save more than it costs to add up its vector of sums.
inline int lanes_for(double work, Index rows) {
  return parts_for(work, std::max<double>(1 << 15, 4.0 * static_cast<double>(rows)));
}

/// Neighbouring columns that are checked together: a check of each batch takes a third of the time of its products.
inline constexpr Index kChecked = 16 * kBatch;

/// Calls body(lane, columns, count, at) for batches of a list of columns, or of all columns if it is null, which the
/// lanes share. Throws if a batch is invalid.
template <class Body>
void for_each_batch(Lease& lease, const Columns& matrix, const Index* list, Index size, int lanes, const Body& body) {
  std::atomic<bool> valid = true;
  lease.run(lanes, [&](int lane) {
    const Range own = part(size, lane, lanes);
    bool good = true;
    for (Index at = own.begin; at < own.end && good; at += kBatch) {
      const int count = static_cast<int>(std::min<Index>(kBatch, own.end - at));
      Index column[kBatch];
      for (int k = 0; k < count; ++k) column[k] = list ? list[at + k] : at + k;
      if (list) good = matrix.valid(column, count);
      else if ((at - own.begin) % kChecked == 0) good = matrix.valid(Range{at, std::min(at + kChecked, own.end)});
      if (good) body(lane, column, count, at);
      else valid = false;
    }
  });
  require_valid(valid);
}

/// Calls body(columns, count, at, sums) for the same batches, and leaves the total of the sums of all lanes in `rows`.
template <class Body>
void sum_over_columns(const Columns& matrix, const Index* list, Index size, double work, double* rows,
                      const Body& body) {
  const Index m = matrix.rows();
  Accumulators sums(lanes_for(work, m), m);
  Lease lease;
  for_each_batch(lease, matrix, list, size, sums.lanes(),
                 [&](int lane, const Index* column, int count, Index at) { body(column, count, at, sums.lane(lane)); });
  const int chunks = parts_for(static_cast<double>(m) * sums.lanes());
  lease.run(chunks, [&](int i) {
    const Range chunk = part(m, i, chunks);
    sums.fold(chunk);
    std::copy(sums.lane(0) + chunk.begin, sums.lane(0) + chunk.end, rows + chunk.begin);
  });
}

/// An estimate of the number of entries in some of the columns, from the average per column.
inline double entries_of(const Columns& matrix, Index size) {
  const double share = static_cast<double>(size) / static_cast<double>(std::max<Index>(1, matrix.count()));
  return static_cast<double>(matrix.stored()) * share;
}

/// out = A x. Columns in which x is 0, often nearly all, are not read.
inline void multiply(const Columns& matrix, const double* x, double* out) {
  std::vector<Index> used;
  std::vector<double> factor;
  for (Index j = 0; j < matrix.count(); ++j) {
    if (x[j] == 0) continue;
    used.push_back(j);
    factor.push_back(x[j]);
  }
  const double work = entries_of(matrix, length(used));
  const auto add = [&](const Index* column, int count, Index at, double* sums) {
    matrix.add(matrix.all(), column, count, &factor[at], sums);
  };
  sum_over_columns(matrix, used.data(), length(used), work, out, add);
}

/// out = A_S' y for a list S of columns, or for all columns if it is null.
inline void multiply_transposed(const Columns& matrix, const Index* list, Index size, const double* y, double* out) {
  Lease lease;
  const auto dots = [&](int, const Index* column, int count, Index at) {
    matrix.dots(matrix.all(), column, count, y, out + at);
  };
  for_each_batch(lease, matrix, list, size, parts_for(entries_of(matrix, size)), dots);
}

/// A'y for every y within a radius of it, with bounds on the rounding. The radius may be null.
template <class Take>
void multiply_transposed_rounded(const Columns& matrix, const double* y, const double* radius, bool precise,
                                 const Take& take) {
  Lease lease;
  const auto dots = [&](int, const Index* column, int count, Index at) {
    for (int k = 0; k < count; ++k) {
      RoundedSum sum;
      matrix.add_to(sum, column[k], y, radius, precise);
      take(at + k, sum.bounded(precise ? 0 : RoundedSum::kStretch));
    }
  };
  for_each_batch(lease, matrix, nullptr, matrix.count(), parts_for(4 * entries_of(matrix, matrix.count())), dots);
}

/// A x for every x within a radius of it, with bounds on the rounding. The radius may be null.
template <class Take>
void multiply_rounded(const Columns& matrix, const double* x, const double* radius, bool precise, const Take& take) {
  require_valid(matrix.all_valid());
  const Index rows = matrix.rows(), strip = matrix.sliceable() ? 1024 : std::max<Index>(rows, 1);
  const Index strips = (rows + strip - 1) / strip;
  const int parts = static_cast<int>(std::min<Index>(strips, parts_for(4 * static_cast<double>(matrix.stored()))));
  Lease().run(parts, [&](int i) {
    const Range own = part(strips, i, parts);
    for (Index s = own.begin; s < own.end; ++s) {
      const Range range{s * strip, std::min((s + 1) * strip, rows)};
      std::vector<double> storage(RoundedSums::kVectors * (range.end - range.begin), 0.0);
      const RoundedSums sums(storage);
      for (Index j = 0; j < matrix.count(); ++j) {
        const double reach = radius ? radius[j] : 0.0;
        if (x[j] != 0 || reach != 0) matrix.add_to(sums, range, j, x[j], reach, precise);
      }
      for (Index r = range.begin; r < range.end; ++r)
        take(r, sums.row(r - range.begin).bounded(precise ? 0 : static_cast<double>(matrix.count())));
    }
  });
}

/// Sums of squares over each column and each row, and out = A' y, in one reading.
inline void scan(const Columns& matrix, const double* y, double* columns, double* rows, double* out) {
  const auto work = 2 * static_cast<double>(matrix.stored());
  const auto add = [&](const Index* column, int count, Index at, double* sums) {
    matrix.scan(column, count, y, out + at, columns + at, sums);
  };
  sum_over_columns(matrix, nullptr, matrix.count(), work, rows, add);
}

/// Sums of |A|^power over each column and each row.
inline void sum_powers(const Columns& matrix, int power, double* columns, double* rows) {
  const auto work = static_cast<double>(matrix.stored());
  const auto add = [&](const Index* column, int count, Index, double* sums) {
    for (int k = 0; k < count; ++k) columns[column[k]] = matrix.add_powers(column[k], power, sums);
  };
  sum_over_columns(matrix, nullptr, matrix.count(), work, rows, add);
}

/// Adds the lower triangle of A diag(weight) A' to an m x m matrix stored by columns, for a sparse A whose row indices
/// increase. A column with k entries adds k(k+1)/2 products. Each part owns a range of columns of the result and reads
/// all of A for them.
template <class I, class T> void add_outer(const Sparse<I, T>& matrix, const double* weight, double* out) {
  const auto stored = static_cast<double>(matrix.stored());
  const double per_column = stored / static_cast<double>(std::max<Index>(1, matrix.count()));
  const int parts = parts_for(0.5 * stored * per_column);
  Lease().run(parts, [&](int i) {
    const Range own = part(matrix.rows(), i, parts);
    for (Index column = 0; column < matrix.count(); ++column) {
      const std::span<const I> row = matrix.indices(column);
      const T* value = matrix.values(column);
      for (Index at = std::lower_bound(row.begin(), row.end(), own.begin) - row.begin();
           at < length(row) && row[at] < own.end; ++at) {
        const double scaled = weight[column] * value[at];
        double* to = out + row[at] * matrix.rows();
        for (Index k = at; k < length(row); ++k) to[row[k]] += scaled * value[k];
      }
    }
  });
}

}  // namespace saddleback
