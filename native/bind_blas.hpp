/// \file
/// Dense products and Cholesky factors for Python.
#pragma once

#include <string>

#include "bind_arrays.hpp"
#include "tiled_blas.hpp"

namespace saddleback {

/// A routine of scipy whose signature is as expected. The signature names the types of numbers by the last letters of
/// longer names.
template <class Function> Function routine(const nb::dict& routines, const char* name, const char* expected) {
  const auto capsule = nb::cast<nb::capsule>(routines[name]);
  std::string signature = capsule.name();
  for (std::size_t at; (at = signature.find("__pyx_t_")) != std::string::npos;) {
    const std::size_t end = signature.find(" *", at);
    require(end != std::string::npos, "a routine has another signature");
    signature.erase(at, end - 1 - at);
  }
  require(signature == expected, "a routine has another signature");
  return reinterpret_cast<Function>(capsule.data());
}

inline void use_blas(const nb::dict& routines) {
  Blas blas;
  blas.dgemm = routine<Blas::Gemm<double>>(
      routines, "dgemm", "void (char *, char *, int *, int *, int *, d *, d *, int *, d *, int *, d *, d *, int *)");
  blas.sgemm = routine<Blas::Gemm<float>>(
      routines, "sgemm", "void (char *, char *, int *, int *, int *, s *, s *, int *, s *, int *, s *, s *, int *)");
  blas.dsyrk =
      routine<Blas::Syrk>(routines, "dsyrk", "void (char *, char *, int *, int *, d *, d *, int *, d *, d *, int *)");
  blas.dtrsm = routine<Blas::Trsm>(routines, "dtrsm",
                                   "void (char *, char *, char *, char *, int *, int *, d *, d *, int *, d *, int *)");
  blas.dpotrf = routine<Blas::Potrf>(routines, "dpotrf", "void (char *, int *, d *, int *, int *)");
  Blas::instance() = blas;
}

template <class T> using Square = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

inline void require_blas() { require(Blas::instance().complete(), "use_blas has not been called"); }

/// A matrix as the BLAS takes it: with sizes that are ints, and contiguous along one axis.
template <class T> Tiled<const T> tiled(const Anything& matrix) {
  require(matrix.ndim() == 2 && holds<T>(matrix), "the matrices must be two-dimensional and of one type");
  const bool by_rows = !contiguous_along(matrix, 0);
  require(!by_rows || contiguous_along(matrix, 1), "a matrix must have contiguous columns or contiguous rows");
  const auto inner = static_cast<Index>(matrix.shape(by_rows ? 1 : 0));
  const Index stride = matrix.shape(by_rows ? 0 : 1) > 1 ? matrix.stride(by_rows ? 0 : 1) : inner;
  require(stride >= std::max<Index>(1, inner), "a matrix must be stored forwards");
  for (const Index size : {static_cast<Index>(matrix.shape(0)), static_cast<Index>(matrix.shape(1)), stride})
    require(size <= std::numeric_limits<int>::max(), "a matrix is too large for the BLAS");
  return {data<T>(matrix), stride, by_rows};
}

inline Index factor(const Square<double>& matrix) {
  require_blas();
  const auto n = static_cast<Index>(matrix.shape(0));
  require(static_cast<Index>(matrix.shape(1)) == n && (n <= 1 || (matrix.stride(0) == 1 && matrix.stride(1) == n)),
          "the matrix must be square, with contiguous columns");
  require(n <= std::numeric_limits<int>::max(), "the matrix is too large for the BLAS");
  nb::gil_scoped_release released;
  return cholesky(matrix.data(), n, std::max<Index>(1, n));
}

inline void add_panel(const Anything& panel, const Input& weight, const Square<double>& out) {
  require_blas();
  require(panel.ndim() == 2, "a matrix must have two dimensions");
  const auto m = static_cast<Index>(panel.shape(0)), n = static_cast<Index>(panel.shape(1));
  require(length(weight) == m, "there must be a weight for every row");
  require(static_cast<Index>(out.shape(0)) == n && static_cast<Index>(out.shape(1)) == n &&
              (n <= 1 || (out.stride(0) == 1 && out.stride(1) == n)),
          "the result must be square, with contiguous columns");
  if (m == 0 || n == 0) return;
  const auto add = [&]<class T>(const Tiled<const T>& p) {
    nb::gil_scoped_release released;
    add_weighted_gram(p, m, n, weight.data(), out.data());
  };
  if (holds<float>(panel)) add(tiled<float>(panel));
  else add(tiled<double>(panel));
}

template <class T> void product(const Anything& a, const Anything& b, const Square<T>& out, bool symmetric) {
  require_blas();
  require(a.size() > 0 && b.size() > 0, "the matrices must not be empty");
  const Tiled<const T> left = tiled<T>(a), right = tiled<T>(b);
  const auto m = static_cast<Index>(a.shape(0)), k = static_cast<Index>(a.shape(1)), n = static_cast<Index>(b.shape(1));
  require(static_cast<Index>(b.shape(0)) == k && static_cast<Index>(out.shape(0)) == m &&
              static_cast<Index>(out.shape(1)) == n && (m <= 1 || out.stride(0) == n) && (n <= 1 || out.stride(1) == 1),
          "the matrices do not fit, or the result has no contiguous rows");
  require(!symmetric || m == n, "a symmetric matrix must be square");
  nb::gil_scoped_release released;
  multiply_tiles(Blas::instance().gemm<T>(), left, right, out.data(), m, n, k, symmetric);
}

template <class T> void bind_product(nb::module_& m) {
  m.def("product", &product<T>, "A"_raw, "B"_raw, "out"_raw, "symmetric"_a = false,
        "Write A @ B, which may be known to be symmetric, to a matrix with contiguous rows. All have the same type.");
}

inline void bind_blas(nb::module_& m) {
  m.def("use_blas", &use_blas, "routines"_a,
        "Take the routines of BLAS and LAPACK, by name, from what scipy offers to compiled code.");
  m.def("cholesky", &factor, "matrix"_raw,
        "Replace the lower triangle by its Cholesky factor; return 0, or the first pivot that is not positive.");
  m.def("add_gram", &add_panel, "panel"_raw, "weight"_raw, "out"_raw,
        "Add panel.T @ diag(weight) @ panel to the lower triangle of a matrix with contiguous columns.");
  bind_product<double>(m);
  bind_product<float>(m);
}

}  // namespace saddleback
