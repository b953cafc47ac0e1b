/// \file
/// Bounds and kinks of the interior-point method (methods/interior/atoms.py has the formulas): one reading of their
/// numbers per stage of a step.
#pragma once

#include <array>

#include "simd.hpp"
#include "threads.hpp"

namespace saddleback {

/// Positive numbers near and far whose products should become mu, their changes in a step, and what the linearised
/// products lack. A kink has two of them, a bound one.
struct Pairs {
  double *near, *far, *near_change, *far_change, *lacking;
};

/// The coordinates of an atom: all in order, or those in a list.
struct Everywhere {
  Index operator[](Index i) const { return i; }
};

struct Listed {
  const Index* list;

  Index operator[](Index i) const { return list[i]; }
};

/// What products should become: mu; mu, with the second-order term of the last direction; or close to mu after a step,
/// which is Gondzio's correction.
enum class Goal { kPlain, kCorrected, kCentral };

struct Aim {
  double mu, near_step = 0.0, far_step = 0.0;
};

constexpr double kCentral = 0.1;  ///< products between this times mu and mu divided by it need no correction

template <Goal kGoal>
inline double lacking(const Aim& aim, double near, double far, double near_change, double far_change, double before) {
  if constexpr (kGoal == Goal::kPlain) return aim.mu - near * far;
  if constexpr (kGoal == Goal::kCorrected) return aim.mu - near * far - near_change * far_change;
  const double after = (near + aim.near_step * near_change) * (far + aim.far_step * far_change);
  const double wanted = std::min(std::max(after, kCentral * aim.mu), aim.mu / kCentral) - after;
  return before + std::max(wanted, -aim.mu / kCentral);
}

/// Where a direction leads: the fastest relative changes of near and far, at most 0, and the sums of near_change * far,
/// near * far_change and near_change * far_change, from which the sum of the products after any step follows.
struct Ahead {
  double near = 0.0, far = 0.0, by_near = 0.0, by_far = 0.0, by_both = 0.0;

  void join(const Ahead& other) {
    near = std::min(near, other.near), far = std::min(far, other.far);
    by_near += other.by_near, by_far += other.by_far, by_both += other.by_both;
  }
};

/// Aims at a goal, and subtracts e from the right side of the linear system.
template <Goal kGoal, class At>
SADDLEBACK_CLONES static void aim_bounds(Pairs p, At at, double side, const Aim& aim, double* right, Range part) {
#pragma omp simd
  for (Index i = part.begin; i < part.end; ++i) {
    const double missing = lacking<kGoal>(aim, p.near[i], p.far[i], p.near_change[i], p.far_change[i], p.lacking[i]);
    p.lacking[i] = missing;
    right[at[i]] += side * missing / p.near[i];
  }
}

template <class At>
SADDLEBACK_CLONES static Ahead follow_bounds(Pairs p, At at, double side, const double* dv, double* rest, Range part) {
  double fastest_near = 0, fastest_far = 0, by_near = 0, by_far = 0, by_both = 0;
#pragma omp simd reduction(min : fastest_near, fastest_far) reduction(+ : by_near, by_far, by_both)
  for (Index i = part.begin; i < part.end; ++i) {
    const double near = p.near[i], far = p.far[i], near_change = side * dv[at[i]];
    const double far_change = (p.lacking[i] - far * near_change) / near;
    p.near_change[i] = near_change, p.far_change[i] = far_change;
    rest[at[i]] += side * far_change;
    // a comparison with a NaN is false, so that an undefined ratio is not the fastest
    const double near_ratio = near_change / near, far_ratio = far_change / far;
    fastest_near = near_ratio < fastest_near ? near_ratio : fastest_near;
    fastest_far = far_ratio < fastest_far ? far_ratio : fastest_far;
    by_near += near_change * far, by_far += near * far_change, by_both += near_change * far_change;
  }
  return {fastest_near, fastest_far, by_near, by_far, by_both};
}

/// Takes a step and adds the slopes and their derivatives at the new point. Returns the sum of the products there.
template <class At>
SADDLEBACK_CLONES static double move_bounds(Pairs p, At at, double side, double near_step, double far_step,
                                            double* slope, double* stiffness, Range part) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = part.begin; i < part.end; ++i) {
    const double near = p.near[i] + near_step * p.near_change[i], far = p.far[i] + far_step * p.far_change[i];
    p.near[i] = near, p.far[i] = far;
    slope[at[i]] -= side * far;
    stiffness[at[i]] += far / near;
    sum += near * far;
  }
  return sum;
}

