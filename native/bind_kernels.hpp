/// \file
/// The Python classes RowLoss, Kernel and Descent.
#pragma once

#include <optional>
#include <tuple>

#include "bind_arrays.hpp"
#include "bind_matrix.hpp"
#include "block_kernel.hpp"
#include "descent.hpp"
#include "newton.hpp"
#include "row_loss.hpp"

namespace saddleback {

using DrawArray = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Matrices = std::vector<std::shared_ptr<const Matrix>>;
using Slopes = std::tuple<Input, Input, Input, Input, Input>;
using Address = std::uintptr_t;
using LossPointer = std::shared_ptr<const RowLoss>;

/// What a compiled proximal map is in Python: its address, that of its data or 0, and whether it takes data.
inline Callable callable(Address address, Address user_data, bool takes_user_data) {
  require(address != 0, "a callable must have an address");
  return {reinterpret_cast<void*>(address), reinterpret_cast<void*>(user_data), takes_user_data};
}

/// The first and the last column that a penalty callable serves, the latter excluded, and the callable.
using PenaltyCallable = std::tuple<Index, Index, Address, Address, bool>;

inline Coordinates coordinates(const Slopes& slopes) {
  const auto& [left, right, quadratic, lower, upper] = slopes;
  require_length(length(left), "the parameters must be five vectors of equal length", right, quadratic, lower, upper);
  return {copied(left), copied(right), copied(quadratic), copied(lower), copied(upper)};
}

inline Penalty penalty_of(const Slopes& slopes, const std::vector<PenaltyCallable>& callables) {
  Penalty penalty{coordinates(slopes).by_entry(), {}, {}};
  const Index n = length(penalty.coordinate);
  for (const auto& [first, stop, address, user_data, takes_user_data] : callables) {
    require(0 <= first && first <= stop && stop <= n, "a penalty callable names missing columns");
    penalty.callable_of.resize(n, -1);
    std::fill(penalty.callable_of.begin() + first, penalty.callable_of.begin() + stop,
              static_cast<int>(penalty.callable.size()));
    penalty.callable.push_back(callable(address, user_data, takes_user_data));
  }
  return penalty;
}

inline Stack stack_of(Index rows, const Matrices& matrices) {
  std::vector<std::shared_ptr<const Columns>> parts;
  for (const auto& matrix : matrices) parts.push_back(Matrix::columns_of(matrix));
  return {rows, std::move(parts)};
}

inline Blocks blocks_of(const Indices& start, const Indices& columns, const Input& group_weight) {
  return {copied(start), copied(columns), copied(group_weight)};
}

/// The Python function in the form that a kernel calls without the interpreter lock; empty for none. It must not
/// outlive the function.
inline Exchange exchange_through(const std::optional<nb::callable>& function, Index size) {
  if (!function) return {};
  return [&function, size](double* numbers) {
    nb::gil_scoped_acquire acquired;
    (*function)(NewArray<>(numbers, {static_cast<std::size_t>(size)}, nb::none()));
  };
}

inline Draws all(const DrawArray& draws) {
  return {draws.data(), static_cast<Index>(draws.shape(0)), static_cast<Index>(draws.shape(1))};
}

inline constexpr auto kPerColumn = "h, x and x_sum must have one entry per column";
inline constexpr auto kPerRow = "sigma, theta, y, bar, u, v, weight and y_sum must have one entry per row";
inline constexpr auto kPerListed = "there must be one entry per listed column";

inline void bind_losses(nb::module_& m) {
  nb::class_<RowLoss>(m, "RowLoss", "A loss that is a sum over the rows.")
      .def_static(
          "coordinate",
          [](const Input& left, const Input& right, const Input& quadratic, const Input& lower,
             const Input& upper) -> LossPointer {
            return std::make_shared<CoordinateLoss>(coordinates({left, right, quadratic, lower, upper}));
          },
          "left"_raw, "right"_raw, "quadratic"_raw, "lower"_raw, "upper"_raw,
          "Return the loss whose conjugate has these slopes left and right of 0, quadratic term and bounds.")
      .def_static(
          "logistic",
          [](const Input& label, const Input& weight) -> LossPointer {
            require_length(length(label), "there must be one weight per label", weight);
            return std::make_shared<LogisticLoss>(copied(label), copied(weight));
          },
          "label"_raw, "weight"_raw, "Return weight * log(1 + exp(-label * u)).")
      .def_static(
          "callable",
          [](Index rows, Address address, Address user_data, bool takes_user_data) -> LossPointer {
            require(rows >= 0, "rows must not be negative");
            return std::make_shared<CallableLoss>(rows, callable(address, user_data, takes_user_data));
          },
          "rows"_a, "address"_a, "user_data"_a, "takes_user_data"_a,
          "Return the loss with a compiled proximal map: its address, and that of its data or 0.");
}

inline void bind_kernel(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel", R"(The block-coordinate iteration for one problem.

The matrices stand side by side, with contiguous columns; they are not copied and must not change. Block j consists of the
columns ``block_columns[block_start[j]:block_start[j + 1]]``. The penalty has five vectors: slopes left and right of 0,
quadratic term, lower and upper bound. ``group_weight`` is the weight of the norm of each block. With 0 its columns are
separate; otherwise they have no quadratic term and no bounds. A penalty callable is (first column, stop column, address,
address of user data or 0, whether it takes them).)")
      .def(
          "__init__",
          [](Kernel* self, const Matrices& matrices, const Indices& block_start, const Indices& block_columns,
             const Slopes& penalty, const Input& group_weight, LossPointer loss,
             const std::vector<PenaltyCallable>& penalty_callables) {
            new (self) Kernel(stack_of(loss->rows(), matrices), blocks_of(block_start, block_columns, group_weight),
                              penalty_of(penalty, penalty_callables), loss);
          },
          "matrices"_a, "block_start"_raw, "block_columns"_raw, "penalty"_raw, "group_weight"_raw, "loss"_a,
          "penalty_callables"_a = nb::make_tuple())
      .def(
          "sweep",
          [](Kernel& kernel, const DrawArray& draws, const Input& h, const Input& sigma, double extrapolation,
             const Output& x, const Output& y, const Output& u, const Output& x_sum, const Output& y_sum, bool lazy,
             const std::optional<nb::callable>& exchange) {
            require(!(lazy && exchange), "changes are exchanged in all rows, and not lazily");
            require_length(kernel.columns(), kPerColumn, h, x, x_sum);
            require_length(kernel.rows(), kPerRow, sigma, y, u, y_sum);
            const Primal primal{h.data(), x.data(), x_sum.data(), y.data()};
            const Dual dual{extrapolation, nullptr, u.data(), y.data(), y_sum.data()};
            const Exchange with_others = exchange_through(exchange, kernel.rows());
            nb::gil_scoped_release released;
            if (lazy) kernel.sweep_lazily(all(draws), sigma.data(), primal, dual);
            else kernel.sweep(all(draws), sigma.data(), primal, dual, with_others);
          },
          "draws"_raw, "h"_raw, "sigma"_raw, "extrapolation"_a, "x"_raw, "y"_raw, "u"_raw, "x_sum"_raw, "y_sum"_raw,
          "lazy"_a = false, "exchange"_a = nb::none(),
          R"(Run one iteration for each row of draws, and update the last five vectors in place.

The draws of a row are a set: a block drawn twice moves once. ``lazy`` gives the same iterates up to rounding at the cost
of the entries in the drawn columns, and needs a coordinate loss. ``exchange`` is called in every iteration with the change
of A @ x, to which it adds the changes of the other processes; blocks that do not exist are then left to these.)")
      .def(
          "sweep_pure",
          [](Kernel& kernel, const DrawArray& draws, const Input& h, const Input& sigma, const Input& theta,
             const Output& x, const Output& y, const Output& bar, const Output& u, const Output& x_sum,
             const Output& y_sum) {
            require_length(kernel.columns(), kPerColumn, h, x, x_sum);
            require_length(kernel.rows(), kPerRow, sigma, theta, y, bar, u, y_sum);
            const Primal primal{h.data(), x.data(), x_sum.data(), bar.data()};
            const Dual dual{0, nullptr, u.data(), y.data(), y_sum.data()};
            nb::gil_scoped_release released;
            kernel.sweep_pure(all(draws), sigma.data(), theta.data(), primal, dual, bar.data());
          },
          "draws"_raw, "h"_raw, "sigma"_raw, "theta"_raw, "x"_raw, "y"_raw, "bar"_raw, "u"_raw, "x_sum"_raw,
          "y_sum"_raw,
          "Run one iteration of PURE-CD for each row of draws, and update the last six vectors in place.\n\n"
          "``y_sum`` adds up ``bar``, which ends as the dual step from y in all rows.")
      .def(
          "primal_step",
          [](Kernel& kernel, const Indices& blocks, const Input& h, const Output& x, const Input& y, const Output& v) {
            require_length(kernel.columns(), kPerColumn, h, x);
            require_length(kernel.rows(), kPerRow, y, v);
            nb::gil_scoped_release released;
            kernel.primal_step(blocks.data(), length(blocks), {h.data(), x.data(), nullptr, y.data()}, v.data());
          },
          "blocks"_raw, "h"_raw, "x"_raw, "y"_raw, "v"_raw,
          "Update x in the drawn blocks and write the change of A @ x to v.");
}

inline Selection selection(const Descent& descent, const Indices& columns) {
  require_columns(columns, descent.columns());
  return {descent.matrix(), columns.data(), length(columns)};
}

inline void bind_descent(nb::module_& m) {
  nb::class_<Descent>(m, "Descent",
                      R"(Block coordinate descent for one problem with a smooth loss, in panels of columns.

The problem is given as for ``Kernel``; a block of several columns has no quadratic term and no bounds. A panel has at most
``width`` columns, or a single block. ``measured`` is descent on the first blocks and columns of this problem, whose panels
need not be measured again.)")
      .def(
          "__init__",
          [](Descent* self, const Matrices& matrices, const Indices& block_start, const Indices& block_columns,
             const Slopes& penalty, const Input& group_weight, LossPointer loss, Index width, const Descent* measured) {
            require(width >= 1, "a panel must have at least one column");
            SmoothProblem problem{stack_of(loss->rows(), matrices), blocks_of(block_start, block_columns, group_weight),
                                  coordinates(penalty).by_entry(), loss};
            nb::gil_scoped_release released;
            new (self) Descent(std::move(problem), width, measured);
          },
          "matrices"_a, "block_start"_raw, "block_columns"_raw, "penalty"_raw, "group_weight"_raw, "loss"_a, "width"_a,
          "measured"_a.none() = nb::none())
      .def(
          "rebind",
          [](Descent& descent, const Matrices& matrices) { descent.rebind(stack_of(descent.rows(), matrices)); },
          "matrices"_a, "Use from now on matrices with the same entries elsewhere in memory.")
      .def(
          "sweep",
          [](Descent& descent, Index sweeps, const Output& x, const Output& u, const Output& y,
             const std::optional<nb::callable>& exchange) {
            require_length(descent.columns(), kPerColumn, x);
            require_length(descent.rows(), kPerRow, u, y);
            const Exchange with_others = exchange_through(exchange, Rounds::exchanged(descent.rows()));
            nb::gil_scoped_release released;
            return descent.sweep(sweeps, x.data(), u.data(), y.data(), with_others);
          },
          "sweeps"_a, "x"_raw, "u"_raw, "y"_raw, "exchange"_a = nb::none(),
          R"(Visit all blocks once, and then ``sweeps`` - 1 times those whose panel is not all 0.

Update x, u = A @ x and y, the gradient of the loss at u, in place; return the number of columns visited. With ``exchange``
the columns are those of one process: it is called with numbers to which it adds those of the other processes.)")
      .def_rw("columns_between_exchanges", &Descent::columns_between_exchanges,
              "Columns that a process visits between exchanges. It falls when a step had to be shortened.")
      .def(
          "strength",
          [](const Descent& descent) {
            NewArray<> result = empty_array<double>(descent.columns());
            std::copy(descent.strength().begin(), descent.strength().end(), result.data());
            return result;
          },
          "Return a bound on the curvature of the loss along the block of each column.")
      .def(
          "products",
          [](const Descent& descent, const Indices& columns, const Input& y) {
            const Selection selected = selection(descent, columns);
            require_length(descent.rows(), kPerRow, y);
            NewArray<> result = zeros(selected.count());
            nb::gil_scoped_release released;
            Lease lease;
            selected.products(lease, y.data(), result.data());
            return result;
          },
          "columns"_raw, "y"_raw, "Return A_S.T @ y over the listed columns S.")
      .def(
          "image",
          [](const Descent& descent, const Indices& columns, const Input& d) {
            const Selection selected = selection(descent, columns);
            require_length(selected.count(), kPerListed, d);
            NewArray<> result = zeros(descent.rows());
            nb::gil_scoped_release released;
            Lease lease;
            selected.image(lease, d.data(), result.data());
            return result;
          },
          "columns"_raw, "d"_raw, "Return A_S @ d over the listed columns S.")
      .def(
          "solve",
          [](const Descent& descent, const Indices& columns, const Input& weight, const Input& extra,
             const Input& along, const Indices& group, const Input& right, const Input& diagonal, double tolerance,
             Index most) {
            const Selection selected = selection(descent, columns);
            require_length(descent.rows(), kPerRow, weight);
            require_length(selected.count(), kPerListed, extra, along, group, right, diagonal);
            for (Index k = 0; k < length(group); ++k)
              require(group.data()[k] >= 0 && group.data()[k] < length(group),
                      "groups are numbered from 0, and fewer than the listed columns");
            std::pair<NewArray<>, Index> result{zeros(selected.count()), 0};
            const NewtonSystem system{weight.data(), extra.data(), along.data(),
                                      group.data(),  right.data(), diagonal.data()};
            double* d = result.first.data();
            nb::gil_scoped_release released;
            result.second = conjugate_gradients(selected, system, tolerance, most, d);
            return result;
          },
          "columns"_raw, "weight"_raw, "extra"_raw, "along"_raw, "group"_raw, "right"_raw, "diagonal"_raw,
          "tolerance"_a, "most"_a,
          R"(Solve (A_S' diag(weight) A_S + diag(extra) - sum_g e_g e_g') d = right over the listed columns S.

e_g holds the entries of ``along`` in group g. Use conjugate gradients with the diagonal as preconditioner, to a relative
residual. Return d and the number of steps.)");
}

}  // namespace saddleback
