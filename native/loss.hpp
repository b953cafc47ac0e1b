/// \file
/// The dual half of an iteration, for losses that separate over the rows.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "lazy.hpp"
#include "matrix.hpp"
#include "prox.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace saddleback {

class Loss {
 public:
  explicit Loss(Index rows) : step_(rows) {}
  virtual ~Loss() = default;

  /// Takes over the strengths for the steps that follow.
  virtual void prepare(Range rows, const double* sigma) {
    for (Index i = rows.begin; i < rows.end; ++i) step_[i] = 1 / sigma[i];
  }

  virtual void step(Range rows, const Dual& dual) const = 0;

  /// bar = prox(y + step r) in the listed rows.
  virtual void look_ahead(std::span<const Index> rows, const double* r, const double* y,
                          double* bar) const = 0;

  /// The same steps with rows left behind, or null where these have no closed form.
  virtual std::unique_ptr<LazyDual> lazy() const { return nullptr; }

 protected:
  std::vector<double> step_;
};

/// r += v; y = prox(y + step (r + extrapolation v)); y_sum += y; v = 0.
template <class Prox>
SADDLEBACK_CLONES static void dual_step(Range rows, Dual dual, const double* step, Prox prox) {
#pragma omp simd
  for (Index i = rows.begin; i < rows.end; ++i) {
    const double change = dual.change[i];
    const double r = dual.r[i] + change;
    const double y = prox(i, dual.y[i] + step[i] * (r + dual.extrapolation * change));
    dual.r[i] = r;
    dual.y[i] = y;
    dual.y_sum[i] += y;
    dual.change[i] = 0;
  }
}

/// Both kinds of step for a loss that hands prox(i, v), its map for row i, to visit().
template <class Derived>
class RowLoss : public Loss {
 public:
  using Loss::Loss;

  void step(Range rows, const Dual& dual) const override {
    self().visit([&](auto prox) { dual_step(rows, dual, step_.data(), prox); });
  }

  void look_ahead(std::span<const Index> rows, const double* r, const double* y,
                  double* bar) const override {
    self().visit([&](auto prox) {
      for (const Index i : rows) bar[i] = prox(i, y[i] + step_[i] * r[i]);
    });
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

/// A loss whose conjugate is given by the five coordinate parameters.
class CoordinateLoss final : public RowLoss<CoordinateLoss> {
 public:
  using Parameter = std::vector<double>;

  CoordinateLoss(Parameter left, Parameter right, Parameter quadratic, Parameter lower,
                 Parameter upper)
      : RowLoss(static_cast<Index>(left.size())),
        left_(std::move(left)),
        right_(std::move(right)),
        quadratic_(std::move(quadratic)),
        lower_(std::move(lower)),
        upper_(std::move(upper)),
        low_(left_.size()),
        high_(left_.size()),
        factor_(left_.size()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto all = [](const Parameter& p, double value) {
      return std::all_of(p.begin(), p.end(), [=](double entry) { return entry == value; });
    };
    kinked_ = left_ != right_;
    bounded_ = !all(lower_, -infinity) || !all(upper_, infinity);
  }

  void prepare(Range rows, const double* sigma) override {
    Loss::prepare(rows, sigma);
    for (Index i = rows.begin; i < rows.end; ++i) {
      low_[i] = step_[i] * left_[i];
      high_[i] = step_[i] * right_[i];
      factor_[i] = 1 / (1 + step_[i] * quadratic_[i]);
    }
  }

  /// prox(i, v). Defined before visit() uses it, because its return type is deduced.
  template <bool Kinked, bool Bounded>
  auto map() const {
    return [low = low_.data(), high = high_.data(), factor = factor_.data(),
            lower = lower_.data(), upper = upper_.data()](Index i, double v) {
      v = Kinked ? shrink(v, low[i], high[i]) : v - low[i];
      v *= factor[i];
      return Bounded ? clip(v, lower[i], upper[i]) : v;
    };
  }

  // What a loss does not use it should not have to read for every row.
  template <class Body>
  void visit(const Body& body) const {
    if (kinked_) return bounded_ ? body(map<true, true>()) : body(map<true, false>());
    return bounded_ ? body(map<false, true>()) : body(map<false, false>());
  }

  std::unique_ptr<LazyDual> lazy() const override {
    std::vector<Coordinate> conjugate;
    conjugate.reserve(left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i)
      conjugate.push_back({left_[i], right_[i], quadratic_[i], lower_[i], upper_[i]});
    return std::make_unique<LazyDual>(std::move(conjugate));
  }

 private:
  Parameter left_, right_, quadratic_, lower_, upper_;
  Parameter low_, high_, factor_;
  bool kinked_, bounded_;
};

/// weight * log(1 + exp(-label u)).
class LogisticLoss final : public RowLoss<LogisticLoss> {
 public:
  LogisticLoss(std::vector<double> label, std::vector<double> weight)
      : RowLoss(static_cast<Index>(label.size())),
        label_(std::move(label)),
        weight_(std::move(weight)) {}

  template <class Body>
  void visit(const Body& body) const {
    body([this](Index i, double v) {
      return logistic_dual_prox(v, step_[i], label_[i], weight_[i]);
    });
  }

 private:
  std::vector<double> label_, weight_;
};

/// A loss given by its compiled proximal map, turned into that of its conjugate by Moreau.
class CallableLoss final : public RowLoss<CallableLoss> {
 public:
  CallableLoss(Index rows, Callable prox) : RowLoss(rows), prox_(prox) {}

  template <class Body>
  void visit(const Body& body) const {
    body([this](Index i, double v) {
      const double s = step_[i];
      return v - s * prox_(v / s, 1 / s);
    });
  }

 private:
  Callable prox_;
};

}  // namespace saddleback
