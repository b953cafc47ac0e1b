/// \file
/// Losses that are a sum over the rows: the dual half of an iteration, and the gradient of smooth losses.
#pragma once

#include "lazy_dual.hpp"
#include "prox.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace saddleback {

/// The steps 1 / sigma of a kernel by row, and what a loss derives from them.
struct DualSteps {
  explicit DualSteps(Index rows) : size(rows), low(rows), high(rows), factor(rows) {}

  std::vector<double> size, low, high, factor;
};

template <class Map> std::vector<double> mapped(std::vector<double> values, const Map& map) {
  std::ranges::transform(values, values.begin(), map);
  return values;
}

class RowLoss {
 public:
  /// `curvature` bounds the second derivative by row, and is empty if there is no such bound.
  RowLoss(Index rows, std::vector<double> curvature) : rows_(rows), curvature_(std::move(curvature)) {}
  virtual ~RowLoss() = default;

  Index rows() const { return rows_; }
  bool smooth() const { return length(curvature_) == rows_; }
  const std::vector<double>& curvature() const { return curvature_; }

  /// Derives steps from sigma.
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

  /// y = gradient at u in the listed rows, for a smooth loss.
  virtual void gradient(const RowList& rows, const double* u, double* y) const = 0;

 private:
  Index rows_;
  std::vector<double> curvature_;
};

template <class Prox> SADDLEBACK_CLONES static void step_rows(Range rows, Dual dual, const double* step, Prox prox) {
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
template <class Derived> class SteppingLoss : public RowLoss {
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
      : SteppingLoss(length(conjugate.left), mapped(conjugate.quadratic, inverse)), f_(std::move(conjugate)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    kinked_ = f_.left != f_.right;
    bounded_ = std::ranges::any_of(f_.lower, [](double bound) { return bound != -infinity; }) ||
               std::ranges::any_of(f_.upper, [](double bound) { return bound != infinity; });
  }

  void prepare(Range rows, const double* sigma, DualSteps& steps) const override {
    RowLoss::prepare(rows, sigma, steps);
    for (Index i = rows.begin; i < rows.end; ++i) {
      steps.low[i] = steps.size[i] * f_.left[i];
      steps.high[i] = steps.size[i] * f_.right[i];
      steps.factor[i] = 1 / (1 + steps.size[i] * f_.quadratic[i]);
    }
  }

  template <class Body> void visit(const DualSteps& steps, const Body& body) const {
    with_map(steps.low, steps.high, steps.factor, body);
  }

  std::unique_ptr<LazyDual> lazy() const override { return std::make_unique<LazyDual>(f_.by_entry()); }

  void gradient(const RowList& rows, const double* u, double* y) const override {
    with_map(f_.left, f_.right, curvature(), [&](auto map) {
      if (const Range* range = std::get_if<Range>(&rows)) return map_range(*range, u, y, map);
      for_each_row(rows, [&](Index i) { y[i] = map(i, u[i]); });
    });
  }

 private:
  /// Without a quadratic term a smooth loss is linear, and the bounds alone determine y.
  static double inverse(double quadratic) { return quadratic > 0 ? 1 / quadratic : 0; }

  template <class Map> SADDLEBACK_CLONES static void map_range(Range rows, const double* u, double* y, Map map) {
#pragma omp simd
    for (Index i = rows.begin; i < rows.end; ++i) y[i] = map(i, u[i]);
  }

  /// v, moved towards 0 by the slope on its side, times a factor, within the bounds: the proximal map and the gradient.
  template <bool Kinked, bool Bounded> auto map(const double* low, const double* high, const double* factor) const {
    return [=, lower = f_.lower.data(), upper = f_.upper.data()](Index i, double v) {
      v = Kinked ? shrink(v, low[i], high[i]) : v - low[i];
      v *= factor[i];
      return Bounded ? clip(v, lower[i], upper[i]) : v;
    };
  }

  // The loops read only the parameters that the loss uses.
  template <class Body>
  void with_map(const std::vector<double>& left, const std::vector<double>& right, const std::vector<double>& scale,
                const Body& body) const {
    const double *low = left.data(), *high = right.data(), *factor = scale.data();
    if (kinked_ && bounded_) body(map<true, true>(low, high, factor));
    else if (kinked_) body(map<true, false>(low, high, factor));
    else if (bounded_) body(map<false, true>(low, high, factor));
    else body(map<false, false>(low, high, factor));
  }

  Coordinates f_;
  bool kinked_, bounded_;
};

/// weight * log(1 + exp(-label u)).
class LogisticLoss final : public SteppingLoss<LogisticLoss> {
 public:
  LogisticLoss(std::vector<double> label, std::vector<double> weight)
      : SteppingLoss(length(label), mapped(weight, [](double w) { return 0.25 * w; })), label_(std::move(label)),
        weight_(std::move(weight)) {}

  template <class Body> void visit(const DualSteps& steps, const Body& body) const {
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
  CallableLoss(Index rows, Callable prox) : SteppingLoss(rows, {}), prox_(prox) {}

  template <class Body> void visit(const DualSteps& steps, const Body& body) const {
    body([this, step = steps.size.data()](Index i, double v) {
      const double s = step[i];
      return v - s * prox_(v / s, 1 / s);
    });
  }

  void gradient(const RowList&, const double*, double*) const override {
    throw std::logic_error("a loss that is given by its proximal map has no gradient");
  }

 private:
  Callable prox_;
};

}  // namespace saddleback