template <Goal kGoal, class At>
SADDLEBACK_CLONES static void aim_kinks(Pairs up, Pairs down, At at, const Aim& aim, double* right, Range part) {
#pragma omp simd
  for (Index i = part.begin; i < part.end; ++i) {
    const double rising =
        lacking<kGoal>(aim, up.near[i], up.far[i], up.near_change[i], up.far_change[i], up.lacking[i]);
    const double falling =
        lacking<kGoal>(aim, down.near[i], down.far[i], down.near_change[i], down.far_change[i], down.lacking[i]);
    up.lacking[i] = rising, down.lacking[i] = falling;
    const double give = up.near[i] / up.far[i] + down.near[i] / down.far[i];
    right[at[i]] += (rising / up.far[i] - falling / down.far[i]) / give;
  }
}

/// If the kinks absorb the rest of the change of the slope, they take it instead of what follows from dv.
template <bool kAbsorbs, class At>
SADDLEBACK_CLONES static Ahead follow_kinks(Pairs up, Pairs down, At at, const double* dv, double* rest, Range part) {
  double fastest_near = 0, fastest_far = 0, by_near = 0, by_far = 0, by_both = 0;
#pragma omp simd reduction(min : fastest_near, fastest_far) reduction(+ : by_near, by_far, by_both)
  for (Index i = part.begin; i < part.end; ++i) {
    const double p = up.near[i], n = down.near[i], right = up.far[i], left = down.far[i];
    const double pull = up.lacking[i] / right - down.lacking[i] / left;
    const double own = (dv[at[i]] - pull) / (p / right + n / left);
    const double dp = (up.lacking[i] + p * own) / right, dn = (down.lacking[i] - n * own) / left;
    const double left_over = rest[at[i]], dk = kAbsorbs ? left_over : own;
    rest[at[i]] = left_over - dk;
    up.near_change[i] = dp, down.near_change[i] = dn;
    up.far_change[i] = -dk, down.far_change[i] = dk;
    const double p_ratio = dp / p, n_ratio = dn / n, right_ratio = -dk / right, left_ratio = dk / left;
    const double near_ratio = p_ratio < n_ratio ? p_ratio : n_ratio;
    const double far_ratio = right_ratio < left_ratio ? right_ratio : left_ratio;
    fastest_near = near_ratio < fastest_near ? near_ratio : fastest_near;
    fastest_far = far_ratio < fastest_far ? far_ratio : fastest_far;
    by_near += dp * right + dn * left, by_far += (n - p) * dk, by_both += (dn - dp) * dk;
  }
  return {fastest_near, fastest_far, by_near, by_far, by_both};
}

template <class At>
SADDLEBACK_CLONES static double move_kinks(Pairs up, Pairs down, At at, const double* lowest, const double* highest,
                                           double near_step, double far_step, double* slope, double* stiffness,
                                           Range part) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = part.begin; i < part.end; ++i) {
    const double p = up.near[i] + near_step * up.near_change[i], n = down.near[i] + near_step * down.near_change[i];
    const double right = up.far[i] + far_step * up.far_change[i], left = down.far[i] + far_step * down.far_change[i];
    up.near[i] = p, down.near[i] = n, up.far[i] = right, down.far[i] = left;
    // from the nearer end of the interval, which loses fewer digits
    const double from_above = highest[i] - right, from_below = lowest[i] + left;
    slope[at[i]] += right < left ? from_above : from_below;
    stiffness[at[i]] += 1.0 / (p / right + n / left);
    sum += p * right + n * left;
  }
  return sum;
}

/// The sum of |a_i b_i|.
SADDLEBACK_CLONES static double absolute_dot(const double* a, const double* b, Range part) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = part.begin; i < part.end; ++i) sum += std::fabs(a[i] * b[i]);
  return sum;
}

/// Calls body with each part of 0, ..., size - 1, on the pool, and joins the results in their order.
template <class Result, class Body, class Join> Result over_parts(Index size, const Body& body, const Join& join) {
  const int parts = parts_for(8.0 * static_cast<double>(size));
  std::array<Result, 16> results{};
  Lease lease;
  lease.run(parts, [&](int i) { results[static_cast<std::size_t>(i)] = body(part(size, i, parts)); });
  for (int i = 1; i < parts; ++i) join(results[0], results[static_cast<std::size_t>(i)]);
  return results[0];
}

}  // namespace saddleback
