/// \file
/// Dense products and Cholesky factors, tile by tile on the pool.
///
/// Each tile is one call of the BLAS that scipy ships, on one thread. The tiles, and the order of the operations on
/// each of them, depend on the sizes alone, so that results have the same bits for any number of threads.
#pragma once

#include "threads.hpp"
#include "types.hpp"

namespace saddleback {

/// The routines of BLAS and LAPACK that are used, with the types of Fortran.
struct Blas {
  template <class T> using Gemm = void (*)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
  using Syrk = void (*)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);
  using Trsm = void (*)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*, int*);
  using Potrf = void (*)(char*, int*, double*, int*, int*);

  Gemm<double> dgemm = nullptr;
  Gemm<float> sgemm = nullptr;
  Syrk dsyrk = nullptr;
  Trsm dtrsm = nullptr;
  Potrf dpotrf = nullptr;

  template <class T> Gemm<T> gemm() const {
    if constexpr (std::is_same_v<T, float>) return sgemm;
    else return dgemm;
  }

  bool complete() const { return dgemm && sgemm && dsyrk && dtrsm && dpotrf; }

  static Blas& instance() {
    static Blas blas;
    return blas;
  }
};

/// A matrix stored by columns, or by rows if `by_rows` is set.
template <class T> struct Tiled {
  T* data = nullptr;
  Index stride = 0;
  bool by_rows = false;

  T* at(Index row, Index column) const { return by_rows ? data + row * stride + column : data + column * stride + row; }
};

/// C = alpha A' B + beta C, or alpha A B' + beta C if `crossed` is set, all stored by columns, with k products per
/// entry.
inline void multiply_add(bool crossed, Index m, Index n, Index k, double alpha, const double* a, Index a_stride,
                         const double* b, Index b_stride, double beta, double* c, Index c_stride) {
  char left = crossed ? 'N' : 'T', right = crossed ? 'T' : 'N';
  int sizes[] = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
  int strides[] = {static_cast<int>(a_stride), static_cast<int>(b_stride), static_cast<int>(c_stride)};
  Blas::instance().dgemm(&left, &right, &sizes[0], &sizes[1], &sizes[2], &alpha, const_cast<double*>(a), &strides[0],
                         const_cast<double*>(b), &strides[1], &beta, c, &strides[2]);
}

/// The same for B = A, in the lower triangle of C.
inline void multiply_self(bool crossed, Index n, Index k, double alpha, const double* a, Index a_stride, double beta,
                          double* c, Index c_stride) {
  char lower = 'L', how = crossed ? 'N' : 'T';
  int sizes[] = {static_cast<int>(n), static_cast<int>(k)};
  int strides[] = {static_cast<int>(a_stride), static_cast<int>(c_stride)};
  Blas::instance().dsyrk(&lower, &how, &sizes[0], &sizes[1], &alpha, const_cast<double*>(a), &strides[0], &beta, c,
                         &strides[1]);
}

// Rows and columns of a tile. Small ones keep more threads busy, large ones read each entry less often.
constexpr Index kFactorTile = 200, kGramTile = 256, kProductTile = 512;
constexpr Index kMostTiles = 200;  // per side, so that the pool can count them

inline int tile_count(Index size, Index tile) {
  return static_cast<int>(std::min(kMostTiles, (size + tile - 1) / tile));
}

/// Entry t of the lower triangle of a square of tiles, row by row.
inline std::pair<int, int> lower_tile(int t) {
  int row = static_cast<int>((std::sqrt(8.0 * t + 1.0) - 1.0) / 2.0);
  while (row * (row + 1) / 2 > t) --row;
  while ((row + 1) * (row + 2) / 2 <= t) ++row;
  return {row, t - row * (row + 1) / 2};
}

inline int lower_tiles(int count) { return count * (count + 1) / 2; }

/// Replaces the lower triangle of a positive definite matrix A = L L' by L. Returns 0, or the position, counted from 1,
/// of the first pivot that is not positive.
///
/// Right-looking: the panel of column k is finished, then subtracted from all tiles behind it.
inline Index cholesky(double* a, Index n, Index stride) {
  const Blas& blas = Blas::instance();
  const int count = tile_count(n, kFactorTile);
  Lease lease;
  for (int k = 0; k < count; ++k) {
    const Range own = part(n, k, count);
    double* pivot = a + own.begin * stride + own.begin;
    int size = static_cast<int>(own.end - own.begin), ld = static_cast<int>(stride), failed = 0;
    char lower = 'L';
    blas.dpotrf(&lower, &size, pivot, &ld, &failed);
    if (failed != 0) return own.begin + std::abs(failed);
    const auto panel = [&](int i) { return a + own.begin * stride + part(n, k + 1 + i, count).begin; };
    const auto height = [&](int i) {
      const Range rows = part(n, k + 1 + i, count);
      return rows.end - rows.begin;
    };
    const int left = count - k - 1;
    lease.run(left, [&](int i) {
      char side = 'R', triangle = 'L', transposed = 'T', diagonal = 'N';
      int rows = static_cast<int>(height(i)), columns = size, strides = ld;
      double one = 1.0;
      blas.dtrsm(&side, &triangle, &transposed, &diagonal, &rows, &columns, &one, pivot, &strides, panel(i), &strides);
    });
    lease.run(lower_tiles(left), [&](int t) {
      const auto [i, j] = lower_tile(t);
      double* tile = a + part(n, k + 1 + j, count).begin * stride + part(n, k + 1 + i, count).begin;
      if (i == j) multiply_self(true, height(i), size, -1.0, panel(i), stride, 1.0, tile, stride);
      else multiply_add(true, height(i), height(j), size, -1.0, panel(i), stride, panel(j), stride, 1.0, tile, stride);
    });
  }
  return 0;
}

