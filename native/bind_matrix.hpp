/// \file
/// The Python class Matrix, and functions of arrays.
#pragma once

#include "above.hpp"
#include "bind_arrays.hpp"
#include "digest.hpp"
#include "matrix.hpp"
#include "products.hpp"

namespace saddleback {

/// A dense or sparse matrix in arrays of Python, which it keeps alive.
///
/// The constructor checks types, sizes and layout. The arrays may change later, so that each product checks the columns
/// that it reads.
class Matrix {
 public:
  /// A dense matrix, read along an axis that is contiguous.
  explicit Matrix(nb::object array) : objects_(nb::make_tuple(array)), arrays_{taken(array)} {
    const Anything& entries = arrays_[0];
    require(entries.ndim() == 2, "a matrix must have two dimensions");
    by_rows_ = !contiguous_along(entries, 0);
    require(!by_rows_ || contiguous_along(entries, 1), "a matrix must have contiguous columns or contiguous rows");
    const int along = by_rows_ ? 1 : 0, across = 1 - along;
    view_ = with_type(entries, [&]<class T>(T) -> std::unique_ptr<Columns> {
      return std::make_unique<Dense<T>>(data<T>(entries), entries.shape(along), entries.shape(across),
                                        entries.stride(across));
    });
  }

  /// A matrix in compressed sparse columns.
  Matrix(nb::object indptr, nb::object indices, nb::object values, Index rows)
      : objects_(nb::make_tuple(indptr, indices, values)), arrays_{taken(indptr), taken(indices), taken(values)} {
    for (const Anything& array : arrays_)
      require(array.ndim() == 1 && contiguous_along(array, 0), "indptr, indices and data must be contiguous vectors");
    require(rows >= 0 && arrays_[0].size() >= 1 && arrays_[1].size() == arrays_[2].size(),
            "indptr must not be empty, indices must be as long as data, and rows must not be negative");
    view_ = with_index_type(arrays_[0], arrays_[1], [&]<class I>(I) {
      return with_type(arrays_[2], [&]<class T>(T) -> std::unique_ptr<Columns> {
        return std::make_unique<Sparse<I, T>>(data<I>(arrays_[0]), data<I>(arrays_[1]), data<T>(arrays_[2]),
                                              length(arrays_[2]), rows, length(arrays_[0]) - 1);
      });
    });
  }

  /// Matrices one above the other, each from the given row on; all with the same columns.
  Matrix(const std::vector<std::shared_ptr<const Matrix>>& parts, const std::vector<Index>& first, Index rows)
      : objects_(nb::make_tuple(nb::cast(parts), nb::cast(first), rows)) {
    require(!parts.empty() && parts.size() == first.size(), "there must be matrices, each with its first row");
    std::vector<Above::Part> views;
    for (std::size_t i = 0; i < parts.size(); ++i) views.push_back({columns_of(parts[i]), first[i]});
    const Index count = views[0].matrix->count();
    view_ = std::make_unique<Above>(rows, count, std::move(views));
  }

  /// The arrays of the matrix as the constructor takes them.
  const nb::tuple& arrays() const { return objects_; }

  nb::tuple reduced() const {
    const auto type = nb::type<Matrix>();
    if (!sparse()) return nb::make_tuple(type, objects_);  // also for matrices one above the other
    return nb::make_tuple(type, nb::make_tuple(objects_[0], objects_[1], objects_[2], view_->rows()));
  }

  /// The columns of an entry of a list, in which Python may write None.
  static std::shared_ptr<const Columns> columns_of(const std::shared_ptr<const Matrix>& matrix) {
    require(matrix != nullptr, "a list of matrices has None in it");
    return {matrix, &matrix->columns()};
  }

  const Columns& columns() const {
    require(!by_rows_, "a dense matrix must have contiguous columns");
    return *view_;
  }

  NewArray<> matvec(const Input& x) const { return multiplied(x, by_rows_); }
  NewArray<> rmatvec(const Input& y) const { return multiplied(y, !by_rows_); }

  using Bounded = std::tuple<NewArray<>, NewArray<>, NewArray<>, NewArray<>>;

  Bounded matvec_rounded(const Input& x, const std::optional<Input>& radius, bool precise) const {
    return rounded(x, radius, precise, by_rows_);
  }
  Bounded rmatvec_rounded(const Input& y, const std::optional<Input>& radius, bool precise) const {
    return rounded(y, radius, precise, !by_rows_);
  }

  NewArray<> columns_rmatvec(const Indices& listed, const Input& y) const {
    require_length(columns().rows(), kMisfit, y);
    require_columns(listed, columns().count());
    NewArray<> result = zeros(length(listed));
    nb::gil_scoped_release released;
    multiply_transposed(columns(), listed.data(), length(listed), y.data(), result.data());
    return result;
  }

  std::pair<NewArray<>, NewArray<>> sums(int power) const {
    require(0 <= power && power <= 2, "power must be 0, 1 or 2");
    std::pair result{zeros(view_->count()), zeros(view_->rows())};
    {
      nb::gil_scoped_release released;
      sum_powers(*view_, power, result.first.data(), result.second.data());
    }
    if (by_rows_) std::swap(result.first, result.second);
    return result;
  }

