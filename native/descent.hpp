/// \file
/// Block coordinate descent on a smooth loss: the iteration with y eliminated,
/// y = gradient of the loss at A x.
///
/// Blocks are taken in panels. The loss is majorised by its curvature,
/// g(u + v) <= g(u) + y'v + v'Cv/2, and a panel minimises that over its blocks,
/// one after the other, exactly as if y were renewed after each: what a block
/// does to the products of the next ones is known from the panel's Gram matrix
/// A_p'C A_p. So each panel is read once for its products with y and once,
/// while it is still in cache, for what its moves add to A x.
#pragma once

#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "blocks.hpp"
#include "exchange.hpp"
#include "gradient.hpp"
#include "matrix.hpp"
#include "products.hpp"
#include "prox.hpp"
#include "threads.hpp"

namespace saddleback {

/// Matrices side by side.
class Stack {
 public:
  explicit Stack(std::vector<std::unique_ptr<Columns>> matrices)
      : matrices_(std::move(matrices)), first_{0} {
    for (const auto& matrix : matrices_) {
      first_.push_back(first_.back() + matrix->count());
      stored_ += static_cast<double>(matrix->stored());
      sliceable_ &= matrix->sliceable();
      detail::require_valid(matrix->valid());
    }
  }

  Index columns() const { return first_.back(); }
  double stored() const { return stored_; }
  bool sliceable() const { return sliceable_; }
  bool all_have(Index rows) const {
    for (const auto& matrix : matrices_)
      if (matrix->rows() != rows) return false;
    return true;
  }

  void dots(Range rows, const Index* column, Index count, const double* y, double* out) const {
    visit(column, count, [&](const Columns& matrix, const Index* local, int size, Index at) {
      matrix.dots_in(rows, local, size, y, out + at);
    });
  }

  void add(Range rows, const Index* column, Index count, const double* factor, double* v) const {
    visit(column, count, [&](const Columns& matrix, const Index* local, int size, Index at) {
      matrix.add_in(rows, local, size, factor + at, v);
    });
  }

  /// Calls body() while weight * column stands in the vector v, which is 0 before and after.
  template <class Body>
  void with_scattered(Index column, const double* weight, double* v, const Body& body) const {
    visit(&column, 1, [&](const Columns& matrix, const Index* local, int, Index) {
      matrix.scatter(*local, weight, v);
      body();
      matrix.erase(*local, v);
    });
  }

  void refresh(const Index* column, Index count, const Gradient& gradient, const double* u,
               double* y) const {
    visit(column, count, [&](const Columns& matrix, const Index* local, int size, Index) {
      for (int k = 0; k < size; ++k) matrix.refresh(local[k], gradient, u, y);
    });
  }

 private:
  /// Cuts a list of columns into batches that lie in one matrix each.
  template <class Body>
  void visit(const Index* column, Index count, const Body& body) const {
    for (Index at = 0; at < count;) {
      std::size_t home = 0;
      while (column[at] >= first_[home + 1]) ++home;
      Index local[kBatch];
      int size = 0;
      for (; size < kBatch && at + size < count; ++size) {
        const Index d = column[at + size];
        if (d < first_[home] || d >= first_[home + 1]) break;
        local[size] = d - first_[home];
      }
      body(*matrices_[home], local, size, at);
      at += size;
    }
  }

