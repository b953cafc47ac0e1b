/// \file
/// The partition of the columns into blocks.
#pragma once

#include "prox.hpp"
#include "types.hpp"

namespace saddleback {

/// Columns that are drawn together.
struct Block {
  const Index* column;
  Index size;
  double weight;  ///< of the norm of the block; with 0 its columns are separate
};

/// Replaces the products of the columns of a block with y by b = shrink(h x - product), adds the quadratic terms of the
/// penalty to h, and returns the rho of `group_radius`: x_i = b_i rho / (h_i rho + weight), with the new h, is the
/// proximal step of the block. `Blocks::require_groups` checks that the penalty has no bounds.
inline double shrink_group(const Block& block, const std::vector<Coordinate>& penalty, const double* x, double* h,
                           double* b) {
  for (Index k = 0; k < block.size; ++k) {
    const Coordinate& f = penalty[block.column[k]];
    b[k] = shrink(h[k] * x[block.column[k]] - b[k], f.left, f.right);
    h[k] += f.quadratic;
  }
  return group_radius(b, h, block.size, block.weight);
}

class Blocks {
 public:
  /// Block j consists of column[start[j]], ..., column[start[j + 1] - 1].
  Blocks(const std::vector<Index>& start, std::vector<Index> column, const std::vector<double>& weight)
      : column_(std::move(column)) {
    const auto n = length(column_);
    if (start.size() != weight.size() + 1 || start.front() != 0 || start.back() != n ||
        !std::is_sorted(start.begin(), start.end()))
      throw std::invalid_argument("block_start must rise from 0 to the number of columns");
    std::vector<bool> seen(n);
    for (const Index d : column_) {
      if (d < 0 || d >= n || seen[d]) throw std::invalid_argument("block_columns must hold every column once");
      seen[d] = true;
    }
    block_.reserve(weight.size());
    for (std::size_t j = 0; j < weight.size(); ++j) {
      block_.push_back({column_.data() + start[j], start[j + 1] - start[j], weight[j]});
      largest_ = std::max(largest_, block_[j].size);
    }
  }

  Index columns() const { return length(column_); }
  std::span<const Index> columns(Range places) const {
    return {column_.data() + places.begin, column_.data() + places.end};
  }
  Index count() const { return length(block_); }
  Index largest() const { return largest_; }

  const Block& operator[](Index j) const { return block_[j]; }
  auto begin() const { return block_.begin(); }
  auto end() const { return block_.end(); }

  /// Throws unless columns that step as a group have no bounds. Blocks with a weight always step as a group, others if
  /// `together` is set and they have several columns.
  void require_groups(const std::vector<Coordinate>& penalty, bool together) const {
    for (const Block& block : block_) {
      if (!(block.weight > 0 || (together && block.size > 1))) continue;
      for (Index k = 0; k < block.size; ++k) {
        const Coordinate& f = penalty[block.column[k]];
        if (!std::isinf(f.lower) || !std::isinf(f.upper))
          throw std::invalid_argument("the columns of a group must have no bounds");
      }
    }
  }

  /// Whether the first blocks have the same columns as those of another partition.
  bool begins_with(const Blocks& other) const {
    if (other.count() > count() || other.columns() > columns()) return false;
    return std::equal(other.begin(), other.end(), begin(), [](const Block& theirs, const Block& own) {
      return std::equal(theirs.column, theirs.column + theirs.size, own.column, own.column + own.size);
    });
  }

 private:
  std::vector<Index> column_;
  std::vector<Block> block_;
  Index largest_ = 0;
};

}  // namespace saddleback
