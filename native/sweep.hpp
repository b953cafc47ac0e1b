/// \file
/// The iteration: drawn blocks of x take a proximal step against the same y,
/// then all of y takes one against the new A x.
#pragma once

#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "blocks.hpp"
#include "draws.hpp"
#include "exchange.hpp"
#include "lazy.hpp"
#include "loss.hpp"
#include "matrix.hpp"
#include "products.hpp"
#include "prox.hpp"
#include "threads.hpp"

namespace saddleback {

/// The separable part of the penalty.
struct Penalty {
  std::vector<Coordinate> coordinate;
  std::vector<Callable> callable;
  std::vector<int> callable_of;  ///< by column, -1 for none; empty without callables

  double operator()(Index column, double v, double step) const {
    if (!callable_of.empty() && callable_of[column] >= 0)
      return callable[callable_of[column]](v, step);
    return prox(coordinate[column], v, step);
  }
};

/// The vectors of length n of an iteration, and the y it starts from.
struct Primal {
  const double* h;
  double* x;
  double* x_sum;  ///< null where no sum is kept
  const double* y;
};

class Kernel {
 public:
  Kernel(Index rows, std::vector<std::unique_ptr<Columns>> matrices, Blocks blocks,
         Penalty penalty, std::unique_ptr<Loss> loss)
      : rows_(rows),
        matrices_(std::move(matrices)),
        blocks_(std::move(blocks)),
        penalty_(std::move(penalty)),
        loss_(std::move(loss)),
        first_column_{0},
        order_(blocks_.count()),
        summed_(penalty_.coordinate.size()) {
    for (const auto& matrix : matrices_) {
      first_column_.push_back(first_column_.back() + matrix->count());
      stored_ += static_cast<double>(matrix->stored());
    }
    validate();
    run_ = run_length();
  }

  Index rows() const { return rows_; }
  Index columns() const { return static_cast<Index>(penalty_.coordinate.size()); }

  /// `iterations` iterations of `size` draws each. `exchange`, if there is one, gets the change of
  /// A x in every iteration and adds to it what others have changed; draws beyond the last block
  /// are then those of nobody.
  void sweep(const Index* draws, Index iterations, Index size, const double* sigma,
             const Primal& primal, const Dual& dual_without_change, const Exchange& exchange = {}) {
    std::lock_guard lock(mutex_);
    if (!exchange) validate(draws, iterations * size);
    make_lanes(lanes_of(size));
    Lease lease;
    Dual dual = dual_without_change;
    dual.change = sums_->lane(0);
    const int lanes = sums_->lanes();
    const int chunks = parts_for(static_cast<double>(rows_) * (4 + lanes - 1));

    lease.run(chunks, [&](int i) { loss_->prepare(part(rows_, i, chunks), sigma); });
    std::fill(summed_.begin(), summed_.end(), 0);
    for (Index t = 0; t < iterations; ++t, draws += size) {
      const auto drawn = exchange ? order_.existing(draws, size) : order_(draws, size);
      lease.run(lanes, [&](int i) { advance(drawn, t, primal, i); });
      if (exchange) {
        lease.run(chunks, [&](int i) { sums_->fold(part(rows_, i, chunks)); });
        exchange(dual.change);
      }
      lease.run(chunks, [&](int i) {
        const Range chunk = part(rows_, i, chunks);
        if (!exchange) sums_->fold(chunk);
        loss_->step(chunk, dual);
      });
    }
    finish_sum(iterations, primal);
  }

