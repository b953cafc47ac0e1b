/// \file
/// Block coordinate descent on a smooth loss: the iteration with y eliminated, y = gradient of the loss at u = A x.
///
/// Blocks are visited in panels. The loss is majorised by its curvature, g(u + v) <= g(u) + y'v + v'Cv/2, and a panel
/// minimises that over its blocks, one after the other, exactly as if y were updated after each: the effect of a block
/// on the products of the next ones follows from the panel's Gram matrix A_p'C A_p. So each panel is read once for its
/// products with y and once, while it is still in cache, to add its moves to A x.
#pragma once

#include <mutex>
#include <optional>

#include "panels.hpp"
#include "rounds.hpp"
#include "stack.hpp"
#include "threads.hpp"

namespace saddleback {

class Descent {
 public:
  /// `measured`, if given, saves the measurement of its panels: its blocks and columns must be the first ones of the
  /// problem.
  Descent(SmoothProblem problem, Index width, const Descent* measured)
      : problem_(validated(std::move(problem), measured)),
        // Sparse columns share nothing that a panel could reuse, so that y is updated after each column.
        panels_(problem_, matrix().sliceable() ? width : 1, measured ? &measured->panels_ : nullptr),
        parts_(matrix().sliceable() ? parts_for(matrix().stored() * static_cast<double>(panels_.widest()) /
                                                    static_cast<double>(std::max<Index>(1, columns())),
                                                1 << 14)
                                    : 1) {
    columns_between_exchanges =
        kEntriesPerRow * static_cast<double>(rows()) / std::max(1.0, matrix().stored_per_column());
  }

  /// Replaces the matrices by others with the same entries elsewhere in memory.
  void rebind(Stack matrix) {
    if (matrix.columns() != columns()) throw std::invalid_argument("the matrices have another shape than those before");
    std::lock_guard lock(mutex_);
    problem_.matrix = std::move(matrix);
  }

  const Stack& matrix() const { return problem_.matrix; }
  Index rows() const { return problem_.rows(); }
  Index columns() const { return matrix().columns(); }
  const std::vector<double>& strength() const { return panels_.strength(); }

  double columns_between_exchanges;  ///< of the processes: see Rounds

  /// Visits all blocks once, and then `sweeps` - 1 times those whose panel is not all 0, and updates u = A x and y with
  /// x. Returns the number of columns visited. With `exchange` the columns are those of one process: see Rounds.
  Index sweep(Index sweeps, double* x, double* u, double* y, const Exchange& exchange = {}) {
    std::lock_guard lock(mutex_);
    Lease lease;
    const Index widest = panels_.widest();
    std::vector<double> partial(parts_ * widest), product(widest), scratch(2 * problem_.blocks.largest());
    Moves moves;
    const auto apply_moves = [&] {
      lease.run(parts_, [&](int i) { apply(part(rows(), i, parts_), moves, u, y); });
      moves.clear();
    };
    std::optional<Rounds> rounds;
    if (exchange) rounds.emplace(problem_, exchange, columns_between_exchanges, x, u, y);
    Index visited = 0;
    for (Index s = 0; s < sweeps; ++s) {
      for (const Panel& panel : panels_) {
        const std::span<const Index> columns = problem_.blocks.columns(panel.columns);
        const Index size = length(columns);
        const auto zero = [x](Index d) { return x[d] == 0; };
        if (s > 0 && std::all_of(columns.begin(), columns.end(), zero)) continue;
        visited += size;
        if (rounds && rounds->complete()) {
          apply_moves();
          rounds->finish(true);
        }
        if (rounds) rounds->visit(panel);
        lease.run(parts_, [&](int i) {
          const Range own = part(rows(), i, parts_);
          apply(own, moves, u, y);
          matrix().dots(own, columns.data(), size, y, partial.data() + i * widest);
        });
        std::copy(partial.begin(), partial.begin() + size, product.begin());
        for (int i = 1; i < parts_; ++i)
          for (Index k = 0; k < size; ++k) product[k] += partial[i * widest + k];
        moves.clear();
        panels_.descend(problem_, panel, product.data(), x, scratch.data(), moves);
      }
      if (!rounds) continue;
      apply_moves();
      while (rounds->finish(false)) {  // until the other processes have finished too
      }
    }
    apply_moves();
    return visited;
  }

 private:
  // Entries per row that are read between exchanges: an exchange updates some rows twice.
  static constexpr double kEntriesPerRow = 128;

  static SmoothProblem validated(SmoothProblem problem, const Descent* measured) {
    if (!problem.loss->smooth()) throw std::invalid_argument("descent needs a loss that is coordinate or logistic");
    const Index columns = problem.matrix.columns();
    if (columns != problem.blocks.columns() || columns != length(problem.penalty))
      throw std::invalid_argument("matrices, blocks and penalty differ in their columns");
    problem.blocks.require_groups(problem.penalty, true);
    if (measured && (measured->rows() != problem.rows() || !problem.blocks.begins_with(measured->problem_.blocks)))
      throw std::invalid_argument("what was measured before must be a part of the problem");
    return problem;
  }

  void apply(Range rows, const Moves& moves, double* u, double* y) const {
    const auto count = length(moves.column);
    if (count == 0) return;
    matrix().add(rows, moves.column.data(), count, moves.change.data(), u);
    if (matrix().sliceable()) return problem_.loss->gradient(rows, u, y);
    for (const Index d : moves.column) {
      const auto [own, column] = matrix().find(d);
      problem_.loss->gradient(own.rows_of(column), u, y);
    }
  }

  SmoothProblem problem_;
  Panels panels_;
  int parts_;
  std::mutex mutex_;
};

}  // namespace saddleback
