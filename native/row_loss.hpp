/// \file
/// Losses that are a sum over the rows: the dual half of an iteration, and the gradient of smooth losses.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "lazy_dual.hpp"
#include "prox.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

/// The steps 1 / sigma of a kernel by row, and what a loss derives from them.
struct DualSteps {
  std::vector<double> size, low, high, factor;
};

class RowLoss {
 public:
  explicit RowLoss(Index rows) : rows_(rows) {}
  virtual ~RowLoss() = default;

  Index rows() const { return rows_; }

  /// Steps for `prepare` to fill.
  virtual DualSteps new_steps() const { return {std::vector<double>(rows_), {}, {}, {}}; }

  virtual void prepare(Range rows, const double* sigma, DualSteps& steps) const {
    for (Index i = rows.begin; i < rows.end; ++i) steps.size[i] = 1 / sigma[i];
  }

  /// u += v; y = prox(y + step (u + extrapolation v)); y_sum += y; v = 0, with the proximal map of the conjugate.
  virtual void dual_step(Range rows, const DualSteps& steps, const Dual& dual) const = 0;

  /// bar = prox(y + step u) in the listed rows.
  virtual void dual_prox(std::span<const Index> rows, const DualSteps& steps, const double* u, const double* y,
                         double* bar) const = 0;

  /// The same steps taken lazily; null if repeated steps have no closed form.
  virtual std::unique_ptr<LazyDual> lazy() const { return nullptr; }

  virtual bool smooth() const { return true; }

  /// y = gradient at u in the listed rows, for a smooth loss.
  virtual void gradient(const RowList& rows, const double* u, double* y) const = 0;

 private:
  Index rows_;
};

template <class Prox>
SADDLEBACK_CLONES static void step_rows(Range rows, Dual dual, const double* step, Prox prox) {
#pragma omp simd
  for (Index i = rows.begin; i < rows.end; ++i) {
    const double change = dual.change[i];
    const double u = dual.u[i] + change;
    const double y = prox(i, dual.y[i] + step[i] * (u + dual.extrapolation * change));
    dual.u[i] = u;
    dual.y[i] = y;
    dual.y_sum[i] += y;
    dual.change[i] = 0;
  }
}

/// Both kinds of dual step, for a loss that passes prox(i, v), the map of row i, to the body of visit().
template <class Derived>
class SteppingLoss : public RowLoss {
 public:
  using RowLoss::RowLoss;

  void dual_step(Range rows, const DualSteps& steps, const Dual& dual) const override {
    self().visit(steps, [&](auto prox) { step_rows(rows, dual, steps.size.data(), prox); });
  }