  std::vector<std::unique_ptr<Columns>> matrices_;
  std::vector<Index> first_;
  double stored_ = 0;
  bool sliceable_ = true;
};

/// A smooth loss that separates over the rows: its gradient, and a bound on its second derivative.
struct SmoothLoss {
  Gradient gradient;
  std::vector<double> curvature;
};

class Descent {
 public:
  /// `measured`, if given, saves the work on its panels: its blocks and columns must be the first ones of these.
  Descent(Index rows, Stack matrix, Blocks blocks, std::vector<Coordinate> penalty,
          std::shared_ptr<const SmoothLoss> loss, Index width, const Descent* measured)
      : rows_(rows),
        matrix_(std::move(matrix)),
        blocks_(std::move(blocks)),
        penalty_(std::move(penalty)),
        loss_(std::move(loss)),
        gradient_(loss_->gradient),
        curvature_(loss_->curvature),
        strength_(matrix_.columns()) {
    if (!matrix_.all_have(rows) || static_cast<Index>(curvature_.size()) != rows)
      throw std::invalid_argument("matrices and curvature must have as many rows as the loss");
    if (matrix_.columns() != blocks_.columns() ||
        matrix_.columns() != static_cast<Index>(penalty_.size()))
      throw std::invalid_argument("matrices, blocks and penalty differ in their columns");
    Index first = 0;
    if (measured) {
      if (measured->rows_ != rows || !blocks_.begins_with(measured->blocks_))
        throw std::invalid_argument("what was measured before must be a part of the problem");
      first = measured->blocks_.count();
      panels_ = measured->panels_;
      widest_ = measured->widest_;
      std::copy(measured->strength_.begin(), measured->strength_.end(), strength_.begin());
    }
    const auto known = static_cast<Index>(panels_.size());
    // A sparse column is best followed at once by what it changes; there is nothing to share.
    divide(first, matrix_.sliceable() ? width : 1);
    parts_ = matrix_.sliceable()
                 ? parts_for(matrix_.stored() * static_cast<double>(widest_) /
                                 static_cast<double>(std::max<Index>(1, matrix_.columns())),
                             1 << 14)
                 : 1;
    measure(known);
    const double column = matrix_.stored() / static_cast<double>(std::max<Index>(1, columns()));
    together_ = kApart * static_cast<double>(rows_) / std::max(1.0, column);
  }

  /// Looks from now on into matrices with the same entries elsewhere in memory.
  void look_into(Stack matrix) {
    if (!matrix.all_have(rows_) || matrix.columns() != columns())
      throw std::invalid_argument("the matrices have another shape than those before");
    std::lock_guard lock(mutex_);
    matrix_ = std::move(matrix);
  }

  Index rows() const { return rows_; }
  Index columns() const { return matrix_.columns(); }
  const double* strength() const { return strength_.data(); }
  double together() const { return together_; }
  void set_together(double columns) { together_ = columns; }

  /// How many numbers a process with so many rows tells the others.
  static Index told(Index rows) { return rows + 2; }

  /// Visits all blocks once, and then again `sweeps` - 1 times those whose panel is not all 0; u = A x and y follow
  /// x. Returns how many columns were visited.
  ///
  /// With `exchange` the columns are some of those of a larger problem, u and y the same in all processes, and these
  /// descend side by side: see Rounds.
  Index sweep(Index sweeps, double* x, double* u, double* y, const Exchange& exchange = {}) {
    std::lock_guard lock(mutex_);
    Lease lease;
    std::vector<double> partial(parts_ * widest_), product(widest_), scratch(2 * blocks_.largest());
    Moves moves;
    const auto apply_moves = [&] {
      lease.run(parts_, [&](int i) { apply(part(rows_, i, parts_), moves, u, y); });
      moves.clear();
    };
    std::optional<Rounds> rounds;
    if (exchange) rounds.emplace(*this, exchange, x, u, y);
    Index visited = 0;
    for (Index s = 0; s < sweeps; ++s) {
      for (const Panel& panel : panels_) {
        const auto size = static_cast<Index>(panel.column.size());
        const auto zero = [x](Index d) { return x[d] == 0; };
        if (s > 0 && std::all_of(panel.column.begin(), panel.column.end(), zero)) continue;
        visited += size;
        if (rounds && rounds->is_long()) {
          apply_moves();
          rounds->meet(true);
        }
        if (rounds) rounds->visit(panel);
        lease.run(parts_, [&](int i) {
          const Range part_of = part(rows_, i, parts_);
          apply(part_of, moves, u, y);
          matrix_.dots(part_of, panel.column.data(), size, y, partial.data() + i * widest_);
        });
        std::copy(partial.begin(), partial.begin() + size, product.begin());
        for (int i = 1; i < parts_; ++i)
          for (Index k = 0; k < size; ++k) product[k] += partial[i * widest_ + k];
        moves.clear();
        descend(panel, product.data(), x, scratch.data(), moves);
      }
      if (!rounds) continue;
      apply_moves();
      while (rounds->meet(false)) {  // until the others are through too
      }
    }
    apply_moves();
    return visited;
  }

