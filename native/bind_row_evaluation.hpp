/// \file
/// The evaluation of dense rows for Python.
#pragma once

#include "bind_arrays.hpp"
#include "bind_blas.hpp"
#include "row_evaluation.hpp"

namespace saddleback {

/// A vector as an array, without a copy.
template <class T> NewArray<T> handed_over(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NewArray<T>(kept->data(), {kept->size()}, owner);
}

/// One number per row, with a tile of the given height.
inline RowNumbers row_numbers(const Anything& array, Index rows, Index height) {
  require(array.ndim() == 1 && static_cast<Index>(array.shape(0)) == rows, "there must be one number for each row");
  return with_type(array, [&]<class T>(T) -> RowNumbers { return PerRow<T>(data<T>(array), array.stride(0), height); });
}

/// Rows that are one matrix, or one vector for each column.
template <class T> DenseRows<T> dense_rows(const std::vector<Anything>& parts) {
  const Anything& first = parts.front();
  const auto rows = static_cast<Index>(first.shape(0));
  if (first.ndim() == 1) {
    DenseRows<T> result{rows, length(parts), {}};
    for (const Anything& part : parts) {
      require(
          holds<T>(part) && part.ndim() == 1 && static_cast<Index>(part.shape(0)) == rows && contiguous_along(part, 0),
          "the columns must be contiguous, with the same type and length");
      result.apart.push_back(data<T>(part));
    }
    return result;
  }
  DenseRows<T> result{rows, static_cast<Index>(first.shape(1)), {}, data<T>(first), first.stride(0), first.stride(1)};
  if (contiguous_along(first, 0))
    for (Index j = 0; j < result.columns; ++j) result.apart.push_back(result.data + j * result.column_stride);
  return result;
}

using RowEvaluation =
    std::tuple<double, double, double, NewArray<>, NewArray<>, NewArray<>, NewArray<>, NewArray<Index>, NewArray<>>;

template <class Loss>
RowEvaluation evaluate(const std::vector<Anything>& X, const std::vector<Anything>& numbers, const Anything& weight,
                       const Input& centre, bool intercept, const Input& x, const Input& leverage, double width,
                       double resolved, const std::optional<Indices>& chosen, bool curved) {
  require(!X.empty() && X[0].size() > 0 && (X[0].ndim() == 1 || (X[0].ndim() == 2 && X.size() == 1)),
          "X must be a matrix or columns, and not empty");
  const auto rows = static_cast<Index>(X[0].shape(0));
  const Index columns = X[0].ndim() == 1 ? length(X) : static_cast<Index>(X[0].shape(1));
  require_length(columns, "there must be a centre for each column", centre);
  require_length(columns + intercept, "x and leverage must have a number for each column and the intercept", x,
                 leverage);
  require(columns < std::numeric_limits<int>::max() - 1, "X has too many columns for the BLAS");
  require(numbers.size() == Loss::kNumbers, "the loss has another number of parameters");
  if (curved) require_blas();
  RowTask task{centre.data(), x.data(), leverage.data(), intercept, curved, width, resolved, std::nullopt};
  if (chosen) {
    task.chosen = std::span(chosen->data(), chosen->size());
    require(std::ranges::is_sorted(*task.chosen) &&
                (task.chosen->empty() || (task.chosen->front() >= 0 && task.chosen->back() < rows)),
            "the rows that are chosen must be sorted, and exist");
  }
  RowEvaluator<Loss> evaluator(columns, task);
  std::vector<RowNumbers> of_rows;
  for (const Anything& each : numbers) of_rows.push_back(row_numbers(each, rows, evaluator.height()));
  of_rows.push_back(row_numbers(weight, rows, evaluator.height()));
  RowResult found = with_type(X[0], [&]<class T>(T) {
    const DenseRows<T> from = dense_rows<T>(X);
    nb::gil_scoped_release released;
    return evaluator.evaluate(from, of_rows);
  });
  const RowSums& sums = found.sums;
  return {sums.value,
          sums.tangents,
          sums.rise,
          handed_over(std::vector{sums.y, sums.z, sums.data}),
          handed_over(std::move(found.pull)),
          handed_over(std::move(found.diagonal)),
          handed_over(std::move(found.gram)),
          handed_over(std::move(found.near)),
          handed_over(std::move(found.kept_y))};
}

template <class Loss> void bind_evaluation(nb::module_& m, const char* name, const char* doc) {
  m.def(name, &evaluate<Loss>, "X"_raw, "numbers"_raw, "weight"_raw, "centre"_raw, "intercept"_a, "x"_raw,
        "leverage"_raw, "width"_a, "resolved"_a, "chosen"_a.noconvert().none(), "curved"_a, doc);
}

inline void bind_row_evaluation(nb::module_& m) {
  bind_evaluation<PiecewiseRows>(
      m, "evaluate_piecewise_rows",
      "Evaluate a loss of dense rows, a list with one matrix or of all columns, given by the five parameters of its "
      "conjugate, in the calling thread.\n\n"
      "Return the sums of values and of tangents at 0, the rise, the squares of y, z and data, A'y, the diagonal of "
      "A'DA if rows are chosen, A'DA or nothing, the rows close to a kink unless rows are chosen, and the y of the "
      "rows that are kept.");
  bind_evaluation<LogisticRows>(m, "evaluate_logistic_rows", "The same for the logistic loss, given by its labels.");
}

}  // namespace saddleback
