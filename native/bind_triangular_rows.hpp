/// \file
/// Triangular rows of sparse matrices for Python.
#pragma once

#include "bind_arrays.hpp"
#include "triangular_rows.hpp"

namespace saddleback {

using Parts = std::tuple<Indices, Indices, Input>;

inline SparseView view_of(const Parts& parts, Index others) {
  const auto& [start, index, value] = parts;
  require(length(start) >= 1 && start.data()[0] == 0 && std::is_sorted(start.data(), start.data() + length(start)) &&
              start.data()[length(start) - 1] == length(index) && length(index) == length(value),
          "indptr must rise from 0 to the number of entries");
  require_columns(index, others);
  return {{start.data(), start.size()}, {index.data(), index.size()}, {value.data(), value.size()}};
}

inline void bind_triangular_rows(nb::module_& m) {
  m.def(
      "triangular_rows",
      [](const Parts& rows, const Parts& columns, const Array<const bool>& usable, const Array<const bool>& roots) {
        const Index height = length(std::get<0>(rows)) - 1, width = length(std::get<0>(columns)) - 1;
        require_length(height, "there must be one flag per row", usable);
        require_length(width, "there must be one flag per column", roots);
        const SparseView by_row = view_of(rows, width), by_column = view_of(columns, height);
        Triangle found;
        {
          nb::gil_scoped_release released;
          found = triangle_of(by_row, by_column, usable.data(), roots.data());
        }
        return std::pair(handed_over(std::move(found.row)), handed_over(std::move(found.column)));
      },
      "rows"_a, "columns"_a, "usable"_raw, "roots"_raw,
      "Return rows, each with the column that it covers, of a sparse matrix given by its rows and by its columns; the "
      "columns in ``roots`` need no row.");
  m.def(
      "solve_triangular_rows",
      [](const Indices& row, const Indices& column, const Parts& columns, Index height, const Input& d, bool bound) {
        const SparseView by_column = view_of(columns, height);
        require_length(by_column.count(), "there must be one number per column", d);
        require(length(row) == length(column), "there must be one column per row");
        require_columns(row, height);
        require_columns(column, by_column.count());
        NewArray<> w = zeros(height);
        nb::gil_scoped_release released;
        solve_triangle({copied(row), copied(column)}, by_column, d.data(), bound, w.data());
        return w;
      },
      "row"_raw, "column"_raw, "columns"_a, "height"_a, "d"_raw, "bound"_a,
      "Return w with B'w = d on these rows, 0 elsewhere; with bound, an upper bound on |w| for every |d'| <= d.");
}

}  // namespace saddleback
