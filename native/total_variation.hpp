/// \file
/// The proximal map of the total variation of a vector.
#pragma once

#include "types.hpp"

namespace saddleback {

/// The minimiser of 1/2 sum_i w_i (x_i - v_i)^2 + alpha sum_i |x_{i+1} - x_i| by dynamic programming, as in
/// `functions/total_variation.py`, which explains it. Every coordinate adds two knots and each knot is removed at most
/// once, so that the time is proportional to n.
class LineDenoiser {
 public:
  explicit LineDenoiser(Index n)
      : n_(n), knots_(std::make_unique_for_overwrite<Knot[]>(2 * n)),
        high_(std::make_unique_for_overwrite<double[]>(n)) {}

  /// The weights are all equal if there is only one.
  void run(const double* v, std::span<const double> weight, double alpha, double* x) {
    begin_ = end_ = n_;
    const Index stride = weight.size() == 1 ? 0 : 1;
    const Index last = n_ - 1;
    double* low = x;  // an entry of x needs the low of no entry before it
    for (Index i = 0; i < last; ++i) {
      const double w = weight[i * stride];
      const double reach = i == 0 ? alpha / w : 0.0;
      low[i] = push_left(v[i] - reach, w);
      high_[i] = push_right(v[i] + reach, w);
    }
    const double w = weight[last * stride];
    x[last] = last == 0 ? v[0] : push_left(v[last] + alpha / w, w);
    for (Index i = last - 1; i >= 0; --i) x[i] = std::min(std::max(x[i + 1], low[i]), high_[i]);
  }

 private:
  /// Where the slope changes, and by how much.
  struct Knot {
    double at, change;
  };

  /// Replaces the function on the left of its root by a constant; returns the root.
  double push_left(double root, double w) {
    double slope = w;
    while (begin_ < end_ && knots_[begin_].at < root) {
      const Knot knot = knots_[begin_++];
      const double missing = slope * (root - knot.at);
      slope = std::max(slope + knot.change, w);
      root = knot.at + missing / slope;
    }
    knots_[--begin_] = {root, slope};
    return root;
  }

  /// The same on the right. The first knot is where the function leaves its lower bound, and stays.
  double push_right(double root, double w) {
    double slope = w;
    while (end_ - begin_ > 1 && knots_[end_ - 1].at > root) {
      const Knot knot = knots_[--end_];
      const double beyond = slope * (knot.at - root);
      slope = std::max(slope - knot.change, w);
      root = knot.at - beyond / slope;
    }
    root = std::max(root, knots_[begin_].at);
    knots_[end_++] = {root, -slope};
    return root;
  }

  Index n_, begin_ = 0, end_ = 0;
  std::unique_ptr<Knot[]> knots_;   ///< in increasing order; there is room on both sides
  std::unique_ptr<double[]> high_;  ///< the largest x_i, whatever follows
};

}  // namespace saddleback