/// Copies some rows and columns of P, each row times a factor, in the order in which P is stored.
template <class T>
void scale_rows(const Tiled<const T>& p, Range rows, Range columns, const double* factor, const Tiled<double>& to) {
  if (p.by_rows) {
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index j = columns.begin; j < columns.end; ++j) *to.at(i, j) = factor[i] * static_cast<double>(*p.at(i, j));
  } else {
    for (Index j = columns.begin; j < columns.end; ++j)
      for (Index i = rows.begin; i < rows.end; ++i) *to.at(i, j) = factor[i] * static_cast<double>(*p.at(i, j));
  }
}

/// Adds P' diag(weight) P to the lower triangle of an n x n matrix C stored by columns, for weights >= 0 and an m x n
/// matrix P.
///
/// A large C is divided into tiles. If C is small and P has many rows, the rows are divided instead, and the sums of
/// the parts are added in their order.
template <class T> void add_weighted_gram(const Tiled<const T>& p, Index m, Index n, const double* weight, double* c) {
  constexpr Index line = 8, page = 512;  // columns a page apart compete for the same places in the cache
  const Index inner = p.by_rows ? n : m, outer = p.by_rows ? m : n;
  const Index lines = (inner + line - 1) / line * line, stride = lines % page == 0 ? lines + line : lines;
  const std::unique_ptr<double[]> room(new double[static_cast<std::size_t>(stride * outer)]);
  const Tiled<double> scaled{room.get(), stride, p.by_rows};
  std::vector<double> root(weight, weight + m);
  for (double& each : root) each = std::sqrt(each);
  Lease lease;
  const int parts = parts_for(static_cast<double>(m), static_cast<double>(std::max<Index>(n, 128)));
  if (n <= 2 * kGramTile && parts > 2) {
    const Index size = n * n;
    const std::unique_ptr<double[]> sums(new double[static_cast<std::size_t>(parts * size)]());
    lease.run(parts, [&](int i) {
      const Range own = part(m, i, parts);
      scale_rows(p, own, {0, n}, root.data(), scaled);
      multiply_self(p.by_rows, n, own.end - own.begin, 1.0, scaled.at(own.begin, 0), stride, 0.0, &sums[i * size], n);
    });
    const int stretches = parts_for(static_cast<double>(parts * size));
    lease.run(stretches, [&](int t) {
      const Range own = part(size, t, stretches);
      for (int i = 0; i < parts; ++i)
        for (Index k = own.begin; k < own.end; ++k) c[k] += sums[i * size + k];
    });
    return;
  }
  const int copies = parts_for(static_cast<double>(m) * static_cast<double>(n)), count = tile_count(n, kGramTile);
  lease.run(copies, [&](int i) {
    if (p.by_rows) scale_rows(p, part(m, i, copies), {0, n}, root.data(), scaled);
    else scale_rows(p, {0, m}, part(n, i, copies), root.data(), scaled);
  });
  lease.run(lower_tiles(count), [&](int t) {
    const auto [i, j] = lower_tile(t);
    const Range rows = part(n, i, count), columns = part(n, j, count);
    double* tile = c + columns.begin * n + rows.begin;
    const double *left = scaled.at(0, rows.begin), *right = scaled.at(0, columns.begin);
    if (i == j) multiply_self(p.by_rows, rows.end - rows.begin, m, 1.0, left, stride, 1.0, tile, n);
    else
      multiply_add(p.by_rows, rows.end - rows.begin, columns.end - columns.begin, m, 1.0, left, stride, right, stride,
                   1.0, tile, n);
  });
}

/// C = A B for A of m x k, B of k x n and C of m x n, stored by rows without gaps. If C is symmetric, its lower tiles
/// are computed and copied to the upper ones. By columns this is C' = B' A'.
template <class T>
void multiply_tiles(Blas::Gemm<T> gemm, const Tiled<const T>& a, const Tiled<const T>& b, T* c, Index m, Index n,
                    Index k, bool symmetric) {
  const Index tile = symmetric ? kGramTile : kProductTile;
  const int down = tile_count(m, tile), across = tile_count(n, tile);
  Lease().run(symmetric ? lower_tiles(down) : down * across, [&](int t) {
    const auto [i, j] = symmetric ? lower_tile(t) : std::pair(t / across, t % across);
    const Range rows = part(m, i, down), columns = part(n, j, across);
    char left = b.by_rows ? 'N' : 'T', right = a.by_rows ? 'N' : 'T';
    int width = static_cast<int>(columns.end - columns.begin), height = static_cast<int>(rows.end - rows.begin);
    int inner = static_cast<int>(k), strides[] = {static_cast<int>(b.stride), static_cast<int>(a.stride)};
    int c_stride = static_cast<int>(n);
    T one = 1, zero = 0;
    gemm(&left, &right, &width, &height, &inner, &one, const_cast<T*>(b.at(0, columns.begin)), &strides[0],
         const_cast<T*>(a.at(rows.begin, 0)), &strides[1], &zero, c + rows.begin * n + columns.begin, &c_stride);
    if (!symmetric) return;
    for (Index row = rows.begin; row < rows.end; ++row)
      for (Index column = columns.begin; column < std::min(row, columns.end); ++column)
        c[column * n + row] = c[row * n + column];
  });
}

}  // namespace saddleback