  /// out = A_S'y over some columns S.
  void products(const Index* column, Index count, const double* y, double* out) const {
    Lease lease;
    products(lease, column, count, y, out);
  }

  /// v += A_S d over some columns S.
  void image(const Index* column, Index count, const double* d, double* v) const {
    Lease lease;
    image(lease, column, count, d, v);
  }

  /// The system of a Newton step over some columns S: (A_S' diag(weight) A_S + diag(extra) - sum_g e_g e_g') d = right,
  /// where e_g holds the entries of `along` that belong to group g.
  struct System {
    const Index* column;
    Index count;
    const double *weight, *extra, *along;
    const Index* group;
    const double *right, *diagonal;  ///< the latter preconditions
  };

  /// Solves by conjugate gradients to a relative residual in the metric of the diagonal; returns the steps taken.
  Index solve(const System& system, double tolerance, Index most, double* d) const {
    const Index n = system.count;
    Lease lease;
    Workspace space(rows_, row_parts(kFused), n);
    std::vector<double> residual(system.right, system.right + n), scaled(n), direction(n), image(n);
    const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
      return simd::dot(a.data(), b.data(), n);
    };
    const auto precondition = [&] {
      for (Index k = 0; k < n; ++k) scaled[k] = residual[k] / system.diagonal[k];
    };
    std::fill(d, d + n, 0.0);
    precondition();
    direction = scaled;
    double size = dot(residual, scaled);
    const double enough = tolerance * tolerance * size;
    for (Index step = 0; step < most; ++step) {
      if (size <= enough) return step;
      apply(lease, system, direction.data(), space, image.data());
      const double curvature = dot(direction, image);
      double largest = 0;
      for (Index k = 0; k < n; ++k) largest += system.diagonal[k] * direction[k] * direction[k];
      if (!(curvature > 1e-14 * largest)) return step + 1;  // flat: d is a descent direction as it is
      const double length = size / curvature;
      for (Index k = 0; k < n; ++k) {
        d[k] += length * direction[k];
        residual[k] -= length * image[k];
      }
      precondition();
      const double before = size;
      size = dot(residual, scaled);
      for (Index k = 0; k < n; ++k) direction[k] = scaled[k] + size / before * direction[k];
    }
    return most;
  }

 private:
  struct Panel {
    std::vector<Index> block, column;
    std::vector<double> gram;  ///< A_p'C A_p, row by row; empty for a single column
  };

  /// Columns that have moved, and by how much.
  struct Moves {
    std::vector<Index> column;
    std::vector<double> change;

    void clear() {
      column.clear();
      change.clear();
    }
    void add(Index d, double by) {
      column.push_back(d);
      change.push_back(by);
    }
  };

  /// Processes that descend side by side, each on its own columns and against its own y, and meet when each has looked
  /// at so many entries: then all take over what has become of A x. With v the sum of the changes and d that of the
  /// penalties, the objective falls by at least -t (y'v + d) - t^2/2 v'Cv for a part t of the way. The whole way is
  /// taken where that is about as good as the best t; otherwise that, and the next meeting is sooner.
  class Rounds {
   public:
    Rounds(Descent& own, const Exchange& exchange, double* x, double* u, double* y)
        : own_(own), exchange_(exchange), x_(x), u_(u), y_(y), told_(told(own.rows_)) {
      begin();
    }

    bool is_long() const { return static_cast<double>(before_.size()) >= own_.together_; }

    /// Before the columns of a panel move.
    void visit(const Panel& panel) {
      for (const Index d : panel.column) before_.push_back(x_[d]);
      visited_.push_back(&panel);
    }