  /// The same iterations, each at the cost of the entries in the drawn columns.
  void sweep_lazily(const Index* draws, Index iterations, Index size, const double* sigma,
                    const Primal& primal, const Dual& dual_without_change) {
    std::lock_guard lock(mutex_);
    validate(draws, iterations * size);
    if (!lazy_dual_) lazy_dual_ = loss_->lazy();
    if (!lazy_dual_) throw std::invalid_argument("the steps of this loss have no closed form");
    make_lanes(1);
    Lease lease;
    Dual dual = dual_without_change;
    dual.change = sums_->lane(0);
    const int chunks = parts_for(16 * static_cast<double>(rows_));

    lease.run(chunks, [&](int i) { lazy_dual_->prepare(part(rows_, i, chunks), sigma); });
    begin_touching();
    for (Index t = 0; t < iterations; ++t, draws += size) {
      const auto drawn = order_(draws, size);
      touch(drawn, t);
      lazy_dual_->catch_up(*touched_, dual);
      advance(drawn, t, primal, 0);
      lazy_dual_->step(*touched_, dual);
    }
    lease.run(chunks, [&](int i) {
      lazy_dual_->finish(part(rows_, i, chunks), *touched_, iterations, dual);
    });
    finish_sum(iterations, primal);
  }

  /// The iteration of PURE-CD: y moves only in touched rows, first to `bar`,
  /// which x steps against and which is summed, then by theta v / sigma.
  /// primal.y and the last `bar`, in all rows, are prox(y + r / sigma).
  void sweep_pure(const Index* draws, Index iterations, Index size, const double* sigma,
                  const double* theta, const Primal& primal, const Dual& dual_without_change,
                  double* bar) {
    std::lock_guard lock(mutex_);
    validate(draws, iterations * size);
    make_lanes(1);
    Lease lease;
    Dual dual = dual_without_change;
    dual.change = sums_->lane(0);

    loss_->prepare({0, rows_}, sigma);
    begin_touching();
    for (Index t = 0; t < iterations; ++t, draws += size) {
      const auto drawn = order_(draws, size);
      touch(drawn, t);
      const auto& rows = touched_->row();
      look_ahead(lease, rows, dual, bar);
      for (std::size_t k = 0; k < rows.size(); ++k)
        dual.y_sum[rows[k]] += (touched_->behind(k) + 1) * bar[rows[k]];
      advance(drawn, t, primal, 0);
      for (const Index i : rows) {
        const double change = dual.change[i];
        dual.change[i] = 0;
        dual.r[i] += change;
        dual.y[i] = bar[i] + theta[i] / sigma[i] * change;
      }
    }
    entries_.resize(rows_);
    std::iota(entries_.begin(), entries_.end(), 0);
    look_ahead(lease, entries_, dual, bar);
    for (Index i = 0; i < rows_; ++i) dual.y_sum[i] += touched_->behind(i, iterations) * bar[i];
    finish_sum(iterations, primal);
  }

  /// The primal half of one iteration; writes the change of A x to `change`.
  void primal_step(const Index* draws, Index size, const Primal& primal, double* change) {
    std::lock_guard lock(mutex_);
    validate(draws, size);
    make_lanes(lanes_of(size));
    Lease lease;
    const int lanes = sums_->lanes();
    const int chunks = parts_for(static_cast<double>(rows_) * lanes);
    const auto drawn = order_(draws, size);
    lease.run(lanes, [&](int i) { advance(drawn, 0, primal, i); });
    lease.run(chunks, [&](int i) {
      const Range chunk = part(rows_, i, chunks);
      sums_->fold(chunk);
      double* total = sums_->lane(0);
      std::copy(total + chunk.begin, total + chunk.end, change + chunk.begin);
      std::fill(total + chunk.begin, total + chunk.end, 0.0);
    });
  }

 private:
  /// What a lane needs for columns that it moves together.
  struct Scratch {
    Scratch(Index run, Index largest_block)
        : column(2 * run), b(std::max(run, largest_block)), h(largest_block) {}

    std::vector<Index> column;
    std::vector<double> b, h;
    bool moving = true;  ///< whether most columns moved of late: v is fetched early only then
  };

