/// \file
/// Newton steps over some columns of a matrix, by conjugate gradients.
#pragma once

#include "simd.hpp"
#include "stack.hpp"
#include "threads.hpp"

namespace saddleback {

/// Some columns S of a matrix, and products with them.
class Selection {
 public:
  Selection(const Stack& matrix, const Index* column, Index count) : matrix_(matrix), column_(column), count_(count) {}

  Index rows() const { return matrix_.rows(); }
  Index count() const { return count_; }

  /// out = A_S'y.
  void products(Lease& lease, const double* y, double* out) const {
    const int parts = parts_for(static_cast<double>(rows()) * static_cast<double>(count_));
    lease.run(parts, [&](int i) {
      const Range own = part(count_, i, parts);
      matrix_.dots(matrix_.all(), column_ + own.begin, own.size(), y, out + own.begin);
    });
  }

  /// v += A_S d.
  void image(Lease& lease, const double* d, double* v) const {
    const int parts = row_parts(kLong);
    lease.run(parts, [&](int i) { matrix_.add(part(rows(), i, parts), column_, count_, d, v); });
  }

  /// out = A_S' diag(weight) A_S p, with vectors in `space`.
  void normal(Lease& lease, const double* weight, const double* p, std::vector<double>& space, double* out) const {
    const int parts = row_parts(kFused);
    const Index strip = this->strip(parts);
    space.resize(rows() + 2 * count_ * parts);
    double *image_of = space.data(), *partial = image_of + rows();
    if (strip == 0) {
      std::fill_n(image_of, rows(), 0.0);
      image(lease, p, image_of);
      for (Index k = 0; k < rows(); ++k) image_of[k] *= weight[k];
      products(lease, image_of, out);
      return;
    }
    lease.run(parts, [&](int i) {
      const Range range = part(rows(), i, parts);
      double *sum = partial + i * count_, *own = partial + (parts + i) * count_;
      std::fill(sum, sum + count_, 0.0);
      for (Index at = range.begin; at < range.end; at += strip) {
        const Range rows{at, std::min(at + strip, range.end)};
        std::fill(image_of + rows.begin, image_of + rows.end, 0.0);
        matrix_.add(rows, column_, count_, p, image_of);
        for (Index k = rows.begin; k < rows.end; ++k) image_of[k] *= weight[k];
        matrix_.dots(rows, column_, count_, image_of, own);
        for (Index k = 0; k < count_; ++k) sum[k] += own[k];
      }
    });
    std::fill(out, out + count_, 0.0);
    for (int i = 0; i < parts; ++i)
      for (Index k = 0; k < count_; ++k) out[k] += partial[i * count_ + k];
  }

 private:
  // Rows per part: enough for columns to be read in long pieces, or fewer if they are in cache.
  static constexpr double kLong = 1250, kFused = 400;

  int row_parts(double smallest) const {
    return matrix_.sliceable() ? parts_for(static_cast<double>(rows()), smallest) : 1;
  }

  /// The number of rows for which all columns stay in the second-level cache, so that both products need one reading of
  /// memory. 0 if that number is too small for reading memory in long pieces. If the rows of a part stay in the
  /// third-level cache, it is all of them: longer pieces then save more than a nearer cache.
  Index strip(int parts) const {
    constexpr Index second_level = 1 << 17, third_level = 1 << 19, fewest = 128;
    const Index count = std::max<Index>(1, count_), own = (rows() + parts - 1) / parts;
    const Index rows = std::max(second_level / count, own <= third_level / count ? own : 0);
    return matrix_.sliceable() && rows >= fewest ? rows : 0;
  }

  const Stack& matrix_;
  const Index* column_;
  Index count_;
};

/// (A_S' diag(weight) A_S + diag(extra) - sum_g e_g e_g') d = right, where e_g holds the entries of `along` in group g.
struct NewtonSystem {
  const double *weight, *extra, *along;
  const Index* group;
  const double *right, *diagonal;  ///< the diagonal is the preconditioner
};

/// Solves by conjugate gradients to a relative residual in the metric of the diagonal; returns the number of steps.
inline Index conjugate_gradients(const Selection& columns, const NewtonSystem& system, double tolerance, Index most,
                                 double* d) {
  const Index n = columns.count();
  Lease lease;
  std::vector<double> residual(system.right, system.right + n), scaled(n), direction(n), image(n), of_group(n), space;
  const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
    return simd::dot(a.data(), b.data(), n);
  };
  const auto precondition = [&] {
    for (Index k = 0; k < n; ++k) scaled[k] = residual[k] / system.diagonal[k];
  };
  std::fill(d, d + n, 0.0);
  precondition();
  direction = scaled;
  double size = dot(residual, scaled);
  const double enough = tolerance * tolerance * size;
  for (Index step = 0; step < most; ++step) {
    if (size <= enough) return step;
    columns.normal(lease, system.weight, direction.data(), space, image.data());
    std::fill(of_group.begin(), of_group.end(), 0.0);
    for (Index k = 0; k < n; ++k) of_group[system.group[k]] += system.along[k] * direction[k];
    for (Index k = 0; k < n; ++k)
      image[k] += system.extra[k] * direction[k] - system.along[k] * of_group[system.group[k]];
    const double curvature = dot(direction, image);
    double largest = 0;
    for (Index k = 0; k < n; ++k) largest += system.diagonal[k] * direction[k] * direction[k];
    if (!(curvature > 1e-14 * largest)) return step + 1;  // flat: d is already a descent direction
    const double length = size / curvature;
    for (Index k = 0; k < n; ++k) {
      d[k] += length * direction[k];
      residual[k] -= length * image[k];
    }
    precondition();
    const double before = size;
    size = dot(residual, scaled);
    for (Index k = 0; k < n; ++k) direction[k] = scaled[k] + size / before * direction[k];
  }
  return most;
}

}  // namespace saddleback