    /// Returns whether any process has more to visit.
    bool meet(bool more) {
      const Index m = own_.rows_;
      for (Index k = 0; k < m; ++k) told_[k] = u_[k] - u_before_[k];
      told_[m] = penalty_change();
      told_[m + 1] = more;
      exchange_(told_.data());
      double slope = told_[m], bend = 0;
      for (Index k = 0; k < m; ++k) {
        slope += y_before_[k] * told_[k];
        bend += own_.curvature_[k] * told_[k] * told_[k];
      }
      double way = 1;
      if (bend > 0 && -(slope + bend / 2) < slope * slope / (4 * bend)) {
        way = std::clamp(-slope / bend, 0.0, 1.0);
        own_.together_ = std::max(1.0, own_.together_ / 2);
        go_back(way);
      }
      for (Index k = 0; k < m; ++k) u_[k] = u_before_[k] + way * told_[k];
      own_.gradient_({0, m}, u_, y_);
      begin();
      return told_[m + 1] > 0;
    }

   private:
    void begin() {
      u_before_.assign(u_, u_ + own_.rows_);
      y_before_.assign(y_, y_ + own_.rows_);
      before_.clear();
      visited_.clear();
    }

    double penalty_change() const {
      double change = 0;
      const double* before = before_.data();
      for (const Panel* panel : visited_)
        for (const Index j : panel->block) {
          const Block& block = own_.blocks_[j];
          double norm = 0, norm_before = 0;
          for (Index k = 0; k < block.size; ++k, ++before) {
            const Index d = block.column[k];
            change += value(own_.penalty_[d], x_[d]) - value(own_.penalty_[d], *before);
            norm += x_[d] * x_[d];
            norm_before += *before * *before;
          }
          if (block.weight > 0) change += block.weight * (std::sqrt(norm) - std::sqrt(norm_before));
        }
      return change;
    }

    void go_back(double way) {
      const double* before = before_.data();
      for (const Panel* panel : visited_)
        for (const Index d : panel->column) {
          x_[d] = *before + way * (x_[d] - *before);
          ++before;
        }
    }

    Descent& own_;
    const Exchange& exchange_;
    double *x_, *u_, *y_;
    std::vector<double> told_, u_before_, y_before_, before_;
    std::vector<const Panel*> visited_;
  };

  struct Workspace {
    Workspace(Index rows, int parts, Index count)
        : image(rows), partial(parts * count), of_strip(parts * count), of_group(count) {}

    std::vector<double> image, partial, of_strip, of_group;
  };

  // Entries for each row that are looked at before processes meet: a meeting moves some rows twice.
  static constexpr double kApart = 128;

  // Rows of a part: enough for columns to be read in long pieces, or fewer where they are in cache.
  static constexpr double kLong = 1250, kFused = 400;

  int row_parts(double smallest) const {
    return matrix_.sliceable() ? parts_for(static_cast<double>(rows_), smallest) : 1;
  }

  void products(Lease& lease, const Index* column, Index count, const double* y,
                double* out) const {
    const int parts = parts_for(static_cast<double>(rows_) * static_cast<double>(count));
    lease.run(parts, [&](int i) {
      const Range own = part(count, i, parts);
      matrix_.dots({0, rows_}, column + own.begin, own.end - own.begin, y, out + own.begin);
    });
  }

  void image(Lease& lease, const Index* column, Index count, const double* d, double* v) const {
    const int parts = row_parts(kLong);
    lease.run(parts, [&](int i) { matrix_.add(part(rows_, i, parts), column, count, d, v); });
  }

  /// Rows of which `count` columns stay in cache, so that both products take one reading; 0 where that would be so
  /// few that memory is read in short pieces.
  Index strip(Index count) const {
    constexpr Index cached = 1 << 17, fewest = 128;
    const Index rows = cached / std::max<Index>(1, count);
    return matrix_.sliceable() && rows >= fewest ? rows : 0;
  }

