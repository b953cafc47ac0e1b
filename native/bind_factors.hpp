/// \file
/// Factors of band matrices and of sparse matrices for Python.
#pragma once

#include "band.hpp"
#include "bind_arrays.hpp"
#include "bind_blas.hpp"
#include "matrix.hpp"
#include "sparse_cholesky.hpp"

namespace saddleback {

/// Checks a matrix in compressed rows whose columns increase.
inline void require_rows(const Indices& indptr, const Indices& indices, const Input& values, Index columns) {
  require(indptr.size() > 0 && indices.size() == values.size(),
          "indptr must not be empty, and indices must be as long as data");
  const Index rows = length(indptr) - 1;
  const Sparse<Index, double> transposed(indptr.data(), indices.data(), values.data(), length(values), columns, rows);
  require(indptr.data()[0] == 0 && indptr.data()[rows] == length(values) && transposed.all_valid() &&
              transposed.canonical(),
          "indptr must rise from 0 to the number of entries, and the columns of a row increase inside the matrix");
}

/// A symmetric band matrix, and after `factor` its factors, for Python.
template <class T> class Band {
 public:
  Band(Index columns, Index width) : width_(width), matrix_(columns, width) {}

  TwoEndedBand<T>& matrix() { return matrix_; }

  NewArray<> diagonal() const {
    NewArray<> result = empty_array<double>(matrix_.columns());
    for (Index j = 0; j < matrix_.columns(); ++j) result.data()[j] = matrix_.diagonal(j);
    return result;
  }

  void set_diagonal(const Indices& at, const Input& values) {
    require_length(length(at), "there must be a value for every listed column", values);
    require_columns(at, matrix_.columns());
    for (Index k = 0; k < length(at); ++k) matrix_.set_diagonal(at.data()[k], values.data()[k]);
  }

  double factor() {
    require(!factored_, "the matrix has been factored already");
    factored_ = true;
    double least = 0.0;
    nb::gil_scoped_release released;
    with_band_width(width_, [&](auto w) { least = matrix_.template factor<w()>(); });
    return least;
  }

  NewArray<> solve(const Input& right) const {
    require_length(matrix_.columns(), "the vector does not fit the matrix", right);
    require(factored_, "factor has not been called");
    NewArray<> result = empty_array<double>(matrix_.columns());
    nb::gil_scoped_release released;
    with_band_width(width_, [&](auto w) { matrix_.template solve<w()>(right.data(), result.data()); });
    return result;
  }

 private:
  Index width_;
  bool factored_ = false;
  TwoEndedBand<T> matrix_;
};

/// A matrix in compressed rows whose entries lie in a band: those of a row are less than `width` + 1 columns apart.
class BandRows {
 public:
  BandRows(const Indices& indptr, const Indices& indices, const Input& values, Index columns, Index width)
      : columns_(columns), width_(width), rows_(length(indptr) - 1) {
    require_rows(indptr, indices, values, columns);
    require(std::find(kBandWidths.begin(), kBandWidths.end(), width) != kBandWidths.end(),
            "the width of the band must be one of BAND_WIDTHS");
    const Index lower = columns - TwoEndedBand<double>::lower_columns(columns, width);
    for (Index i = 0; i < rows_; ++i) {
      const Index begin = indptr.data()[i], end = indptr.data()[i + 1];
      if (begin == end) continue;
      const Index last = indices.data()[end - 1];
      require(last - indices.data()[begin] <= width, "a row is wider than the band");
      Half& half = halves_[last >= lower];
      half.row.push_back(i);
      if (last < lower) {
        half.column.insert(half.column.end(), indices.data() + begin, indices.data() + end);
        half.value.insert(half.value.end(), values.data() + begin, values.data() + end);
      } else {
        for (Index k = end - 1; k >= begin; --k) {
          half.column.push_back(columns - 1 - indices.data()[k]);
          half.value.push_back(values.data()[k]);
        }
      }
      half.start.push_back(length(half.column));
    }
  }

  template <class T> Band<T> gram(const Input& weight, const Input& diagonal) const {
    require_length(columns_, "there must be an entry of the diagonal for every column", diagonal);
    require_length(rows_, "there must be a weight for every row", weight);
    nb::gil_scoped_release released;
    Band<T> band(columns_, width_);
    band.matrix().form(diagonal.data(), [&](int i, T* entries) {
      const Half& half = halves_[i];
      add_band_gram(half.row.data(), half.start.data(), half.column.data(), half.value.data(), length(half.row),
                    weight.data(), width_, entries);
    });
    return band;
  }

 private:
  /// The rows with an entry in the lower half of the columns, in reverse order, and all others.
  struct Half {
    std::vector<Index> row, start{0}, column;
    std::vector<double> value;
  };

  Index columns_, width_, rows_;
  Half halves_[2];
};

template <class T> void bind_band(nb::module_& m, const char* name, const char* text) {
  nb::class_<Band<T>>(m, name, text)
      .def("diagonal", &Band<T>::diagonal, "Return the diagonal, rounded to doubles.")
      .def("set_diagonal", &Band<T>::set_diagonal, "at"_raw, "values"_raw, "Replace some entries of the diagonal.")
      .def("factor", &Band<T>::factor,
           "Replace the matrix by its factors L D L'. Return the least pivot relative to its entry of the diagonal; 0 "
           "if the matrix is not positive definite.")
      .def("solve", &Band<T>::solve, "right"_raw, "Return the solution of a system.");
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
    require_rows(indptr, indices, values, own.n);
    require_length(length(indptr) - 1, "there must be a weight for every row", weight);
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
  bind_band<double>(m, "Band", "A symmetric band matrix.");
  bind_band<DoubleDouble>(m, "PreciseBand", "A symmetric band matrix with twice the digits of a double.");
  nb::class_<BandRows>(m, "BandRows", "A matrix in compressed sparse rows whose entries lie in a band.")
      .def(nb::init<const Indices&, const Indices&, const Input&, Index, Index>(), "indptr"_raw, "indices"_raw,
           "data"_raw, "columns"_a, "width"_a)
      .def("gram", &BandRows::gram<double>, "weight"_raw, "diagonal"_raw,
           "Return A.T @ diag(weight) @ A + diag(diagonal).")
      .def("precise_gram", &BandRows::gram<DoubleDouble>, "weight"_raw, "diagonal"_raw,
           "Return A.T @ diag(weight) @ A + diag(diagonal), with twice the digits of a double.");
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
