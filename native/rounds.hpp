/// \file
/// Coordinate descent of several processes at the same time.
#pragma once

#include "panels.hpp"
#include "types.hpp"

namespace saddleback {

/// The rounds of processes that descend at the same time, each on its own columns and with its own y. After a number of
/// columns they exchange their changes of A x. With v the sum of these changes and d that of the changes of the
/// penalties, the objective falls by at least -t (y'v + d) - t^2/2 v'Cv for a fraction t of the step. The whole step is
/// taken if that is about as good as the best t. Otherwise the best t is taken, and the next exchange comes sooner.
class Rounds {
 public:
  /// The number of values that a process exchanges: its change of u, that of its penalty, and whether it has more to
  /// visit.
  static Index exchanged(Index rows) { return rows + 2; }

  Rounds(const SmoothProblem& problem, const Exchange& exchange, double& columns_between_exchanges, double* x,
         double* u, double* y)
      : problem_(problem), exchange_(exchange), length_(columns_between_exchanges), x_(x), u_(u), y_(y),
        sum_(exchanged(problem.rows())) {
    begin();
  }

  bool complete() const { return static_cast<double>(x_before_.size()) >= length_; }

  /// Must be called before the columns of a panel move.
  void visit(const Panel& panel) {
    for (const Index d : problem_.blocks.columns(panel.columns)) x_before_.push_back(x_[d]);
    visited_.push_back(&panel);
  }

  /// Ends a round and returns whether any process has more to visit.
  bool finish(bool more) {
    const Index m = problem_.rows();
    for (Index k = 0; k < m; ++k) sum_[k] = u_[k] - u_before_[k];
    sum_[m] = penalty_change();
    sum_[m + 1] = more;
    exchange_(sum_.data());
    double slope = sum_[m], bend = 0;
    for (Index k = 0; k < m; ++k) {
      slope += y_before_[k] * sum_[k];
      bend += problem_.loss->curvature()[k] * sum_[k] * sum_[k];
    }
    double fraction = 1;
    if (bend > 0 && -(slope + bend / 2) < slope * slope / (4 * bend)) {
      fraction = std::clamp(-slope / bend, 0.0, 1.0);
      length_ = std::max(1.0, length_ / 2);
      shorten(fraction);
    }
    for (Index k = 0; k < m; ++k) u_[k] = u_before_[k] + fraction * sum_[k];
    problem_.loss->gradient(Range{0, m}, u_, y_);
    begin();
    return sum_[m + 1] > 0;
  }

 private:
  void begin() {
    u_before_.assign(u_, u_ + problem_.rows());
    y_before_.assign(y_, y_ + problem_.rows());
    x_before_.clear();
    visited_.clear();
  }

  double penalty_change() const {
    double change = 0;
    const double* before = x_before_.data();
    for (const Panel* panel : visited_)
      for (Index j = panel->blocks.begin; j < panel->blocks.end; ++j) {
        const Block& block = problem_.blocks[j];
        double norm = 0, norm_before = 0;
        for (Index k = 0; k < block.size; ++k, ++before) {
          const Index d = block.column[k];
          change += value(problem_.penalty[d], x_[d]) - value(problem_.penalty[d], *before);
          norm += x_[d] * x_[d];
          norm_before += *before * *before;
        }
        if (block.weight > 0) change += block.weight * (std::sqrt(norm) - std::sqrt(norm_before));
      }
    return change;
  }

  void shorten(double fraction) {
    const double* before = x_before_.data();
    for (const Panel* panel : visited_)
      for (const Index d : problem_.blocks.columns(panel->columns)) {
        x_[d] = *before + fraction * (x_[d] - *before);
        ++before;
      }
  }

  const SmoothProblem& problem_;
  const Exchange& exchange_;
  double& length_;
  double *x_, *u_, *y_;
  std::vector<double> sum_, u_before_, y_before_, x_before_;
  std::vector<const Panel*> visited_;
};

}  // namespace saddleback
