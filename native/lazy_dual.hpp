/// \file
/// The lazy dual: rows that no drawn column touches are not updated. Their missing steps are taken together, in closed
/// form, when they are needed.
#pragma once

#include "prox.hpp"
#include "types.hpp"

namespace saddleback {

/// Dual steps of one row, y <- prox(y + step u), with a constant u.
///
/// On one side of 0 and inside the bounds the step is affine, with the slope d on that side: n steps lead from y to
/// y + (d - q y) W(n), and the iterates sum to n y + (d - q y) V(n). See docs/theory/block_method.md.
class RepeatedStep {
 public:
  RepeatedStep() = default;
  RepeatedStep(const Coordinate& conjugate, double step)
      : f_(conjugate), step_(step), rate_(step * f_.quadratic), log_rate_(std::log1p(rate_)) {}

  double step(double y, double argument) const { return prox(f_, y + step_ * argument, step_); }

  /// Takes `left` steps from y and returns the sum of the iterates.
  double run(double& y, double u, double left) const {
    double sum = 0;
    while (left > 0) {
      const Piece piece = piece_at(y, u);
      const double n = std::min(left, steps_in(piece, y));
      if (n > 0) {
        const double travelled = way(n);
        sum += n * y + piece.drift * summed_way(n, travelled);
        y += piece.drift * travelled;
        left -= n;
      }
      if (!(left > 0)) break;
      const double before = y;
      y = step(y, u);
      sum += y;
      left -= 1;
      if (y == before) return sum + left * y;
    }
    return sum;
  }

 private:
  /// The interval around y in which the step is affine, and d - q y.
  struct Piece {
    double bottom, top, drift;
  };

  Piece piece_at(double y, double u) const {
    if (y > 0 || (y == 0 && u > f_.right)) return {std::max(0.0, f_.lower), f_.upper, u - f_.right - f_.quadratic * y};
    return {f_.lower, std::min(0.0, f_.upper), u - f_.left - f_.quadratic * y};
  }

  /// How many steps from y stay in the piece.
  double steps_in(const Piece& piece, double y) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double first = y + piece.drift * (step_ / (1 + rate_));
    if (!(first >= piece.bottom && first <= piece.top)) return 0;
    const double end = piece.drift > 0 ? piece.top : piece.bottom;
    if (piece.drift == 0 || std::isinf(end)) return infinity;
    const double most = (end - y) / piece.drift;  // of W(n)
    if (!(rate_ > 0)) return std::floor(most / step_);
    const double share = f_.quadratic * most;
    return share < 1 ? std::floor(-std::log1p(-share) / log_rate_) : infinity;
  }

  /// W(n) = (1 - (1 + step q)^-n) / q.
  double way(double n) const {
    if (!(rate_ > 0)) return n * step_;
    return n == 1 ? step_ / (1 + rate_) : -std::expm1(-n * log_rate_) / f_.quadratic;
  }

  /// V(n) = W(1) + ... + W(n) = (n - W(n) / step) / q, as a series if that is a small difference of large numbers.
  double summed_way(double n, double travelled) const {
    constexpr double series_below = 0.01;
    constexpr int series_terms = 10;
    if (!(rate_ > 0)) return 0.5 * step_ * n * (n + 1);
    if (n * rate_ >= series_below) return (n - travelled / step_) / f_.quadratic;
    double nested = 1;
    for (int k = series_terms; k > 2; --k) nested = 1 - (n + k - 1) / k * rate_ * nested;
    return 0.5 * step_ * n * (n + 1) * nested;
  }

  Coordinate f_;
  double step_, rate_, log_rate_;
};

/// The rows that an iteration touches, each once, and the number of iterations since each was last touched.
class TouchedRows {
 public:
  void reset(Index rows) { seen_.assign(rows, 0); }

  /// Sets the rows of iteration t, in which a row may occur more than once. t must increase from call to call.
  // Not inline: GCC keeps the pointers of the vectors in registers only in a function by itself.
  [[gnu::noinline]] void assign(const std::vector<Index>& rows, Index t) {
    row_.clear();
    behind_.clear();
    Index* seen = seen_.data();
    for (const Index i : rows) {
      if (seen[i] > t) continue;
      row_.push_back(i);
      behind_.push_back(t - seen[i]);
      seen[i] = t + 1;
    }
  }

  const std::vector<Index>& row() const { return row_; }
  double behind(std::size_t k) const { return static_cast<double>(behind_[k]); }

  /// Iterations up to `t` since the row was last touched.
  double behind(Index row, Index t) const { return static_cast<double>(t - seen_[row]); }

 private:
  std::vector<Index> row_, behind_;
  std::vector<Index> seen_;  ///< one more than the last iteration that touched a row
};

/// Dual steps that are taken in touched rows only. A row catches up when it is next touched.
class LazyDual {
 public:
  /// One conjugate per row.
  explicit LazyDual(std::vector<Coordinate> conjugate) : conjugate_(std::move(conjugate)), row_(conjugate_.size()) {}

  void prepare(Range rows, const double* sigma) {
    for (Index i = rows.begin; i < rows.end; ++i) row_[i] = {conjugate_[i], 1 / sigma[i]};
  }

  /// Brings the touched rows up to the current iteration.
  void catch_up(const TouchedRows& touched, const Dual& dual) const {
    for (std::size_t k = 0; k < touched.row().size(); ++k) catch_up(touched.row()[k], touched.behind(k), dual);
  }

  /// The step of the iteration, at the new u.
  void step(const TouchedRows& touched, const Dual& dual) const {
    for (const Index i : touched.row()) {
      const double change = dual.change[i];
      dual.change[i] = 0;
      dual.u[i] += change;
      dual.y[i] = row_[i].step(dual.y[i], dual.u[i] + dual.extrapolation * change);
      dual.y_sum[i] += dual.y[i];
    }
  }

  void finish(Range rows, const TouchedRows& touched, Index iterations, const Dual& dual) const {
    for (Index i = rows.begin; i < rows.end; ++i) catch_up(i, touched.behind(i, iterations), dual);
  }

 private:
  void catch_up(Index i, double steps, const Dual& dual) const {
    dual.y_sum[i] += row_[i].run(dual.y[i], dual.u[i], steps);
  }

  std::vector<Coordinate> conjugate_;
  std::vector<RepeatedStep> row_;
};

}  // namespace saddleback