  /// out = A_S' diag(weight) A_S p over the columns of a system.
  void normal(Lease& lease, const System& system, const double* p, Workspace& space,
              double* out) const {
    const Index count = system.count, strip = this->strip(count);
    double* image_of = space.image.data();
    if (strip == 0) {
      std::fill(space.image.begin(), space.image.end(), 0.0);
      image(lease, system.column, count, p, image_of);
      for (Index k = 0; k < rows_; ++k) image_of[k] *= system.weight[k];
      products(lease, system.column, count, image_of, out);
      return;
    }
    const int parts = row_parts(kFused);
    lease.run(parts, [&](int i) {
      const Range range = part(rows_, i, parts);
      double *sum = space.partial.data() + i * count, *own = space.of_strip.data() + i * count;
      std::fill(sum, sum + count, 0.0);
      for (Index at = range.begin; at < range.end; at += strip) {
        const Range rows{at, std::min(at + strip, range.end)};
        std::fill(image_of + rows.begin, image_of + rows.end, 0.0);
        matrix_.add(rows, system.column, count, p, image_of);
        for (Index k = rows.begin; k < rows.end; ++k) image_of[k] *= system.weight[k];
        matrix_.dots(rows, system.column, count, image_of, own);
        for (Index k = 0; k < count; ++k) sum[k] += own[k];
      }
    });
    std::fill(out, out + count, 0.0);
    for (int i = 0; i < parts; ++i)
      for (Index k = 0; k < count; ++k) out[k] += space.partial[i * count + k];
  }

  /// out = the system's matrix times p.
  void apply(Lease& lease, const System& system, const double* p, Workspace& space,
             double* out) const {
    const Index count = system.count;
    normal(lease, system, p, space, out);
    std::fill(space.of_group.begin(), space.of_group.end(), 0.0);
    for (Index k = 0; k < count; ++k) space.of_group[system.group[k]] += system.along[k] * p[k];
    for (Index k = 0; k < count; ++k)
      out[k] += system.extra[k] * p[k] - system.along[k] * space.of_group[system.group[k]];
  }

  void divide(Index first, Index width) {
    for (Index j = first; j < blocks_.count(); ++j) {
      const Block& block = blocks_[j];
      if (j == first || static_cast<Index>(panels_.back().column.size()) + block.size > width)
        panels_.emplace_back();
      Panel& panel = panels_.back();
      panel.block.push_back(j);
      panel.column.insert(panel.column.end(), block.column, block.column + block.size);
      widest_ = std::max(widest_, static_cast<Index>(panel.column.size()));
    }
  }

  /// The Gram matrices of the panels from `first` on, and the strength of their columns: the curvature of the
  /// majorised loss along the block.
  void measure(Index first) {
    const Index count = static_cast<Index>(panels_.size()) - first;
    const int parts = parts_for(matrix_.stored() * static_cast<double>(widest_));
    Lease().run(parts, [&](int i) {
      std::vector<double> weighted(rows_);
      const Range range = part(count, i, parts);
      for (Index p = range.begin; p < range.end; ++p) measure(panels_[first + p], weighted);
    });
  }

  void measure(Panel& panel, std::vector<double>& weighted) {
    const auto size = static_cast<Index>(panel.column.size());
    panel.gram.resize(size * size);
    const Range all{0, rows_};
    for (Index a = 0; a < size; ++a) {
      matrix_.with_scattered(panel.column[a], curvature_.data(), weighted.data(), [&] {
        matrix_.dots(all, panel.column.data(), a + 1, weighted.data(), &panel.gram[a * size]);
      });
      for (Index b = 0; b < a; ++b) panel.gram[b * size + a] = panel.gram[a * size + b];
    }
    Index at = 0;
    for (const Index j : panel.block) {
      const Block& block = blocks_[j];
      const double largest = largest_eigenvalue(panel.gram, size, at, block.size);
      for (Index k = 0; k < block.size; ++k) strength_[block.column[k]] = largest;
      at += block.size;
    }
  }