  std::tuple<NewArray<>, NewArray<>, NewArray<>> scan(const Input& y) const {
    const Index m = columns().rows(), n = columns().count();
    require_length(m, kMisfit, y);
    std::tuple result{zeros(n), zeros(m), zeros(n)};
    auto& [of_columns, of_rows, products] = result;
    double *down = of_columns.data(), *across = of_rows.data(), *dots = products.data();
    nb::gil_scoped_release released;
    saddleback::scan(columns(), y.data(), down, across, dots);
    return result;
  }

  /// Some columns in separate memory.
  Matrix selected(const Indices& listed, bool single) const {
    require_columns(listed, columns().count());
    require(!arrays_.empty(), "matrices one above the other are copied one by one");
    return with_type(arrays_.back(), [&]<class From>(From) {
      const auto packed = [&]<class To>(To) {
        if (!sparse()) return gather_dense<From, To>(listed);
        return with_index_type(arrays_[0], arrays_[1], [&]<class I>(I) { return gather_sparse<I, From, To>(listed); });
      };
      return single ? packed(float{}) : packed(From{});
    });
  }

  std::pair<bool, bool> check() const {
    nb::gil_scoped_release released;
    const bool valid = view_->all_valid();
    return {valid, valid && view_->canonical()};
  }

 private:
  static constexpr auto kMisfit = "the vector does not fit the matrix";

  static Anything taken(nb::handle object) {
    Anything array;
    if (!nb::try_cast<Anything>(object, array, false)) throw nb::type_error("a matrix must consist of arrays");
    return array;
  }

  bool sparse() const { return arrays_.size() > 1; }

  NewArray<> multiplied(const Input& vector, bool transposed) const {
    require_length(transposed ? view_->rows() : view_->count(), kMisfit, vector);
    NewArray<> result = zeros(transposed ? view_->count() : view_->rows());
    nb::gil_scoped_release released;
    if (transposed) multiply_transposed(*view_, nullptr, view_->count(), vector.data(), result.data());
    else multiply(*view_, vector.data(), result.data());
    return result;
  }

  Bounded rounded(const Input& vector, const std::optional<Input>& radius, bool precise, bool transposed) const {
    const Index size = transposed ? view_->rows() : view_->count();
    require_length(size, kMisfit, vector);
    if (radius) require_length(size, kMisfit, *radius);
    const Index count = transposed ? view_->count() : view_->rows();
    Bounded result{empty_array<double>(count), empty_array<double>(count), empty_array<double>(count),
                   empty_array<double>(count)};
    auto& [high, low, error, terms] = result;
    double *to_high = high.data(), *to_low = low.data(), *to_error = error.data(), *to_size = terms.data();
    const auto take = [&](Index i, const RoundedNumber& sum) {
      to_high[i] = sum.hi, to_low[i] = sum.lo, to_error[i] = sum.error, to_size[i] = sum.size;
    };
    const double* reach = radius ? radius->data() : nullptr;
    nb::gil_scoped_release released;
    if (transposed) multiply_transposed_rounded(*view_, vector.data(), reach, precise, take);
    else multiply_rounded(*view_, vector.data(), reach, precise, take);
    return result;
  }

  template <class From, class To> Matrix gather_dense(const Indices& listed) const {
    // Columns that are a multiple of a page apart compete for the same few places in the cache.
    constexpr Index line = 64 / sizeof(To), page = 4096 / sizeof(To);
    const Index rows = view_->rows(), count = length(listed);
    Index stride = (rows + line - 1) / line * line;
    if (stride % page == 0) stride += line;
    nb::capsule owner;
    To* entries = allocate<To>(stride * count, owner);
    {
      nb::gil_scoped_release released;
      const int parts = parts_for(static_cast<double>(rows) * static_cast<double>(count));
      Lease().run(parts, [&](int i) {
        const Range own = part(count, i, parts);
        for (Index k = own.begin; k < own.end; ++k) {
          const From* from = data<From>(arrays_[0]) + listed.data()[k] * arrays_[0].stride(1);
          std::transform(from, from + rows, entries + k * stride, [](From entry) { return static_cast<To>(entry); });
        }
      });
    }
    const std::size_t shape[] = {static_cast<std::size_t>(rows), static_cast<std::size_t>(count)};
    const std::int64_t strides[] = {1, stride};
    return Matrix(nb::cast(nb::ndarray<nb::numpy, To, nb::ndim<2>>(entries, 2, shape, owner, strides)));
  }

