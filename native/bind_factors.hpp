/// \file
/// Factors of band matrices and of sparse matrices for Python.
#pragma once

#include "band.hpp"
#include "bind_arrays.hpp"
#include "bind_blas.hpp"
#include "matrix.hpp"
#include "sparse_cholesky.hpp"

namespace saddleback {

/// Checks a matrix in compressed rows whose columns increase, and that there is a weight for every row.
inline void require_rows(const Indices& indptr, const Indices& indices, const Input& values, const Input& weight,
                         Index columns) {
  const Index rows = length(weight);
  require(length(indptr) == rows + 1 && indices.size() == values.size(),
          "indptr must be longer by one than weight, and indices as long as data");
  const Sparse<Index, double> transposed(indptr.data(), indices.data(), values.data(), length(values), columns, rows);
  require(indptr.data()[0] == 0 && indptr.data()[rows] == length(values) && transposed.all_valid() &&
              transposed.canonical(),
          "indptr must rise from 0 to the number of entries, and the columns of a row increase inside the matrix");
}

constexpr auto kNoBand =
    "the width of the band must be one of BAND_WIDTHS, and the band have width + 1 entries per "
    "column and room for width more columns";

inline void require_band(Index size, Index width, Index columns) {
  const bool known = std::find(kBandWidths.begin(), kBandWidths.end(), width) != kBandWidths.end();
  require(known && size == (columns + width) * (width + 1), kNoBand);
}

inline NewArray<> band_gram(const Indices& indptr, const Indices& indices, const Input& values, const Input& weight,
                            const Input& diagonal, Index width) {
  const Index columns = length(diagonal), rows = length(weight);
  require_rows(indptr, indices, values, weight, columns);
  require_band((columns + width) * (width + 1), width, columns);
  for (Index i = 0; i < rows; ++i) {
    const Index begin = indptr.data()[i], end = indptr.data()[i + 1];
    require(begin == end || indices.data()[end - 1] - indices.data()[begin] <= width, "a row is wider than the band");
  }
  NewArray<> band = zeros((columns + width) * (width + 1));
  nb::gil_scoped_release released;
  for (Index j = 0; j < columns; ++j) band.data()[j * (width + 1)] = diagonal.data()[j];
  add_band_gram(indptr.data(), indices.data(), values.data(), rows, weight.data(), width, band.data());
  return band;
}

inline bool band_factor(const Output& band, Index width, Index columns) {
  require_band(length(band), width, columns);
  bool positive = false;
  nb::gil_scoped_release released;
  with_band_width(width, [&](auto w) { positive = factor_band<w()>(band.data(), columns); });
  return positive;
}

inline NewArray<> band_solve(const Input& band, Index width, const Input& right) {
  const Index columns = length(right);
  require_band(length(band), width, columns);
  NewArray<> result = empty_array<double>(columns);
  nb::gil_scoped_release released;
  std::copy_n(right.data(), columns, result.data());
  with_band_width(width, [&](auto w) { solve_band<w()>(band.data(), columns, result.data()); });
  return result;
}

/// The Cholesky factor of a sparse matrix, for Python.
class SparseFactor {
 public:
  explicit SparseFactor(SparseCholesky factor) : factor_(std::move(factor)) {}

  NewArray<> solve(const Input& right) const {
    require_length(factor_.size(), "the vector does not fit the matrix", right);
    NewArray<> result = empty_array<double>(length(right));
    nb::gil_scoped_release released;
    std::copy_n(right.data(), right.size(), result.data());
    factor_.solve(result.data());
    return result;
  }

 private:
  SparseCholesky factor_;
};

/// The pattern of a sparse symmetric matrix and of its Cholesky factor.
class SparsePattern {
 public:
  SparsePattern(const Indices& indptr, const Indices& indices) : start_(copied(indptr)), row_(copied(indices)) {
    require(!start_.empty() && start_.front() == 0 && start_.back() == length(row_),
            "indptr must rise from 0 to the number of indices");
    const Index n = length(start_) - 1;
    for (Index j = 0; j < n; ++j) {
      require(start_[j] < start_[j + 1] && start_[j + 1] <= length(row_) && row_[start_[j]] == j,
              "each column must begin on the diagonal");
      for (Index k = start_[j] + 1; k < start_[j + 1]; ++k)
        require(row_[k - 1] < row_[k] && row_[k] < n, "the rows of a column must increase inside the matrix");
    }
  }

