/// \file
/// The loops whose speed depends on the vector width, compiled once for each level of the instruction set and chosen at
/// load time.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

// Under ThreadSanitizer the choice at load time would run before the sanitizer is ready.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define SADDLEBACK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SADDLEBACK_CLONES
#endif

namespace saddleback::simd {

/// Into the second-level cache: the first level can serve few fills at a time, and loads in progress need it more.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 2);
#endif
}

/// out[k] = columns[k] . y for one or four columns: four share each load of y.
template <class T> SADDLEBACK_CLONES static double dot(const T* column, const double* y, std::int64_t rows) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < rows; ++i) sum += static_cast<double>(column[i]) * y[i];
  return sum;
}

template <class T>
SADDLEBACK_CLONES static void dot4(const T* const columns[4], const double* y, std::int64_t rows, double out[4]) {
  const T *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
  double sa = 0, sb = 0, sc = 0, sd = 0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
  for (std::int64_t i = 0; i < rows; ++i) {
    const double yi = y[i];
    sa += static_cast<double>(a[i]) * yi;
    sb += static_cast<double>(b[i]) * yi;
    sc += static_cast<double>(c[i]) * yi;
    sd += static_cast<double>(d[i]) * yi;
  }
  out[0] = sa, out[1] = sb, out[2] = sc, out[3] = sd;
}

/// v += factor * column.
template <class T> SADDLEBACK_CLONES static void axpy(const T* column, double factor, double* v, std::int64_t rows) {
#pragma omp simd
  for (std::int64_t i = 0; i < rows; ++i) v[i] += factor * static_cast<double>(column[i]);
}

/// v = weight * column, entry by entry.
template <class T>
SADDLEBACK_CLONES static void multiply(const T* column, const double* weight, double* v, std::int64_t rows) {
#pragma omp simd
  for (std::int64_t i = 0; i < rows; ++i) v[i] = weight[i] * static_cast<double>(column[i]);
}

/// v += sum of factors[k] * columns[k]: four columns share each access to v.
template <class T>
SADDLEBACK_CLONES static void axpy4(const T* const columns[4], const double factors[4], double* v, std::int64_t rows) {
  const T *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
  const double fa = factors[0], fb = factors[1], fc = factors[2], fd = factors[3];
#pragma omp simd
  for (std::int64_t i = 0; i < rows; ++i) {
    v[i] = ((v[i] + fa * static_cast<double>(a[i])) + fb * static_cast<double>(b[i])) + fc * static_cast<double>(c[i]) +
           fd * static_cast<double>(d[i]);
  }
}

/// products[k] = columns[k] . y, squares[k] = columns[k] . columns[k] and v += all squares: four columns in one
/// reading.
template <class T>
SADDLEBACK_CLONES static void scan4(const T* const columns[4], const double* y, std::int64_t rows, double products[4],
                                    double squares[4], double* v) {
  const T *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
  double pa = 0, pb = 0, pc = 0, pd = 0, qa = 0, qb = 0, qc = 0, qd = 0;
#pragma omp simd reduction(+ : pa, pb, pc, pd, qa, qb, qc, qd)
  for (std::int64_t i = 0; i < rows; ++i) {
    const double yi = y[i];
    const double ai = static_cast<double>(a[i]), bi = static_cast<double>(b[i]);
    const double ci = static_cast<double>(c[i]), di = static_cast<double>(d[i]);
    pa += ai * yi;
    pb += bi * yi;
    pc += ci * yi;
    pd += di * yi;
    qa += ai * ai;
    qb += bi * bi;
    qc += ci * ci;
    qd += di * di;
    v[i] += (ai * ai + bi * bi) + (ci * ci + di * di);
  }
  products[0] = pa, products[1] = pb, products[2] = pc, products[3] = pd;
  squares[0] = qa, squares[1] = qb, squares[2] = qc, squares[3] = qd;
}

/// Adds |column|^Power to v and returns its sum.
template <int Power, class T>
SADDLEBACK_CLONES static double add_powers(const T* column, double* v, std::int64_t rows) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < rows; ++i) {
    const double entry = static_cast<double>(column[i]);
    const double term = Power == 0 ? entry != 0 : Power == 1 ? std::fabs(entry) : entry * entry;
    sum += term;
    v[i] += term;
  }
  return sum;
}

/// Whether all indices lie in 0, ..., bound - 1.
template <class I> SADDLEBACK_CLONES static bool all_below(const I* indices, std::int64_t count, std::int64_t bound) {
  using Unsigned = std::make_unsigned_t<I>;  // a negative index turns into one too large
  Unsigned largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) {
    const Unsigned index = static_cast<Unsigned>(indices[i]);
    largest = index > largest ? index : largest;
  }
  return count == 0 || static_cast<std::uint64_t>(largest) < static_cast<std::uint64_t>(bound);
}

/// How often an index is not larger than the one before it.
template <class I> SADDLEBACK_CLONES static std::int64_t falls(const I* indices, std::int64_t count) {
  std::int64_t found = 0;
#pragma omp simd reduction(+ : found)
  for (std::int64_t i = 1; i < count; ++i) found += indices[i] <= indices[i - 1];
  return found;
}

/// total += part; part = 0.
SADDLEBACK_CLONES static void drain(double* part, double* total, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    total[i] += part[i];
    part[i] = 0;
  }
}

}  // namespace saddleback::simd
