/// \file
/// A digest of an array, to detect changes.
#pragma once

#include <bit>
#include <cstring>

#include "threads.hpp"
#include "types.hpp"

namespace saddleback {

inline std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  return std::rotl((state ^ word) * 0x9e3779b97f4a7c15u, 31);
}

/// The digest of one piece. Eight independent states: a single one would wait for each multiplication.
inline std::uint64_t digest_piece(const unsigned char* data, Index bytes) {
  constexpr Index word = sizeof(std::uint64_t), lanes = 8;
  std::uint64_t state[lanes] = {1, 2, 3, 4, 5, 6, 7, 8};
  Index at = 0;
  for (; at + lanes * word <= bytes; at += lanes * word)
    for (Index lane = 0; lane < lanes; ++lane) {
      std::uint64_t next;
      std::memcpy(&next, data + at + lane * word, word);
      state[lane] = mixed(state[lane], next);
    }
  std::uint64_t result = static_cast<std::uint64_t>(bytes);
  for (const std::uint64_t each : state) result = mixed(result, each);
  for (; at < bytes; ++at) result = mixed(result, data[at]);
  return result;
}

/// A number that differs, almost certainly, if any bit differs. It is not cryptographic.
inline std::uint64_t digest(const unsigned char* data, Index bytes) {
  constexpr Index piece = 1 << 18;
  const Index count = (bytes + piece - 1) / piece;
  std::vector<std::uint64_t> found(count);
  const int parts = parts_for(static_cast<double>(bytes) / 8);
  Lease().run(parts, [&](int i) {
    const Range own = part(count, i, parts);
    for (Index k = own.begin; k < own.end; ++k)
      found[k] = digest_piece(data + k * piece, std::min(piece, bytes - k * piece));
  });
  std::uint64_t result = 0;
  for (const std::uint64_t each : found) result = mixed(result, each);
  return result;
}

}  // namespace saddleback
