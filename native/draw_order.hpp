/// \file
/// The blocks drawn in one iteration, in the order in which they are visited.
#pragma once

#include <bit>

#include "types.hpp"

namespace saddleback {

/// `iterations` iterations of `size` draws each.
struct Draws {
  const Index* block;
  Index iterations, size;
};

/// Sorts draws and removes duplicates. All steps of an iteration use the same y, so that any order is valid, and memory
/// is read several times faster in ascending order than in random order.
class DrawOrder {
 public:
  explicit DrawOrder(Index blocks) : blocks_(blocks), drawn_((blocks + 63) / 64) {}

  /// The same for draws that may include blocks that do not exist.
  std::span<const Index> existing(const Index* draws, Index size) {
    existing_.assign(draws, draws + size);
    std::erase_if(existing_, [this](Index block) { return block < 0 || block >= blocks_; });
    return (*this)(existing_.data(), length(existing_));
  }

  /// Valid until the next call.
  std::span<const Index> operator()(const Index* draws, Index size) {
    if (size == 1) return {draws, 1};
    if (size < length(drawn_)) {
      order_.assign(draws, draws + size);
      std::sort(order_.begin(), order_.end());
      order_.erase(std::unique(order_.begin(), order_.end()), order_.end());
      return order_;
    }
    order_.clear();
    for (Index k = 0; k < size; ++k) drawn_[draws[k] / 64] |= std::uint64_t{1} << (draws[k] % 64);
    for (std::size_t w = 0; w < drawn_.size(); ++w)
      for (; drawn_[w]; drawn_[w] &= drawn_[w] - 1)
        order_.push_back(static_cast<Index>(64 * w) + std::countr_zero(drawn_[w]));
    return order_;
  }

 private:
  Index blocks_;
  std::vector<Index> existing_;
  std::vector<std::uint64_t> drawn_;  // one bit per block, all zero between calls
  std::vector<Index> order_;
};

}  // namespace saddleback
