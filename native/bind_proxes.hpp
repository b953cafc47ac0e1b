/// \file
/// Proximal maps for Python.
#pragma once

#include "bind_arrays.hpp"
#include "total_variation.hpp"

namespace saddleback {

inline void bind_proxes(nb::module_& m) {
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
}

}  // namespace saddleback