  /// A bound on the largest eigenvalue of a diagonal block of a Gram matrix: with the trace of its 16th power at most
  /// size^(1/16) times too large.
  static double largest_eigenvalue(const std::vector<double>& gram, Index stride, Index first,
                                   Index size) {
    if (size == 1) return gram[first * stride + first];
    std::vector<double> power(size * size), square(size * size);
    double trace = 0;
    for (Index a = 0; a < size; ++a) trace += gram[(first + a) * stride + first + a];
    if (!(trace > 0)) return 0;
    for (Index a = 0; a < size; ++a)
      for (Index b = 0; b < size; ++b)
        power[a * size + b] = gram[(first + a) * stride + first + b] / trace;
    for (int doubling = 0; doubling < 4; ++doubling) {
      std::fill(square.begin(), square.end(), 0.0);
      for (Index a = 0; a < size; ++a)
        for (Index c = 0; c < size; ++c)
          for (Index b = 0; b < size; ++b)
            square[a * size + b] += power[a * size + c] * power[c * size + b];
      power.swap(square);
    }
    double of_power = 0;
    for (Index a = 0; a < size; ++a) of_power += power[a * size + a];
    return trace * std::pow(of_power, 1.0 / 16);
  }

  void apply(Range rows, const Moves& moves, double* u, double* y) const {
    const auto count = static_cast<Index>(moves.column.size());
    if (count == 0) return;
    matrix_.add(rows, moves.column.data(), count, moves.change.data(), u);
    if (matrix_.sliceable()) gradient_(rows, u, y);
    else matrix_.refresh(moves.column.data(), count, gradient_, u, y);
  }

  /// Minimises over the blocks of a panel in turn, given its products A_p'y.
  void descend(const Panel& panel, double* product, double* x, double* scratch, Moves& moves) const {
    const auto size = static_cast<Index>(panel.column.size());
    const auto move = [&](Index at, double to) {
      const Index d = panel.column[at];
      const double change = to - x[d];
      if (change == 0) return 0.0;
      x[d] = to;
      moves.add(d, change);
      return change;
    };
    const auto pass_on = [&](Index at, double change, Index from) {
      const double* row = &panel.gram[at * size];
      for (Index k = from; k < size; ++k) product[k] += change * row[k];
    };
    Index at = 0;
    for (const Index j : panel.block) {
      const Block& block = blocks_[j];
      const Index stop = at + block.size;
      step(block, product + at, x, scratch);
      for (Index k = at; k < stop; ++k)
        if (const double change = move(k, scratch[k - at]); change != 0) pass_on(k, change, stop);
      at = stop;
    }
  }

  /// Least strength: along columns on which the loss does not depend it lets the penalty decide alone.
  static constexpr double kFlat = 1e-100;

  /// The proximal step of a block, given its products with y; leaves it in `to`.
  void step(const Block& block, const double* product, const double* x, double* to) const {
    const double strength = std::max(strength_[block.column[0]], kFlat);
    if (block.size == 1 && block.weight == 0) {
      const Index d = block.column[0];
      to[0] = prox(penalty_[d], x[d] - product[0] / strength, 1 / strength);
      return;
    }
    double* h = to + blocks_.largest();
    for (Index k = 0; k < block.size; ++k) {
      const Coordinate& f = penalty_[block.column[k]];
      h[k] = strength;
      to[k] = shrink(strength * x[block.column[k]] - product[k], f.left, f.right);
    }
    const double rho = group_radius(to, h, static_cast<int>(block.size), block.weight);
    for (Index k = 0; k < block.size; ++k)
      to[k] = rho > 0 ? to[k] * rho / (strength * rho + block.weight) : 0;
  }

  Index rows_;
  Stack matrix_;
  Blocks blocks_;
  std::vector<Coordinate> penalty_;
  std::shared_ptr<const SmoothLoss> loss_;
  const Gradient& gradient_;
  const std::vector<double>& curvature_;
  std::vector<double> strength_;
  std::vector<Panel> panels_;
  Index widest_ = 0;
  int parts_ = 1;
  double together_ = 1;  ///< columns that are visited before processes meet
  std::mutex mutex_;
};

}  // namespace saddleback