  void dual_prox(std::span<const Index> rows, const DualSteps& steps, const double* u, const double* y,
                 double* bar) const override {
    self().visit(steps, [&](auto prox) {
      for (const Index i : rows) bar[i] = prox(i, y[i] + steps.size[i] * u[i]);
    });
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

/// A loss whose conjugate is a coordinate function in each row.
class CoordinateLoss final : public SteppingLoss<CoordinateLoss> {
 public:
  explicit CoordinateLoss(Coordinates conjugate)
      : SteppingLoss(static_cast<Index>(conjugate.left.size())), f_(std::move(conjugate)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto all = [](const std::vector<double>& p, double value) {
      return std::all_of(p.begin(), p.end(), [=](double entry) { return entry == value; });
    };
    kinked_ = f_.left != f_.right;
    bounded_ = !all(f_.lower, -infinity) || !all(f_.upper, infinity);
    slope_.reserve(f_.quadratic.size());
    // Without a quadratic term a smooth loss is linear, and the bounds alone determine y.
    for (const double q : f_.quadratic) slope_.push_back(q > 0 ? 1 / q : 0);
  }

  DualSteps new_steps() const override {
    const std::vector<double> empty(rows());
    return {empty, empty, empty, empty};
  }

  void prepare(Range rows, const double* sigma, DualSteps& steps) const override {
    RowLoss::prepare(rows, sigma, steps);
    for (Index i = rows.begin; i < rows.end; ++i) {
      steps.low[i] = steps.size[i] * f_.left[i];
      steps.high[i] = steps.size[i] * f_.right[i];
      steps.factor[i] = 1 / (1 + steps.size[i] * f_.quadratic[i]);
    }
  }

  template <bool Kinked, bool Bounded>
  auto map(const DualSteps& steps) const {
    return [low = steps.low.data(), high = steps.high.data(), factor = steps.factor.data(), lower = f_.lower.data(),
            upper = f_.upper.data()](Index i, double v) {
      v = Kinked ? shrink(v, low[i], high[i]) : v - low[i];
      v *= factor[i];
      return Bounded ? clip(v, lower[i], upper[i]) : v;
    };
  }

  // The loops read only the parameters that the loss uses.
  template <class Body>
  void visit(const DualSteps& steps, const Body& body) const {
    if (kinked_) return bounded_ ? body(map<true, true>(steps)) : body(map<true, false>(steps));
    return bounded_ ? body(map<false, true>(steps)) : body(map<false, false>(steps));
  }

  std::unique_ptr<LazyDual> lazy() const override { return std::make_unique<LazyDual>(f_.by_entry()); }

  void gradient(const RowList& rows, const double* u, double* y) const override {
    if (const Range* range = std::get_if<Range>(&rows)) {
      const auto run = kinked_ ? (bounded_ ? gradients<true, true> : gradients<true, false>)
                               : (bounded_ ? gradients<false, true> : gradients<false, false>);
      return run(*range, u, y, f_.left.data(), f_.right.data(), slope_.data(), f_.lower.data(), f_.upper.data());
    }
    for_each_row(rows, [&](Index i) {
      y[i] = clip(shrink(u[i], f_.left[i], f_.right[i]) * slope_[i], f_.lower[i], f_.upper[i]);
    });
  }

 private:
  template <bool Kinked, bool Bounded>
  SADDLEBACK_CLONES static void gradients(Range rows, const double* u, double* y, const double* left,
                                          const double* right, const double* slope, const double* lower,
                                          const double* upper) {
#pragma omp simd
    for (Index i = rows.begin; i < rows.end; ++i) {
      const double excess = Kinked ? shrink(u[i], left[i], right[i]) : u[i] - left[i];
      const double free = excess * slope[i];
      y[i] = Bounded ? clip(free, lower[i], upper[i]) : free;
    }
  }

  Coordinates f_;
  std::vector<double> slope_;
  bool kinked_, bounded_;
};

/// weight * log(1 + exp(-label u)).
class LogisticLoss final : public SteppingLoss<LogisticLoss> {
 public:
  LogisticLoss(std::vector<double> label, std::vector<double> weight)
      : SteppingLoss(static_cast<Index>(label.size())), label_(std::move(label)), weight_(std::move(weight)) {}

  template <class Body>
  void visit(const DualSteps& steps, const Body& body) const {
    body([this, step = steps.size.data()](Index i, double v) {
      return logistic_dual_prox(v, step[i], label_[i], weight_[i]);
    });
  }

  void gradient(const RowList& rows, const double* u, double* y) const override {
    for_each_row(rows, [&](Index i) { y[i] = -label_[i] * weight_[i] / (1 + std::exp(label_[i] * u[i])); });
  }

 private:
  std::vector<double> label_, weight_;
};

/// A loss given by its compiled proximal map, from which Moreau's identity derives that of the conjugate.
class CallableLoss final : public SteppingLoss<CallableLoss> {
 public:
  CallableLoss(Index rows, Callable prox) : SteppingLoss(rows), prox_(prox) {}

  template <class Body>
  void visit(const DualSteps& steps, const Body& body) const {
    body([this, step = steps.size.data()](Index i, double v) {
      const double s = step[i];
      return v - s * prox_(v / s, 1 / s);
    });
  }

  bool smooth() const override { return false; }
  void gradient(const RowList&, const double*, double*) const override {
    throw std::logic_error("a loss that is given by its proximal map has no gradient");
  }

 private:
  Callable prox_;
};

/// A loss whose second derivative is at most `curvature`, by row.
struct SmoothLoss {
  SmoothLoss(std::shared_ptr<const RowLoss> row_loss, std::vector<double> bound)
      : loss(std::move(row_loss)), curvature(std::move(bound)) {
    if (!loss->smooth()) throw std::invalid_argument("descent needs a smooth loss: coordinate or logistic");
    if (static_cast<Index>(curvature.size()) != loss->rows())
      throw std::invalid_argument("the curvature must have one entry per row");
  }

  std::shared_ptr<const RowLoss> loss;
  std::vector<double> curvature;
};

}  // namespace saddleback
