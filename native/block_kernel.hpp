/// \file
/// The block-coordinate iteration: drawn blocks of x take a proximal step against the same y, then all of y takes a
/// step against the new u = A x.
#pragma once

#include <mutex>
#include <numeric>
#include <optional>

#include "blocks.hpp"
#include "draw_order.hpp"
#include "lazy_dual.hpp"
#include "products.hpp"
#include "prox.hpp"
#include "row_loss.hpp"
#include "stack.hpp"
#include "threads.hpp"

namespace saddleback {

/// The separable part of the penalty.
struct Penalty {
  std::vector<Coordinate> coordinate;
  std::vector<Callable> callable;
  std::vector<int> callable_of;  ///< by column, -1 for none; empty without callables

  double operator()(Index column, double v, double step) const {
    if (!callable_of.empty() && callable_of[column] >= 0) return callable[callable_of[column]](v, step);
    return prox(coordinate[column], v, step);
  }
};

class Kernel {
 public:
  Kernel(Stack matrix, Blocks blocks, Penalty penalty, std::shared_ptr<const RowLoss> loss)
      : matrix_(std::move(matrix)), blocks_(std::move(blocks)), penalty_(std::move(penalty)), loss_(std::move(loss)),
        run_(run_length()), order_(blocks_.count()), steps_(matrix_.rows()), summed_(penalty_.coordinate.size()) {
    validate();
  }

  Index rows() const { return matrix_.rows(); }
  Index columns() const { return length(penalty_.coordinate); }

  /// One iteration for each set of draws. With `exchange`, the change of A x in every iteration is added up over the
  /// processes, and draws of blocks that do not exist here belong to other processes.
  void sweep(Draws draws, const double* sigma, const Primal& primal, Dual dual, const Exchange& exchange = {}) {
    std::lock_guard lock(mutex_);
    if (!exchange) validate(draws);
    begin(lanes_of(draws.size), dual);
    Lease lease;
    const int lanes = sums_->lanes();
    const int chunks = parts_for(static_cast<double>(rows()) * (4 + lanes - 1));

    lease.run(chunks, [&](int i) { loss_->prepare(part(rows(), i, chunks), sigma, steps_); });
    std::fill(summed_.begin(), summed_.end(), 0);
    for (Index t = 0; t < draws.iterations; ++t, draws.block += draws.size) {
      const auto drawn = exchange ? order_.existing(draws.block, draws.size) : order_(draws.block, draws.size);
      lease.run(lanes, [&](int i) { advance(drawn, t, primal, i); });
      if (exchange) {
        lease.run(chunks, [&](int i) { sums_->fold(part(rows(), i, chunks)); });
        exchange(dual.change);
      }
      lease.run(chunks, [&](int i) {
        const Range chunk = part(rows(), i, chunks);
        if (!exchange) sums_->fold(chunk);
        loss_->dual_step(chunk, steps_, dual);
      });
    }
    finish_sum(draws.iterations, primal);
  }

  /// The same iterations, each at the cost of the entries in the drawn columns.
  void sweep_lazily(Draws draws, const double* sigma, const Primal& primal, Dual dual) {
    std::lock_guard lock(mutex_);
    validate(draws);
    if (!lazy_dual_) lazy_dual_ = loss_->lazy();
    if (!lazy_dual_) throw std::invalid_argument("the steps of this loss have no closed form");
    begin(1, dual);
    Lease lease;
    const int chunks = parts_for(16 * static_cast<double>(rows()));

    lease.run(chunks, [&](int i) { lazy_dual_->prepare(part(rows(), i, chunks), sigma); });
    for_each_touching(draws, [&](std::span<const Index> drawn, Index t) {
      lazy_dual_->catch_up(touched_, dual);
      advance(drawn, t, primal, 0);
      lazy_dual_->step(touched_, dual);
    });
    lease.run(chunks, [&](int i) { lazy_dual_->finish(part(rows(), i, chunks), touched_, draws.iterations, dual); });
    finish_sum(draws.iterations, primal);
  }

