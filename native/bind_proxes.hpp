/// \file
/// Proximal maps, and the path of least squares, for Python.
#pragma once

#include "bind_arrays.hpp"
#include "gram_path.hpp"
#include "group_balls.hpp"
#include "sorted_pool.hpp"
#include "total_variation.hpp"

namespace saddleback {

inline void bind_proxes(nb::module_& m) {
  m.def(
      "project_on_balls",
      [](const Input& v, const std::optional<Indices>& order, const Indices& start, const Input& radius) {
        const Index groups = length(start) - 1;
        require(groups >= 0 && start.data()[0] == 0 && start.data()[groups] == length(v) &&
                    std::is_sorted(start.data(), start.data() + groups + 1),
                "start must rise from 0 to the length of v");
        require(length(radius) == 1 || length(radius) == groups, "there must be one radius, or one per group");
        if (order) {
          require_length(length(v), "order must be as long as v", *order);
          require_columns(*order, length(v));
        }
        NewArray<> x = zeros(length(v));
        nb::gil_scoped_release released;
        project_on_balls(v.data(), order ? order->data() : nullptr, {start.data(), start.size()},
                         {radius.data(), radius.size()}, x.data());
        return x;
      },
      "v"_raw, "order"_raw.none(), "start"_raw, "radius"_raw,
      "Return the projection of v, group by group, on balls around 0; the groups are v[order[start[g] : start[g + "
      "1]]].");
  m.def(
      "denoise_line",
      [](const Input& v, const Input& weight, double alpha) {
        require(length(v) >= 1, "v must not be empty");
        require(length(weight) == 1 || length(weight) == length(v), "there must be one weight, or one per entry of v");
        NewArray<> x = empty_array<double>(length(v));
        nb::gil_scoped_release released;
        LineDenoiser(length(v)).run(v.data(), {weight.data(), weight.size()}, alpha, x.data());
        return x;
      },
      "v"_raw, "weight"_raw, "alpha"_a,
      "Return the x that minimises sum(weight * (x - v) ** 2) / 2 + alpha * sum(abs(diff(x))), for positive weights.");
  m.def(
      "gram_path",
      [](const Input& gram, const Input& linear, double constant, const Input& left, const Input& right,
         const Input& quadratic, const Input& lower, const Input& upper, double tol, Index most) {
        const Index n = length(linear), penalties = n > 0 ? length(left) / n : 0;
        require(n >= 1 && length(gram) == n * n, "gram must have n * n entries, for n entries of linear");
        require_length(n * penalties, "there must be n parameters of each kind for every penalty", left, right,
                       quadratic, lower, upper);
        NewArray<> x = zeros(n * penalties);
        NewArray<Index> sweeps = empty_array<Index>(penalties);
        std::fill_n(sweeps.data(), penalties, Index{0});
        nb::gil_scoped_release released;
        GramPath path(gram.data(), linear.data(), constant, n);
        std::vector<Coordinate> f(n);
        for (Index k = 0; k < penalties; ++k) {
          for (Index j = 0, i = k * n; j < n; ++j, ++i)
            f[j] = {left.data()[i], right.data()[i], quadratic.data()[i], lower.data()[i], upper.data()[i]};
          sweeps.data()[k] = path.solve(f, tol, most);
          std::copy(path.x().begin(), path.x().end(), x.data() + k * n);
          if (sweeps.data()[k] == most) break;
        }
        return std::pair(x, sweeps);
      },
      "gram"_raw, "linear"_raw, "constant"_a, "left"_raw, "right"_raw, "quadratic"_raw, "lower"_raw, "upper"_raw,
      "tol"_a, "most"_a,
      "Return the minimisers of f(x) + x'Gx / 2 - c'x for one f after the other, and the sweeps that each took; a path "
      "that ends early has 0 sweeps for the others.");
  m.def(
      "pool",
      [](const Input& v, const Input& weight) {
        require(length(weight) == 1 || length(weight) == length(v), "there must be one weight, or one per entry of v");
        NewArray<> x = empty_array<double>(length(v));
        nb::gil_scoped_release released;
        std::copy_n(v.data(), length(v), x.data());
        pool(x.data(), length(v), {weight.data(), weight.size()});
        return x;
      },
      "v"_raw, "weight"_raw,
      "Return the non-decreasing x that minimises sum(weight * (x - v) ** 2), for positive weights.");
  m.def(
      "sort_and_pool",
      [](const Input& v, const Input& taken, bool absolute) {
        require_length(length(v), "taken must be as long as v", taken);
        NewArray<> x = empty_array<double>(length(v));
        nb::gil_scoped_release released;
        sort_and_pool(v.data(), taken.data(), absolute, length(v), x.data());
        return x;
      },
      "v"_raw, "taken"_raw, "absolute"_a,
      "Return the x that minimises sum(taken * sort(x)) + sum((x - v) ** 2) / 2, for taken in non-decreasing order; "
      "with "
      "absolute, the same for sort(abs(x)).");
}

}  // namespace saddleback
