/// \file
/// Arrays that come from Python and arrays that go there.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "types.hpp"

namespace saddleback {

namespace nb = nanobind;
using namespace nb::literals;

template <class T> using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Input = Array<const double>;
using Output = Array<double>;
using Indices = Array<const Index>;
using Anything = nb::ndarray<nb::ro, nb::device::cpu>;

template <class T = double> using NewArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

/// The name of an argument that is taken without conversion.
inline auto operator""_raw(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

template <class... Vectors> void require_length(Index expected, const char* message, const Vectors&... vectors) {
  require(((length(vectors) == expected) && ...), message);
}

inline void require_columns(const Indices& columns, Index count) {
  for (Index k = 0; k < length(columns); ++k)
    require(columns.data()[k] >= 0 && columns.data()[k] < count, "a listed column does not exist");
}

template <class T> bool holds(const Anything& array) { return array.dtype() == nb::dtype<T>(); }

template <class T> const T* data(const Anything& array) { return static_cast<const T*>(array.data()); }

inline bool contiguous_along(const Anything& array, int axis) {
  return array.size() == 0 || array.shape(axis) == 1 || array.stride(axis) == 1;
}

/// Calls body with a number of the type that the array holds.
template <class Body> auto with_type(const Anything& array, const Body& body) {
  if (holds<double>(array)) return body(double{});
  if (holds<float>(array)) return body(float{});
  throw nb::type_error("a matrix must hold float32 or float64");
}

/// Calls body with an index of the type that both arrays hold.
template <class Body> auto with_index_type(const Anything& indptr, const Anything& indices, const Body& body) {
  if (holds<std::int32_t>(indptr) && holds<std::int32_t>(indices)) return body(std::int32_t{});
  if (holds<std::int64_t>(indptr) && holds<std::int64_t>(indices)) return body(std::int64_t{});
  throw nb::type_error("indptr and indices must both hold int32 or both int64");
}

template <class Array> auto copied(const Array& array) {
  return std::vector(array.data(), array.data() + array.size());
}

/// Room for entries, which belongs to the owner.
template <class T> T* allocate(Index size, nb::capsule& owner) {
  T* entries = new T[std::max<Index>(1, size)];
  owner = nb::capsule(entries, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return entries;
}

/// An array without values.
template <class T> NewArray<T> empty_array(Index size) {
  nb::capsule owner;
  T* entries = allocate<T>(size, owner);
  return NewArray<T>(entries, {static_cast<std::size_t>(size)}, owner);
}

inline NewArray<> zeros(Index size) {
  NewArray<> result = empty_array<double>(size);
  std::fill_n(result.data(), size, 0.0);
  return result;
}

}  // namespace saddleback
