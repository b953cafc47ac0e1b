/// \file
/// Proximal maps for Python.
#pragma once

#include "bind_arrays.hpp"
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
