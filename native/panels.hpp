/// \file
/// The panels of blocks over which coordinate descent minimises, and the problem that they divide.
#pragma once

#include "blocks.hpp"
#include "eigenvalue_bound.hpp"
#include "prox.hpp"
#include "row_loss.hpp"
#include "stack.hpp"
#include "threads.hpp"

namespace saddleback {

/// A problem with a smooth loss.
struct SmoothProblem {
  Stack matrix;
  Blocks blocks;
  std::vector<Coordinate> penalty;
  std::shared_ptr<const RowLoss> loss;

  Index rows() const { return matrix.rows(); }
};

/// Columns that have moved, and their changes.
struct Moves {
  std::vector<Index> column;
  std::vector<double> change;
  void clear() { column.clear(), change.clear(); }
};

/// Neighbouring blocks. There may be as many panels as blocks, so all panels share the same arrays.
struct Panel {
  Range blocks;
  Range columns;  ///< places of their columns in the order of the blocks
  Index gram;     ///< where A_p'C A_p begins, by rows, with C the curvature of the loss
};

/// Neighbouring blocks in panels of at most `width` columns, or of a single block, with their Gram matrices.
class Panels {
 public:
  /// `measured`, if given, are panels of the first blocks and columns of the problem, and are copied.
  Panels(const SmoothProblem& problem, Index width, const Panels* measured) {
    if (measured) *this = *measured;
    strength_.resize(problem.matrix.columns());
    const Index known = count();
    for (Index j = blocks_; j < problem.blocks.count(); ++j) {
      const Index size = problem.blocks[j].size;
      if (j == blocks_ || panels_.back().columns.size() + size > width) {
        const Index place = panels_.empty() ? 0 : panels_.back().columns.end;
        panels_.push_back({{j, j}, {place, place}, 0});
      }
      Panel& panel = panels_.back();
      ++panel.blocks.end;
      panel.columns.end += size;
      widest_ = std::max(widest_, panel.columns.size());
    }
    blocks_ = problem.blocks.count();
    Index entries = length(gram_);
    for (Index p = known; p < count(); ++p) {
      panels_[p].gram = entries;
      entries += panels_[p].columns.size() * panels_[p].columns.size();
    }
    gram_.resize(entries);
    measure(problem, known);
  }

  auto begin() const { return panels_.begin(); }
  auto end() const { return panels_.end(); }
  Index widest() const { return widest_; }

  /// Bounds on the curvature of the majorised loss along the block of each column.
  const std::vector<double>& strength() const { return strength_; }

  /// Minimises over the blocks of a panel in turn, given its products A_p'y. `scratch` has room for two blocks.
  void descend(const SmoothProblem& problem, const Panel& panel, double* product, double* x, double* scratch,
               Moves& moves) const {
    const std::span<const Index> columns = problem.blocks.columns(panel.columns);
    const Index size = length(columns);
    Index at = 0;
    for (Index j = panel.blocks.begin; j < panel.blocks.end; ++j) {
      const Block& block = problem.blocks[j];
      const Index stop = at + block.size;
      step(problem, block, product + at, x, scratch);
      for (Index k = at; k < stop; ++k) {
        const Index d = columns[k];
        const double change = scratch[k - at] - x[d];
        if (change == 0) continue;
        x[d] = scratch[k - at];
        moves.column.push_back(d);
        moves.change.push_back(change);
        const double* row = &gram_[panel.gram + k * size];
        for (Index other = stop; other < size; ++other) product[other] += change * row[other];
      }
      at = stop;
    }
  }

 private:
  /// Minimum strength: along columns on which the loss does not depend, the penalty alone determines the step.
  static constexpr double kFlat = 1e-100;

  Index count() const { return length(panels_); }

  /// The Gram matrices and strengths of the panels from `first` on.
  void measure(const SmoothProblem& problem, Index first) {
    if (first == count()) return;  // all panels were copied, as along a path
    const int parts = parts_for(problem.matrix.stored() * static_cast<double>(widest_));
    Lease().run(parts, [&](int i) {
      std::vector<double> weighted(problem.rows());
      const Range range = part(count() - first, i, parts);
      for (Index p = range.begin; p < range.end; ++p) measure(problem, panels_[first + p], weighted.data());
    });
  }

  void measure(const SmoothProblem& problem, const Panel& panel, double* weighted) {
    const std::span<const Index> columns = problem.blocks.columns(panel.columns);
    const Index size = length(columns);
    double* gram = &gram_[panel.gram];
    for (Index a = 0; a < size; ++a) {
      problem.matrix.with_scattered(columns[a], problem.loss->curvature().data(), weighted, [&] {
        problem.matrix.dots(problem.matrix.all(), columns.data(), a + 1, weighted, gram + a * size);
      });
      for (Index b = 0; b < a; ++b) gram[b * size + a] = gram[a * size + b];
    }
    Index at = 0;
    for (Index j = panel.blocks.begin; j < panel.blocks.end; ++j) {
      const Block& block = problem.blocks[j];
      const double bound = eigenvalue_bound(gram, size, at, block.size);
      for (Index k = 0; k < block.size; ++k) strength_[block.column[k]] = bound;
      at += block.size;
    }
  }

  /// The proximal step of a block, given its products with y; writes the new x to `to`.
  void step(const SmoothProblem& problem, const Block& block, const double* product, const double* x,
            double* to) const {
    const double strength = std::max(strength_[block.column[0]], kFlat);
    if (block.size == 1 && block.weight == 0) {
      const Index d = block.column[0];
      to[0] = prox(problem.penalty[d], x[d] - product[0] / strength, 1 / strength);
      return;
    }
    double* h = std::copy_n(product, block.size, to);
    std::fill_n(h, block.size, strength);
    const double rho = shrink_group(block, problem.penalty, x, h, to);
    for (Index k = 0; k < block.size; ++k) to[k] = rho > 0 ? to[k] * rho / (h[k] * rho + block.weight) : 0;
  }

  std::vector<Panel> panels_;
  std::vector<double> gram_, strength_;
  Index blocks_ = 0, widest_ = 0;
};

}  // namespace saddleback