  template <class I, class From, class To> Matrix gather_sparse(const Indices& listed) const {
    const I *start = data<I>(arrays_[0]), *row = data<I>(arrays_[1]);
    const From* value = data<From>(arrays_[2]);
    const Index count = length(listed);
    auto indptr = empty_array<I>(count + 1);
    I* to = indptr.data();
    Index total = to[0] = 0;
    for (Index k = 0; k < count; ++k) {
      const Index first = start[listed.data()[k]], stop = start[listed.data()[k] + 1];
      require(0 <= first && first <= stop && stop <= view_->stored(), "a listed column lies outside indices and data");
      total += stop - first;
      require(total <= std::numeric_limits<I>::max(), "the listed columns have more entries than indptr can count");
      to[k + 1] = static_cast<I>(total);
    }
    auto indices = empty_array<I>(total);
    auto values = empty_array<To>(total);
    {
      nb::gil_scoped_release released;
      for (Index k = 0; k < count; ++k) {
        const Index from = start[listed.data()[k]], size = to[k + 1] - to[k];
        std::copy_n(row + from, size, indices.data() + to[k]);
        std::transform(value + from, value + from + size, values.data() + to[k],
                       [](From entry) { return static_cast<To>(entry); });
      }
    }
    return Matrix(nb::cast(indptr), nb::cast(indices), nb::cast(values), view_->rows());
  }

  nb::tuple objects_;
  std::vector<Anything> arrays_;
  std::unique_ptr<Columns> view_;
  bool by_rows_ = false;
};

/// The lower triangle of A' diag(weight) A, n x n, one column after the other, for A in compressed sparse rows.
inline NewArray<> csr_gram(const Indices& indptr, const Indices& indices, const Input& values, Index columns,
                           const Input& weight) {
  const Index rows = length(weight);
  require(length(indptr) == rows + 1 && indices.size() == values.size(),
          "indptr must be longer by one than weight, and indices as long as data");
  require(0 <= columns && columns < (Index{1} << 31), "columns must lie between 0 and 2**31, so that columns**2 fits");
  const Sparse<Index, double> transposed(indptr.data(), indices.data(), values.data(), length(values), columns, rows);
  require(indptr.data()[0] == 0 && indptr.data()[rows] == length(values) && transposed.all_valid() &&
              transposed.canonical(),
          "indptr must rise from 0 to the number of entries, and the columns of a row increase inside the matrix");
  NewArray<> result = zeros(columns * columns);
  nb::gil_scoped_release released;
  add_outer(transposed, weight.data(), result.data());
  return result;
}

inline void bind_matrix(nb::module_& m) {
  nb::class_<Matrix>(m, "Matrix",
                     "A matrix in float32 or float64: an array with contiguous columns or rows, compressed sparse "
                     "columns, or matrices one above the other.\n\nThe arrays are neither copied nor converted. "
                     "Results are in double precision, and have "
                     "the same bits for any number of threads.")
      .def(nb::init<nb::object>(), "array"_a)
      .def(nb::init<nb::object, nb::object, nb::object, Index>(), "indptr"_a, "indices"_a, "data"_a, "rows"_a)
      .def(nb::init<const std::vector<std::shared_ptr<const Matrix>>&, const std::vector<Index>&, Index>(), "parts"_a,
           "first"_a, "rows"_a)
      .def_prop_ro("arrays", &Matrix::arrays,
                   nb::sig("def arrays(self) -> tuple[numpy.typing.NDArray[typing.Any], ...]"),
                   "The array, or indptr, indices and data.")
      .def("__reduce__", &Matrix::reduced, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("matvec", &Matrix::matvec, "x"_raw, "Return A @ x.")
      .def("rmatvec", &Matrix::rmatvec, "y"_raw, "Return A.T @ y.")
      .def("matvec_rounded", &Matrix::matvec_rounded, "x"_raw, "radius"_a.none(), "precise"_a,
           "Return A @ x as a sum of two vectors, a bound on its error for every x within a radius, and abs(A) @ "
           "abs(x); "
           "if ``precise`` is set, with twice the digits of a double.")
      .def("rmatvec_rounded", &Matrix::rmatvec_rounded, "y"_raw, "radius"_a.none(), "precise"_a,
           "Return the same for A.T @ y.")
      .def("columns_rmatvec", &Matrix::columns_rmatvec, "columns"_raw, "y"_raw,
           "Return A[:, columns].T @ y. The columns of A must be contiguous.")
      .def("sums", &Matrix::sums, "power"_a,
           "Return the column sums and the row sums of |A| ** power, for the powers 0 (a count), 1 and 2.")
      .def("scan", &Matrix::scan, "y"_raw,
           "Return the column sums and the row sums of A ** 2, and A.T @ y, in one reading of contiguous columns.")
      .def("columns", &Matrix::selected, "columns"_raw, "single"_a,
           "Return A[:, columns] in separate memory, in float32 if ``single`` is set.")
      .def("check", &Matrix::check,
           "Return whether every index lies inside the matrix, and whether the rows of each column increase.");

  m.def("csr_gram", &csr_gram, "indptr"_raw, "indices"_raw, "data"_raw, "columns"_a, "weight"_raw,
        "Return A.T @ diag(weight) @ A, its lower triangle by columns, for A in compressed sparse rows.");
  m.def(
      "digest",
      [](const Anything& array) {
        require(array.ndim() == 1 && contiguous_along(array, 0), "an array must be a contiguous vector");
        nb::gil_scoped_release released;
        return digest(data<unsigned char>(array), static_cast<Index>(array.nbytes()));
      },
      "array"_raw, "Return a number that differs, almost certainly, if any bit of the vector differs.");
}

}  // namespace saddleback
