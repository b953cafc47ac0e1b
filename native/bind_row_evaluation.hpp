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

using RowEvaluation =
    std::tuple<double, double, double, NewArray<>, NewArray<>, NewArray<>, NewArray<Index>, NewArray<>>;

template <class Loss>
RowEvaluation evaluate(const Anything& X, const std::vector<Anything>& numbers, const Anything& weight,
                       const Input& centre, bool intercept, const Input& x, const Input& leverage, double width,
                       double resolved, const std::optional<Indices>& chosen, bool curved) {
  require(X.ndim() == 2 && X.size() > 0, "X must be a matrix that is not empty");
  const auto rows = static_cast<Index>(X.shape(0)), columns = static_cast<Index>(X.shape(1));
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
  RowResult found = with_type(X, [&]<class T>(T) {
    const DenseRows<T> from{data<T>(X), rows, columns, X.stride(0), X.stride(1)};
    nb::gil_scoped_release released;
    return evaluator.evaluate(from, of_rows);
  });
  const RowSums& sums = found.sums;
  return {sums.value,
          sums.tangents,
          found.rise,
          handed_over(std::vector{sums.y, sums.z, sums.data}),
          handed_over(std::move(found.pull)),
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
      "Evaluate a loss of dense rows, given by the five parameters of its conjugate, in the calling thread.\n\n"
      "Return the sums of values and of tangents at 0, the rise, the squares of y, z and data, A'y, A'DA or nothing, "
      "the rows close to a kink unless rows are chosen, and the y of the rows that are kept.");
  bind_evaluation<LogisticRows>(m, "evaluate_logistic_rows", "The same for the logistic loss, given by its labels.");
}

}  // namespace saddleback
