/// \file
/// The excess of one-dimensional functions for Python.
#pragma once

#include "bind_arrays.hpp"
#include "excess.hpp"

namespace saddleback {

using Numbers = std::tuple<double, double, double, double, double>;
using Sum = std::tuple<double, double, double, double>;

inline void bind_excess(nb::module_& m) {
  m.def(
      "piecewise_excess",
      [](const std::vector<Input>& parameters, const Input& point, const Input& radius, const Input& high,
         const Input& low, const Input& error, const Input& size, bool conjugate) {
        const Index count = length(point);
        const auto each = [&](const Input& values) {
          require(length(values) == 1 || length(values) == count, "there must be one number, or one per coordinate");
          return PerCoordinate{values.data(), length(values) == count ? 1 : 0};
        };
        require(parameters.size() == 5, "a function has five parameters");
        const Lines lines{each(parameters[0]), each(parameters[1]), each(parameters[2]), each(parameters[3]),
                          each(parameters[4]), each(point),         each(radius),        each(high),
                          each(low),           each(error),         each(size)};
        ExcessSums found;
        {
          nb::gil_scoped_release released;
          found = piecewise_excess(lines, count, conjugate);
        }
        const auto listed = [](const BoundedSum& sum) { return Sum{sum.hi, sum.lo, sum.error, sum.size}; };
        return std::tuple(Numbers{found.gap, found.exact, found.missed, found.infeasibility, found.multiple},
                          listed(found.value), listed(found.conjugate),
                          std::tuple(found.point_inside, found.slope_inside, found.rounded));
      },
      "parameters"_a, "point"_raw, "radius"_raw, "high"_raw, "low"_raw, "error"_raw, "size"_raw, "conjugate"_a,
      "Return the gap, its exact part, what is missed, the infeasibility and the feasible multiple; the value and the "
      "conjugate, each as a sum with twice the digits of a double, its error and its size; and whether the point is "
      "inside, the slope is inside, and the slope is inside up to rounding; with ``conjugate``, of the conjugate.");
}

}  // namespace saddleback