  void validate() const {
    for (const auto& matrix : matrices_) {
      if (matrix->rows() != rows_) throw std::invalid_argument("a matrix has other rows");
      detail::require_valid(matrix->valid());
    }
    if (first_column_.back() != columns() || blocks_.columns() != columns())
      throw std::invalid_argument("matrices, blocks and penalty differ in their columns");
    if (penalty_.callable_of.empty()) return;
    for (const Block& block : blocks_)
      for (Index k = 0; k < block.size; ++k)
        if (block.weight > 0 && penalty_.callable_of[block.column[k]] >= 0)
          throw std::invalid_argument("a callable cannot serve a column of a weighted group");
  }

  void validate(const Index* draws, Index count) const {
    for (Index i = 0; i < count; ++i)
      if (draws[i] < 0 || draws[i] >= blocks_.count())
        throw std::out_of_range("a drawn block does not exist");
  }

  // How many columns a lane multiplies with y before it adds them to v: as
  // many as are sure to be in cache still when they are added, with the rows
  // of y and v that they touch and the columns that come next.
  Index run_length() const {
    constexpr double entries = 1 << 12;
    const double each = stored_ / static_cast<double>(std::max<Index>(1, columns()));
    const double run = std::clamp<double>(entries / std::max(1.0, each), kTogether, kBatch);
    return static_cast<Index>(run) / kTogether * kTogether;
  }

  int lanes_of(Index size) const {
    const double share =
        static_cast<double>(size) / static_cast<double>(std::max<Index>(1, blocks_.count()));
    const int most = static_cast<int>(std::clamp<Index>(size, 1, 1 << 10));
    return std::min(lanes_for(stored_ * share, rows_),
                    static_cast<int>(std::bit_floor(static_cast<unsigned>(most))));
  }

  // The lanes are left as they are found, with all sums zero, so that calls
  // with equally many need not set them up again.
  void make_lanes(int lanes) {
    if (sums_ && sums_->lanes() == lanes) return;
    sums_.reset();
    scratch_.assign(lanes, Scratch(run_, blocks_.largest()));
    sums_.emplace(lanes, rows_);
  }