  NewArray<Index> postorder() const {
    const std::vector<Index> order = saddleback::postorder(elimination_tree(pattern().n, LowerRows(pattern())));
    NewArray<Index> result = empty_array<Index>(length(order));
    std::copy(order.begin(), order.end(), result.data());
    return result;
  }

  bool analyse(Index most) {
    nb::gil_scoped_release released;
    const LowerRows rows(pattern());
    const std::vector<Index> parent = elimination_tree(pattern().n, rows);
    const std::vector<Index> counts = column_counts(pattern().n, rows, parent, most);
    if (counts.empty() && pattern().n > 0) return false;
    nodes_ = std::make_shared<const Supernodes>(pattern(), parent, counts);
    return true;
  }

  Index entries() const { return nodes().entries(); }
  double multiplications() const { return nodes().multiplications(); }

  NewArray<> gram(const Indices& indptr, const Indices& indices, const Input& values, const Input& weight,
                  const Input& diagonal) const {
    const LowerPattern own = pattern();
    require_length(own.n, "there must be an entry of the diagonal for every column", diagonal);
    require_rows(indptr, indices, values, weight, own.n);
    NewArray<> result = zeros(length(row_));
    bool inside = false;
    {
      nb::gil_scoped_release released;
      for (Index j = 0; j < own.n; ++j) result.data()[own.start[j]] = diagonal.data()[j];
      inside = add_pattern_gram(indptr.data(), indices.data(), values.data(), length(weight), weight.data(), own,
                                result.data());
    }
    require(inside, "the pattern must have a place for every product of a row with itself");
    return result;
  }

  std::optional<SparseFactor> factor(const Input& values) const {
    require_blas();
    require_length(length(row_), "there must be a value for every entry of the pattern", values);
    nodes();
    nb::gil_scoped_release released;
    SparseCholesky result(nodes_);
    if (!result.factor(pattern(), values.data())) return std::nullopt;
    return SparseFactor(std::move(result));
  }

 private:
  LowerPattern pattern() const { return {length(start_) - 1, start_.data(), row_.data()}; }

  const Supernodes& nodes() const {
    require(nodes_ != nullptr, "analyse has not been called");
    return *nodes_;
  }

  std::vector<Index> start_, row_;
  std::shared_ptr<const Supernodes> nodes_;
};

inline void bind_factors(nb::module_& m) {
  nb::list widths;
  for (const Index width : kBandWidths) widths.append(width);
  m.attr("BAND_WIDTHS") = nb::tuple(widths);
  m.def("band_gram", &band_gram, "indptr"_raw, "indices"_raw, "data"_raw, "weight"_raw, "diagonal"_raw, "width"_a,
        "Return A.T @ diag(weight) @ A + diag(diagonal) for A in compressed sparse rows: the lower band by columns.");
  m.def("band_factor", &band_factor, "band"_raw, "width"_a, "columns"_a,
        "Replace a band matrix by its factors L D L'; return whether it is positive definite.");
  m.def("band_solve", &band_solve, "band"_raw, "width"_a, "right"_raw,
        "Return the solution of a system, given the factors of a band matrix.");
  nb::class_<SparseFactor>(m, "SparseFactor", "The Cholesky factor of a sparse matrix.")
      .def("solve", &SparseFactor::solve, "right"_raw, "Return the solution of a system.");
  nb::class_<SparsePattern>(m, "SparsePattern",
                            "The lower triangle of a sparse symmetric matrix in compressed columns, without values.")
      .def(nb::init<const Indices&, const Indices&>(), "indptr"_raw, "indices"_raw)
      .def("postorder", &SparsePattern::postorder,
           "Return an order with the same entries in the Cholesky factor in which each column follows its descendants.")
      .def("analyse", &SparsePattern::analyse, "most"_a,
           "Find the pattern of the Cholesky factor, for columns in postorder; return whether it has at most ``most`` "
           "entries.")
      .def_prop_ro("entries", &SparsePattern::entries, "The stored entries of the Cholesky factor.")
      .def_prop_ro("multiplications", &SparsePattern::multiplications, "The multiplications of a factorisation.")
      .def("gram", &SparsePattern::gram, "indptr"_raw, "indices"_raw, "data"_raw, "weight"_raw, "diagonal"_raw,
           "Return the values of A.T @ diag(weight) @ A + diag(diagonal) for A in compressed sparse rows.")
      .def("factor", &SparsePattern::factor, "values"_raw,
           "Return the Cholesky factor of the matrix with these values; None if it is not positive definite.");
}

}  // namespace saddleback