  /// The iteration of PURE-CD: y moves only in touched rows, first to `bar`, which x steps against and which is summed,
  /// then by theta v / sigma. primal.y and the final `bar`, in all rows, are prox(y + u / sigma).
  void sweep_pure(Draws draws, const double* sigma, const double* theta, const Primal& primal, Dual dual, double* bar) {
    std::lock_guard lock(mutex_);
    validate(draws);
    begin(1, dual);
    Lease lease;

    loss_->prepare(matrix_.all(), sigma, steps_);
    for_each_touching(draws, [&](std::span<const Index> drawn, Index t) {
      const auto& touched = touched_.row();
      look_ahead(lease, touched, dual, bar);
      for (std::size_t k = 0; k < touched.size(); ++k)
        dual.y_sum[touched[k]] += (touched_.behind(k) + 1) * bar[touched[k]];
      advance(drawn, t, primal, 0);
      for (const Index i : touched) {
        const double change = dual.change[i];
        dual.change[i] = 0;
        dual.u[i] += change;
        dual.y[i] = bar[i] + theta[i] / sigma[i] * change;
      }
    });
    entries_.resize(rows());
    std::iota(entries_.begin(), entries_.end(), 0);
    look_ahead(lease, entries_, dual, bar);
    for (Index i = 0; i < rows(); ++i) dual.y_sum[i] += touched_.behind(i, draws.iterations) * bar[i];
    finish_sum(draws.iterations, primal);
  }

  /// The primal half of one iteration; writes the change of A x to `change`.
  void primal_step(const Index* block, Index size, const Primal& primal, double* change) {
    std::lock_guard lock(mutex_);
    validate({block, 1, size});
    Dual dual{};
    begin(lanes_of(size), dual);
    Lease lease;
    const int lanes = sums_->lanes();
    const int chunks = parts_for(static_cast<double>(rows()) * lanes);
    const auto drawn = order_(block, size);
    lease.run(lanes, [&](int i) { advance(drawn, 0, primal, i); });
    lease.run(chunks, [&](int i) {
      const Range chunk = part(rows(), i, chunks);
      sums_->fold(chunk);
      std::copy(dual.change + chunk.begin, dual.change + chunk.end, change + chunk.begin);
      std::fill(dual.change + chunk.begin, dual.change + chunk.end, 0.0);
    });
  }

 private:
  /// What a lane needs for the columns that it moves together.
  struct Scratch {
    Scratch(Index run, Index largest_block) : column(2 * run), b(std::max(run, largest_block)), h(largest_block) {}

    std::vector<Index> column;
    std::vector<double> b, h;
    bool moving = true;  ///< whether most columns moved recently: only then v is prefetched
  };

  void validate() const {
    if (matrix_.columns() != columns() || blocks_.columns() != columns())
      throw std::invalid_argument("matrices, blocks and penalty differ in their columns");
    blocks_.require_groups(penalty_.coordinate, false);
    if (penalty_.callable_of.empty()) return;
    for (const Block& block : blocks_)
      for (Index k = 0; k < block.size; ++k)
        if (block.weight > 0 && penalty_.callable_of[block.column[k]] >= 0)
          throw std::invalid_argument("a callable cannot serve a column of a weighted group");
  }

  void validate(const Draws& draws) const {
    const auto exists = [&](Index block) { return block >= 0 && block < blocks_.count(); };
    if (!std::all_of(draws.block, draws.block + draws.iterations * draws.size, exists))
      throw std::out_of_range("a drawn block does not exist");
  }

  // How many columns a lane multiplies with y before it adds them to v: as many as certainly stay in cache until they
  // are added, with the rows of y and v that they touch and the columns that come next.
  Index run_length() const {
    constexpr double entries = 1 << 12;
    const double run = std::clamp<double>(entries / std::max(1.0, matrix_.stored_per_column()), kTogether, kBatch);
    return static_cast<Index>(run) / kTogether * kTogether;
  }

  int lanes_of(Index size) const {
    const double share = static_cast<double>(size) / static_cast<double>(std::max<Index>(1, blocks_.count()));
    const int most = static_cast<int>(std::clamp<Index>(size, 1, 1 << 10));
    return std::min(lanes_for(matrix_.stored() * share, rows()),
                    static_cast<int>(std::bit_floor(static_cast<unsigned>(most))));
  }

  // Calls leave all sums at zero, so that a call with as many lanes as the one before needs no new sums.
  void begin(int lanes, Dual& dual) {
    if (!sums_ || sums_->lanes() != lanes) {
      sums_.reset();
      scratch_.assign(lanes, Scratch(run_, blocks_.largest()));
      sums_.emplace(lanes, rows());
    }
    dual.change = sums_->lane(0);
  }