  /// The proximal steps of the blocks that fall to one lane.
  void advance(std::span<const Index> drawn, Index t, const Primal& primal, int lane) {
    const Range range = part(static_cast<Index>(drawn.size()), lane, sums_->lanes());
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
        if (count < 2 * run_) continue;  // a run waits until the one after it is known
        advance_columns(pending, run_, run_, t, primal, change, scratch);
        count = std::copy(pending + run_, pending + count, pending) - pending;
      }
    }
    const Index first = std::min(run_, count), rest = count - first;
    advance_columns(pending, first, rest, t, primal, change, scratch);
    advance_columns(pending + first, rest, 0, t, primal, change, scratch);
  }

  void advance_columns(const Index* column, Index count, Index following, Index t,
                       const Primal& primal, double* change, Scratch& scratch) {
    if (count == 0) return;
    double* factor = scratch.b.data();
    for (Index k = 0; k < count; ++k) simd::prefetch(&penalty_.coordinate[column[k]]);
    dots(column, count, primal.y, factor, scratch.moving ? change : nullptr);
    Index moved = 0;
    for (Index k = 0; k < count; ++k) {
      const Index d = column[k];
      const double step = 1 / primal.h[d];
      factor[k] = move(d, penalty_(d, primal.x[d] - step * factor[k], step), t, primal);
      moved += factor[k] != 0;
    }
    scratch.moving = 2 * moved > count;
    add(column, count, factor, change, following);
  }

  void advance_group(const Block& block, Index t, const Primal& primal, double* change,
                     Scratch& scratch) {
    const auto& [column, count, weight] = block;
    double *b = scratch.b.data(), *h = scratch.h.data();
    dots(column, count, primal.y, b, change);
    for (Index k = 0; k < count; ++k) {
      const Index d = column[k];
      const Coordinate& f = penalty_.coordinate[d];
      h[k] = primal.h[d];
      b[k] = shrink(h[k] * primal.x[d] - b[k], f.left, f.right);
    }
    const double rho = group_radius(b, h, count, weight);
    for (Index k = 0; k < count; ++k)
      b[k] = move(column[k], b[k] * (rho / (h[k] * rho + weight)), t, primal);
    add(column, count, b, change);
  }

  /// Sets x[d] and returns by how much it changed. The sum of x is brought up
  /// to date only here: between moves x[d] adds the same value each iteration.
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

  /// Adds to the sum of x what every column has been since it last moved.
  void finish_sum(Index iterations, const Primal& primal) const {
    for (Index d = 0; d < columns(); ++d)
      primal.x_sum[d] += static_cast<double>(iterations - summed_[d]) * primal.x[d];
  }

  void begin_touching() {
    std::fill(summed_.begin(), summed_.end(), 0);
    if (!touched_) touched_.emplace(rows_);
    touched_->reset();
  }

  /// Collects the rows in which drawn columns have entries.
  void touch(std::span<const Index> drawn, Index t) {
    entries_.clear();
    for (const Index j : drawn)
      for (Index k = 0; k < blocks_[j].size; ++k) {
        const Index column = blocks_[j].column[k];
        const std::size_t home = home_of(column);
        matrices_[home]->append_rows(column - first_column_[home], entries_);
      }
    touched_->assign(entries_, t);
  }

  void look_ahead(Lease& lease, std::span<const Index> rows, const Dual& dual, double* bar) const {
    const int chunks = parts_for(16 * static_cast<double>(rows.size()));
    lease.run(chunks, [&](int i) {
      const Range own = part(static_cast<Index>(rows.size()), i, chunks);
      loss_->look_ahead(rows.subspan(own.begin, own.end - own.begin), dual.r, dual.y, bar);
    });
  }

  void dots(const Index* column, Index count, const double* y, double* out,
            const double* change) const {
    visit(column, count, 0,
          [&](const Columns& matrix, const Index* local, int size, int, Index at) {
            matrix.dots(local, size, y, out + at, change);
          });
  }

  void add(const Index* column, Index count, const double* factor, double* change,
           Index following = 0) const {
    visit(column, count, following,
          [&](const Columns& matrix, const Index* local, int size, int further, Index at) {
            matrix.add(local, size, factor + at, change, further);
          });
  }

  std::size_t home_of(Index column) const {
    std::size_t home = 0;
    while (column >= first_column_[home + 1]) ++home;
    return home;
  }

  /// Cuts a list of columns into batches that lie in one matrix each, and
  /// shows each batch what follows it there, up to `following` after the list.
  template <class Body>
  void visit(const Index* column, Index count, Index following, const Body& body) const {
    for (Index at = 0; at < count;) {
      const std::size_t home = home_of(column[at]);
      const Index first = first_column_[home], stop = first_column_[home + 1];
      const Index most = std::min(Index{2} * kBatch, count + following - at);
      Index local[2 * kBatch];
      int seen = 0;
      for (; seen < most && column[at + seen] >= first && column[at + seen] < stop; ++seen)
        local[seen] = column[at + seen] - first;
      const int size = static_cast<int>(std::min<Index>({seen, kBatch, count - at}));
      body(*matrices_[home], local, size, seen - size, at);
      at += size;
    }
  }

  Index rows_;
  std::vector<std::unique_ptr<Columns>> matrices_;
  Blocks blocks_;
  Penalty penalty_;
  std::unique_ptr<Loss> loss_;
  std::vector<Index> first_column_;
  double stored_ = 0;
  Index run_ = 0;

  std::mutex mutex_;  // for what follows, which calls share
  DrawOrder order_;
  std::vector<Index> summed_;  ///< iterations already in x_sum, by column
  std::optional<Accumulators> sums_;
  std::vector<Scratch> scratch_;
  std::unique_ptr<LazyDual> lazy_dual_;
  std::optional<TouchedRows> touched_;
  std::vector<Index> entries_;  ///< rows of the entries of the drawn columns
};

}  // namespace saddleback
