/// \file
/// Bounds and kinks of the interior-point method for Python.
#pragma once

#include "barrier.hpp"
#include "bind_arrays.hpp"

namespace saddleback {

/// Five rows: near, far, near_change, far_change, lacking.
using PairRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OptionalIndices = std::optional<Indices>;
using AheadNumbers = std::tuple<double, double, double, double, double>;

inline Index count_of(const PairRows& pairs) { return static_cast<Index>(pairs.shape(1)); }

inline Pairs rows_of(const PairRows& pairs) {
  require(pairs.shape(0) == 5, "pairs must have five rows");
  double* first = pairs.data();
  const Index count = count_of(pairs);
  return {first, first + count, first + 2 * count, first + 3 * count, first + 4 * count};
}

/// Checks that an atom fits into vectors, and calls body with its coordinates.
template <class Body> auto with_coordinates(const OptionalIndices& at, Index count, Index size, const Body& body) {
  if (!at) {
    require(count == size, "an atom without coordinates must have one pair per entry of a vector");
    nb::gil_scoped_release released;
    return body(Everywhere{});
  }
  require(length(*at) == count, "there must be a coordinate for every pair");
  require_columns(*at, size);
  nb::gil_scoped_release released;
  return body(Listed{at->data()});
}

inline void join_nothing(char&, char) {}

inline AheadNumbers as_tuple(const Ahead& ahead) {
  return {ahead.near, ahead.far, ahead.by_near, ahead.by_far, ahead.by_both};
}

template <class Body> AheadNumbers joined_ahead(Index size, const Body& body) {
  return as_tuple(over_parts<Ahead>(size, body, [](Ahead& a, const Ahead& b) { a.join(b); }));
}

template <class Body> double joined_sum(Index size, const Body& body) {
  return over_parts<double>(size, body, [](double& a, double b) { a += b; });
}

template <class Body> void in_parts(Index size, const Body& body) {
  over_parts<char>(size, [&](Range part) { return body(part), '\0'; }, join_nothing);
}

template <Goal kGoal>
void aim_bounds_of(const PairRows& pairs, const OptionalIndices& at, double side, const Aim& aim, const Output& right) {
  const Pairs rows = rows_of(pairs);
  with_coordinates(at, count_of(pairs), length(right), [&](auto own) {
    in_parts(count_of(pairs), [&](Range part) { aim_bounds<kGoal>(rows, own, side, aim, right.data(), part); });
  });
}

template <Goal kGoal>
void aim_kinks_of(const PairRows& up, const PairRows& down, const OptionalIndices& at, const Aim& aim,
                  const Output& right) {
  const Pairs rising = rows_of(up), falling = rows_of(down);
  require(count_of(up) == count_of(down), "both pairs of a kink must have the same length");
  with_coordinates(at, count_of(up), length(right), [&](auto own) {
    in_parts(count_of(up), [&](Range part) { aim_kinks<kGoal>(rising, falling, own, aim, right.data(), part); });
  });
}

inline AheadNumbers follow_bounds_of(const PairRows& pairs, const OptionalIndices& at, double side, const Input& dv,
                                     const Output& rest) {
  const Pairs rows = rows_of(pairs);
  require_length(length(dv), "dv and rest must have the same length", rest);
  return with_coordinates(at, count_of(pairs), length(dv), [&](auto own) {
    return joined_ahead(count_of(pairs),
                        [&](Range part) { return follow_bounds(rows, own, side, dv.data(), rest.data(), part); });
  });
}

inline AheadNumbers follow_kinks_of(const PairRows& up, const PairRows& down, const OptionalIndices& at,
                                    const Input& dv, bool absorbs, const Output& rest) {
  const Pairs rising = rows_of(up), falling = rows_of(down);
  require(count_of(up) == count_of(down), "both pairs of a kink must have the same length");
  require_length(length(dv), "dv and rest must have the same length", rest);
  return with_coordinates(at, count_of(up), length(dv), [&](auto own) {
    return joined_ahead(count_of(up), [&](Range part) {
      return absorbs ? follow_kinks<true>(rising, falling, own, dv.data(), rest.data(), part)
                     : follow_kinks<false>(rising, falling, own, dv.data(), rest.data(), part);
    });
  });
}

inline double move_bounds_of(const PairRows& pairs, const OptionalIndices& at, double side, double near_step,
                             double far_step, const Output& slope, const Output& stiffness) {
  const Pairs rows = rows_of(pairs);
  require_length(length(slope), "slope and stiffness must have the same length", stiffness);
  return with_coordinates(at, count_of(pairs), length(slope), [&](auto own) {
    return joined_sum(count_of(pairs), [&](Range part) {
      return move_bounds(rows, own, side, near_step, far_step, slope.data(), stiffness.data(), part);
    });
  });
}

inline double move_kinks_of(const PairRows& up, const PairRows& down, const OptionalIndices& at, const Input& left,
                            const Input& right, double near_step, double far_step, const Output& slope,
                            const Output& stiffness) {
  const Pairs rising = rows_of(up), falling = rows_of(down);
  require_length(count_of(up), "both pairs of a kink, left and right must have the same length", left, right);
  require(count_of(up) == count_of(down), "both pairs of a kink must have the same length");
  require_length(length(slope), "slope and stiffness must have the same length", stiffness);
  return with_coordinates(at, count_of(up), length(slope), [&](auto own) {
    return joined_sum(count_of(up), [&](Range part) {
      return move_kinks(rising, falling, own, left.data(), right.data(), near_step, far_step, slope.data(),
                        stiffness.data(), part);
    });
  });
}

inline double absolute_dot_of(const Input& a, const Input& b) {
  require_length(length(a), "both vectors must have the same length", b);
  nb::gil_scoped_release released;
  return joined_sum(length(a), [&](Range part) { return absolute_dot(a.data(), b.data(), part); });
}

inline void bind_barrier(nb::module_& m) {
  m.def("absolute_dot", &absolute_dot_of, "a"_raw, "b"_raw, "Return the sum of |a * b|.");
  m.def(
      "aim_bounds",
      [](const PairRows& pairs, const OptionalIndices& at, double side, double mu, bool corrected,
         const Output& right) {
        const auto aim = corrected ? aim_bounds_of<Goal::kCorrected> : aim_bounds_of<Goal::kPlain>;
        aim(pairs, at, side, {mu}, right);
      },
      "pairs"_raw, "at"_raw.none(), "side"_a, "mu"_a, "corrected"_a, "right"_raw,
      "Aim at products of mu, with the second-order term of the last direction if asked; subtract e from ``right``.");
  m.def(
      "recentre_bounds",
      [](const PairRows& pairs, const OptionalIndices& at, double side, double mu, double near_step, double far_step,
         const Output& right) { aim_bounds_of<Goal::kCentral>(pairs, at, side, {mu, near_step, far_step}, right); },
      "pairs"_raw, "at"_raw.none(), "side"_a, "mu"_a, "near_step"_a, "far_step"_a, "right"_raw,
      "Correct the aim of products that a step would leave far from mu; subtract e from ``right``.");
  m.def("follow_bounds", &follow_bounds_of, "pairs"_raw, "at"_raw.none(), "side"_a, "dv"_raw, "rest"_raw,
        "Compute the changes that follow from dv, and subtract that of the slope from ``rest``. Return the fastest "
        "relative changes of near and far, and the sums of near_change * far, near * far_change and near_change * "
        "far_change.");
  m.def("move_bounds", &move_bounds_of, "pairs"_raw, "at"_raw.none(), "side"_a, "near_step"_a, "far_step"_a,
        "slope"_raw, "stiffness"_raw,
        "Take a step, and add the slope and its derivative. Return the sum of the products.");
  m.def(
      "aim_kinks",
      [](const PairRows& up, const PairRows& down, const OptionalIndices& at, double mu, bool corrected,
         const Output& right) {
        const auto aim = corrected ? aim_kinks_of<Goal::kCorrected> : aim_kinks_of<Goal::kPlain>;
        aim(up, down, at, {mu}, right);
      },
      "up"_raw, "down"_raw, "at"_raw.none(), "mu"_a, "corrected"_a, "right"_raw,
      "Aim at products of mu, with the second-order term of the last direction if asked; subtract e from ``right``.");
  m.def(
      "recentre_kinks",
      [](const PairRows& up, const PairRows& down, const OptionalIndices& at, double mu, double near_step,
         double far_step,
         const Output& right) { aim_kinks_of<Goal::kCentral>(up, down, at, {mu, near_step, far_step}, right); },
      "up"_raw, "down"_raw, "at"_raw.none(), "mu"_a, "near_step"_a, "far_step"_a, "right"_raw,
      "Correct the aim of products that a step would leave far from mu; subtract e from ``right``.");
  m.def("follow_kinks", &follow_kinks_of, "up"_raw, "down"_raw, "at"_raw.none(), "dv"_raw, "absorbs"_a, "rest"_raw,
        "Compute the changes that follow from dv. If ``absorbs``, the slope changes by ``rest``; otherwise its change "
        "is subtracted from it. Return what ``follow_bounds`` returns.");
  m.def("move_kinks", &move_kinks_of, "up"_raw, "down"_raw, "at"_raw.none(), "left"_raw, "right"_raw, "near_step"_a,
        "far_step"_a, "slope"_raw, "stiffness"_raw,
        "Take a step, and add the slope and its derivative. Return the sum of the products.");
}

}  // namespace saddleback
