/// \file
/// The partition of the columns into blocks.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "matrix.hpp"

namespace saddleback {

/// Columns that are drawn together.
struct Block {
  const Index* column;
  Index size;
  double weight;  ///< of the norm of the block; 0 leaves its columns separate
};

class Blocks {
 public:
  /// Block j consists of column[start[j]], ..., column[start[j + 1] - 1].
  Blocks(const std::vector<Index>& start, std::vector<Index> column,
         const std::vector<double>& weight)
      : column_(std::move(column)) {
    const auto n = static_cast<Index>(column_.size());
    if (start.size() != weight.size() + 1 || start.front() != 0 || start.back() != n ||
        !std::is_sorted(start.begin(), start.end()))
      throw std::invalid_argument("block_start must rise from 0 to the number of columns");
    std::vector<bool> seen(n);
    for (const Index d : column_) {
      if (d < 0 || d >= n || seen[d])
        throw std::invalid_argument("block_columns must hold every column once");
      seen[d] = true;
    }
    block_.reserve(weight.size());
    for (std::size_t j = 0; j < weight.size(); ++j) {
      block_.push_back({column_.data() + start[j], start[j + 1] - start[j], weight[j]});
      largest_ = std::max(largest_, block_[j].size);
    }
  }

  Index columns() const { return static_cast<Index>(column_.size()); }
  Index count() const { return static_cast<Index>(block_.size()); }
  Index largest() const { return largest_; }

  const Block& operator[](Index j) const { return block_[j]; }
  auto begin() const { return block_.begin(); }
  auto end() const { return block_.end(); }

  /// Whether the first blocks are those of another partition, of the same columns.
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