  /// The proximal steps of the blocks of one lane.
  void advance(std::span<const Index> drawn, Index t, const Primal& primal, int lane) {
    const Range range = part(length(drawn), lane, sums_->lanes());
    double* change = sums_->lane(lane);
    Scratch& scratch = scratch_[lane];
    Index* pending = scratch.column.data();
    Index count = 0;
    constexpr Index ahead = 16;
    for (Index k = range.begin; k < range.end; ++k) {
      simd::prefetch(&blocks_[drawn[std::min(k + ahead, range.end - 1)]]);
      const Block& block = blocks_[drawn[k]];
      if (block.weight > 0) {
        advance_group(block, t, primal, change, scratch);
        continue;
      }
      for (Index i = 0; i < block.size; ++i) {
        pending[count++] = block.column[i];
        if (count < 2 * run_) continue;  // a run waits until the next one is known
        advance_columns(pending, run_, run_, t, primal, change, scratch);
        count = std::copy(pending + run_, pending + count, pending) - pending;
      }
    }
    const Index first = std::min(run_, count), rest = count - first;
    advance_columns(pending, first, rest, t, primal, change, scratch);
    advance_columns(pending + first, rest, 0, t, primal, change, scratch);
  }

  void advance_columns(const Index* column, Index count, Index following, Index t, const Primal& primal, double* change,
                       Scratch& scratch) {
    if (count == 0) return;
    double* factor = scratch.b.data();
    for (Index k = 0; k < count; ++k) simd::prefetch(&penalty_.coordinate[column[k]]);
    matrix_.dots(matrix_.all(), column, count, primal.y, factor, scratch.moving ? change : nullptr);
    Index moved = 0;
    for (Index k = 0; k < count; ++k) {
      const Index d = column[k];
      const double step = 1 / primal.h[d];
      factor[k] = move(d, penalty_(d, primal.x[d] - step * factor[k], step), t, primal);
      moved += factor[k] != 0;
    }
    scratch.moving = 2 * moved > count;
    matrix_.add(matrix_.all(), column, count, factor, change, following);
  }

  void advance_group(const Block& block, Index t, const Primal& primal, double* change, Scratch& scratch) {
    const auto& [column, count, weight] = block;
    double *b = scratch.b.data(), *h = scratch.h.data();
    matrix_.dots(matrix_.all(), column, count, primal.y, b, change);
    for (Index k = 0; k < count; ++k) h[k] = primal.h[column[k]];
    const double rho = shrink_group(block, penalty_.coordinate, primal.x, h, b);
    for (Index k = 0; k < count; ++k) b[k] = move(column[k], b[k] * (rho / (h[k] * rho + weight)), t, primal);
    matrix_.add(matrix_.all(), column, count, b, change);
  }

  /// Sets x[d] and returns its change. The sum of x is updated only here and in finish_sum: until the next move x[d]
  /// adds the same value in each iteration.
  double move(Index d, double to, Index t, const Primal& primal) {
    const double from = primal.x[d];
    if (to == from) return 0;
    if (primal.x_sum) {
      primal.x_sum[d] += static_cast<double>(t - summed_[d]) * from;
      summed_[d] = t;
    }
    primal.x[d] = to;
    return to - from;
  }

  void finish_sum(Index iterations, const Primal& primal) const {
    for (Index d = 0; d < columns(); ++d) primal.x_sum[d] += static_cast<double>(iterations - summed_[d]) * primal.x[d];
  }

  /// Calls body(drawn, t) in iteration t, with the rows in which the drawn columns have entries in touched_.
  template <class Body> void for_each_touching(Draws draws, const Body& body) {
    std::fill(summed_.begin(), summed_.end(), 0);
    touched_.reset(rows());
    for (Index t = 0; t < draws.iterations; ++t, draws.block += draws.size) {
      const auto drawn = order_(draws.block, draws.size);
      entries_.clear();
      for (const Index j : drawn)
        for (Index k = 0; k < blocks_[j].size; ++k) {
          const auto [matrix, column] = matrix_.find(blocks_[j].column[k]);
          matrix.append_rows(column, entries_);
        }
      touched_.assign(entries_, t);
      body(drawn, t);
    }
  }

  void look_ahead(Lease& lease, std::span<const Index> rows, const Dual& dual, double* bar) const {
    const int chunks = parts_for(16 * static_cast<double>(rows.size()));
    lease.run(chunks, [&](int i) {
      const Range own = part(length(rows), i, chunks);
      loss_->dual_prox(rows.subspan(own.begin, own.size()), steps_, dual.u, dual.y, bar);
    });
  }

  Stack matrix_;
  Blocks blocks_;
  Penalty penalty_;
  std::shared_ptr<const RowLoss> loss_;
  Index run_;

  std::mutex mutex_;  // for the members below, which calls share
  DrawOrder order_;
  DualSteps steps_;
  std::vector<Index> summed_;  ///< iterations already in x_sum, by column
  std::optional<Accumulators> sums_;
  std::vector<Scratch> scratch_;
  std::unique_ptr<LazyDual> lazy_dual_;
  TouchedRows touched_;
  std::vector<Index> entries_;  ///< rows of the entries of the drawn columns
};

}  // namespace saddleback
