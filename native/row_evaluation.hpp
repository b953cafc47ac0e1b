/// \file
/// One evaluation of dense rows: the sums over rows of a loss, of its slopes and of its curvature, in one reading.
///
/// Rows are worked on in tiles that stay in the cache. A tile is converted to float64, centred and stored by columns
/// once, so that every loop runs over rows, whatever the order of the data and the number of columns. Sums are formed
/// per tile, then over tiles, which depend on the number of columns alone.
#pragma once

#include <array>
#include <optional>

#include "elementary.hpp"
#include "prox.hpp"
#include "simd.hpp"
#include "tiled_blas.hpp"

namespace saddleback {

/// Rows of float32 or float64 numbers: columns, each of which is contiguous, or a matrix in any order of memory.
template <class T> struct DenseRows {
  Index rows, columns;
  std::vector<const T*> apart;  ///< the columns, if they are contiguous
  const T* data = nullptr;      ///< otherwise the matrix
  Index row_stride = 0, column_stride = 0;
};

/// One number per row, or the same for all rows if the stride is 0, as float64 numbers of a tile.
template <class T> class PerRow {
 public:
  PerRow(const T* data, Index stride, Index height)
      : data_(data), stride_(stride), room_(height, stride == 0 ? static_cast<double>(*data) : 0.0) {}

  const double* tile(Range rows) {
    if (stride_ == 0) return room_.data();
    if constexpr (std::is_same_v<T, double>)
      if (stride_ == 1) return data_ + rows.begin;
    for (Index i = 0; i < rows.size(); ++i) room_[i] = static_cast<double>(data_[(rows.begin + i) * stride_]);
    return room_.data();
  }

 private:
  const T* data_;
  Index stride_;
  std::vector<double> room_;
};

using RowNumbers = std::variant<PerRow<double>, PerRow<float>>;

inline const double* tile_of(RowNumbers& numbers, Range rows) {
  return std::visit([&](auto& own) { return own.tile(rows); }, numbers);
}

/// What the loss of a row with weight 1 is at z: its slope y there and so on.
struct RowPoint {
  double y, value;
  double tangent;   ///< of the tangent at 0: value - y z
  double second;    ///< the second derivative
  double distance;  ///< from the nearest point at which the slope changes
  double data;      ///< the size of the numbers that define the loss
};

/// Sums over rows; from `y` on they are sums of squares.
struct RowSums {
  double value = 0, tangents = 0, rise = 0, y = 0, z = 0, data = 0;

  RowSums& operator+=(const RowSums& other) {
    value += other.value, tangents += other.tangents, rise += other.rise;
    y += other.y, z += other.z, data += other.data;
    return *this;
  }
};

/// A choice between two numbers that are both computed: a loop with branches would not be vectorised.
inline double select(bool condition, double yes, double no) { return condition ? yes : no; }

inline double larger(double a, double b) { return a > b ? a : b; }

/// Losses whose conjugates are coordinate functions. The formulas are those of functions/piecewise.py.
struct PiecewiseRows {
  static constexpr int kNumbers = 5;
  const double *left, *right, *quadratic, *lower, *upper;

  explicit PiecewiseRows(const std::array<const double*, kNumbers>& of)
      : left(of[0]), right(of[1]), quadratic(of[2]), lower(of[3]), upper(of[4]) {}

  RowPoint at(Index i, double z) const {
    const double l = left[i], r = right[i], q = quadratic[i], low = lower[i], high = upper[i];
    const double excess = shrink(z, l, r), y = clip(select(excess == 0, 0, excess / q), low, high);
    const double slope = select(y > 0, r, select(y < 0, l, 0)), half = 0.5 * q * y * y;

    const double inside = select(y > low, select(y < high, 1, 0), 0), gap = select(y == 0, r - l, 0);
    const double second = select(q > 0, select(gap > 0, 0, inside / q), 0);

    const double below = l + q * low - z, above = z - r - q * high, between = select(z - l < r - z, z - l, r - z);
    const double flat = select(y <= low, below, select(y >= high, above, select(y == 0, between, 0)));
    const double largest = larger(std::fabs(l), std::fabs(r));

    return {.y = y,
            .value = y * (z - slope) - half,
            .tangent = -slope * y - half,
            .second = second,
            .distance = select(low == high, kInfinity, select(flat > 0, flat, 0)),
            .data = select(largest < kInfinity, largest, 0)};
  }

  /// How much the loss of a row rises if z moves that far from the minimiser.
  double rise(Index i, double move) const {
    const double q = quadratic[i], steepest = larger(std::fabs(lower[i]), std::fabs(upper[i])), line = steepest * move;
    const double parabola = 0.5 * move * move / q, finite = select(steepest < kInfinity, line, 0);
    return select(q > 0, select(line < parabola, line, parabola), finite);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
};

/// log(1 + exp(-label z)), as in functions/logistic.py.
struct LogisticRows {
  static constexpr int kNumbers = 1;
  const double* label;

  explicit LogisticRows(const std::array<const double*, kNumbers>& of) : label(of[0]) {}

  RowPoint at(Index i, double z) const {
    const double margin = label[i] * z, small = exp_of_negative(-std::fabs(margin)), total = 1 + small;
    const double y = -label[i] * (select(margin < 0, 1, small) / total);
    const double value = select(margin < 0, -margin, 0) + log1p_of_share(small);
    return {
        .y = y, .value = value, .tangent = value - y * z, .second = small / (total * total), .distance = 0, .data = 1};
  }

  /// No slope exceeds the weight.
  static double rise(Index, double move) { return move; }
};

/// Some rows in float64, centred, by columns; with a column of ones if there is an intercept, and columns of zeros up
/// to a multiple of four.
class RowTile {
 public:
  RowTile(Index columns, bool intercept)
      : columns_(columns), padded_((columns + intercept + 3) / 4 * 4),
        height_(std::clamp<Index>(kBytes / (8 * padded_), kLeast, kMost) / kLine * kLine),
        stride_(height_ + kLine),  // columns a page apart compete for the same places in the cache
        entries_(padded_ * stride_), four_(4 * padded_) {
    if (!intercept) return;
    std::fill_n(entries_.begin() + columns * stride_, height_, 1.0);
    for (int k = 0; k < 4; ++k) four_[k * padded_ + columns] = 1;
  }

  Index height() const { return height_; }
  Index stride() const { return stride_; }
  Index padded() const { return padded_; }

  const double* column(Index j) const { return &entries_[j * stride_]; }
  std::array<const double*, 4> four(Index j) const { return {column(j), column(j + 1), column(j + 2), column(j + 3)}; }

  template <class T> void read(const DenseRows<T>& from, Range rows, const double* centre) {
    if (!from.apart.empty()) copy_columns(from.apart.data(), rows, columns_, centre, at(0), stride_);
    else
      copy_rows(from.data + rows.begin * from.row_stride, from.row_stride, from.column_stride, rows.size(), columns_,
                centre, four_.data(), padded_, at(0), stride_);
  }

 private:
  static constexpr Index kBytes = 1 << 17, kLeast = 64, kMost = 1024, kLine = 8;

  double* at(Index j) { return &entries_[j * stride_]; }

  template <class T>
  SADDLEBACK_CLONES static void copy_columns(const T* const* from, Range rows, Index columns, const double* centre,
                                             double* to, Index stride) {
    for (Index j = 0; j < columns; ++j) {
      const T* own = from[j] + rows.begin;
      double *column = to + j * stride, middle = centre[j];
#pragma omp simd
      for (Index i = 0; i < rows.size(); ++i) column[i] = static_cast<double>(own[i]) - middle;
    }
  }

  /// Four rows at a time, first as they are, then four by four entries transposed in registers. A last group of fewer
  /// rows leaves meaningless numbers behind the rows of the tile.
  template <class T>
  SADDLEBACK_CLONES static void copy_rows(const T* from, Index row_stride, Index column_stride, Index rows,
                                          Index columns, const double* centre, double* four, Index padded, double* to,
                                          Index stride) {
    constexpr Index ahead = 16, line = 64 / sizeof(T);
    for (Index i = 0; i < rows; i += 4) {
      for (Index k = 0; k < std::min<Index>(4, rows - i); ++k) {
        const T* own = from + (i + k) * row_stride;
        for (Index j = 0; j < columns; j += line) simd::prefetch(own + ahead * row_stride + j * column_stride);
        if (column_stride == 1) centre_row(own, 1, columns, centre, four + k * padded);
        else centre_row(own, column_stride, columns, centre, four + k * padded);
      }
      for (Index j = 0; j < padded; j += 4) {
        double block[4][4];
        for (int k = 0; k < 4; ++k)
          for (int l = 0; l < 4; ++l) block[l][k] = four[k * padded + j + l];
        for (int l = 0; l < 4; ++l)
          for (int k = 0; k < 4; ++k) to[(j + l) * stride + i + k] = block[l][k];
      }
    }
  }

  template <class T>
  static void centre_row(const T* row, Index stride, Index columns, const double* centre, double* to) {
#pragma omp simd
    for (Index j = 0; j < columns; ++j) to[j] = static_cast<double>(row[j * stride]) - centre[j];
  }

  Index columns_, padded_, height_, stride_;
  std::vector<double> entries_, four_;
};

/// z += sum of x[k] columns[k], lengths += sum of factors[k] columns[k]^2.
SADDLEBACK_CLONES static void project4(const double* const columns[4], const double x[4], const double factors[4],
                                       double* z, double* lengths, Index rows) {
  const double *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
  const double xa = x[0], xb = x[1], xc = x[2], xd = x[3];
  const double fa = factors[0], fb = factors[1], fc = factors[2], fd = factors[3];
#pragma omp simd
  for (Index i = 0; i < rows; ++i) {
    const double ai = a[i], bi = b[i], ci = c[i], di = d[i];
    z[i] += (xa * ai + xb * bi) + (xc * ci + xd * di);
    lengths[i] += (fa * ai * ai + fb * bi * bi) + (fc * ci * ci + fd * di * di);
  }
}

/// out[k] = sum of (root * columns[k])^2.
SADDLEBACK_CLONES static void weighted_squares4(const double* const columns[4], const double* root, Index rows,
                                                double out[4]) {
  const double *a = columns[0], *b = columns[1], *c = columns[2], *d = columns[3];
  double sa = 0, sb = 0, sc = 0, sd = 0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
  for (Index i = 0; i < rows; ++i) {
    const double r = root[i], ai = r * a[i], bi = r * b[i], ci = r * c[i], di = r * d[i];
    sa += ai * ai, sb += bi * bi, sc += ci * ci, sd += di * di;
  }
  out[0] = sa, out[1] = sb, out[2] = sc, out[3] = sd;
}

/// v = factor sqrt(v).
SADDLEBACK_CLONES static void scale_roots(double* v, double factor, Index rows) {
#pragma omp simd
  for (Index i = 0; i < rows; ++i) v[i] = factor * std::sqrt(v[i]);
}

/// Evaluates the loss of some rows at z; writes y, the distances and the roots of the second derivatives. For the rise,
/// z moves by `resolved`, relative to the larger one of z and the data.
template <class Loss>
SADDLEBACK_CLONES static RowSums evaluate_losses(Loss loss, const double* weight, double resolved, Index rows,
                                                 const double* z, double* y, double* distance, double* root) {
  double value = 0, tangents = 0, rise = 0, of_y = 0, of_z = 0, of_data = 0;
#pragma omp simd reduction(+ : value, tangents, rise, of_y, of_z, of_data)
  for (Index i = 0; i < rows; ++i) {
    const double w = weight[i], u = z[i];
    const RowPoint at = loss.at(i, u);
    const double slope = w * at.y, move = resolved * larger(std::fabs(u), at.data);
    y[i] = slope;
    distance[i] = w > 0 ? at.distance : std::numeric_limits<double>::infinity();  // without a weight there is no kink
    root[i] = std::sqrt(w * at.second);
    value += w * at.value;
    tangents += w * at.tangent;
    rise += w * loss.rise(i, move);
    of_y += slope * slope;
    of_z += u * u;
    of_data += at.data * at.data;
  }
  return {value, tangents, rise, of_y, of_z, of_data};
}

/// Where and how to evaluate rows.
struct RowTask {
  const double *centre, *x, *leverage;  ///< `leverage` are the factors of squares in the leverage of a row
  bool intercept, curved;
  double width, resolved;
  std::optional<std::span<const Index>> chosen;  ///< rows to keep, in order; without them, those close to a kink
};

struct RowResult {
  RowSums sums;
  std::vector<double> pull, diagonal, gram;  ///< A'y; the diagonal of A'DA if rows are chosen; A'DA if it is asked for
  std::vector<Index> near;                   ///< the rows close to a kink
  std::vector<double> kept_y;                ///< of the rows that are chosen or near
};

/// Evaluates rows in one reading by the calling thread.
template <class Loss> class RowEvaluator {
 public:
  RowEvaluator(Index columns, const RowTask& task)
      : task_(task), size_(columns + task.intercept), tile_(columns, task.intercept), x_(padded(task.x)),
        leverage_(padded(task.leverage)), z_(height()), y_(height()), distance_(height()), threshold_(height()),
        root_(height()), scaled_(task.curved ? size_ * tile_.stride() : 0) {
    result_.pull.resize(tile_.padded());
    result_.diagonal.resize(task.chosen ? tile_.padded() : 0);
    result_.gram.resize(task.curved ? size_ * size_ : 0);
  }

  Index height() const { return tile_.height(); }

  /// `numbers` are those of the loss, and the weights.
  template <class T> RowResult evaluate(const DenseRows<T>& from, std::vector<RowNumbers>& numbers) {
    for (Range rows{0, 0}; rows.begin < from.rows; rows.begin = rows.end) {
      rows.end = std::min(rows.begin + height(), from.rows);
      tile_.read(from, rows, task_.centre);
      project(rows.size());
      evaluate_losses_of(rows, numbers);
      add_pull(rows.size());
      if (task_.curved) add_gram(rows.size());
      if (task_.chosen) {
        add_diagonal(rows.size());
        keep_chosen(rows);
      } else {
        keep_near(rows);
      }
    }
    result_.pull.resize(size_);
    if (task_.chosen) result_.diagonal.resize(size_);
    if (task_.curved)
      for (Index j = 0; j < size_; ++j)
        for (Index i = 0; i < j; ++i) result_.gram[j * size_ + i] = result_.gram[i * size_ + j];
    return std::move(result_);
  }

 private:
  std::vector<double> padded(const double* vector) const {
    std::vector<double> result(vector, vector + size_);
    result.resize(tile_.padded());
    return result;
  }

  void project(Index rows) {
    std::fill_n(z_.begin(), rows, 0.0);
    std::fill_n(threshold_.begin(), rows, 0.0);
    for (Index j = 0; j < tile_.padded(); j += 4) {
      const auto columns = tile_.four(j);
      if (task_.chosen) simd::axpy4(columns.data(), &x_[j], z_.data(), rows);
      else project4(columns.data(), &x_[j], &leverage_[j], z_.data(), threshold_.data(), rows);
    }
    if (!task_.chosen) scale_roots(threshold_.data(), task_.width, rows);
  }

  void evaluate_losses_of(Range rows, std::vector<RowNumbers>& numbers) {
    std::array<const double*, Loss::kNumbers> own;
    for (int k = 0; k < Loss::kNumbers; ++k) own[k] = tile_of(numbers[k], rows);
    result_.sums += evaluate_losses(Loss(own), tile_of(numbers.back(), rows), task_.resolved, rows.size(), z_.data(),
                                    y_.data(), distance_.data(), root_.data());
  }

  void add_pull(Index rows) {
    for (Index j = 0; j < tile_.padded(); j += 4) {
      double sums[4];
      simd::dot4(tile_.four(j).data(), y_.data(), rows, sums);
      for (int k = 0; k < 4; ++k) result_.pull[j + k] += sums[k];
    }
  }

  void add_diagonal(Index rows) {
    for (Index j = 0; j < tile_.padded(); j += 4) {
      double sums[4];
      weighted_squares4(tile_.four(j).data(), root_.data(), rows, sums);
      for (int k = 0; k < 4; ++k) result_.diagonal[j + k] += sums[k];
    }
  }

  void add_gram(Index rows) {
    const Index stride = tile_.stride();
    for (Index j = 0; j < size_; ++j) simd::multiply(tile_.column(j), root_.data(), &scaled_[j * stride], rows);
    multiply_self(false, size_, rows, 1.0, scaled_.data(), stride, 1.0, result_.gram.data(), size_);
  }

  void keep_chosen(Range rows) {
    const std::span<const Index> chosen = *task_.chosen;
    for (; passed_ < length(chosen) && chosen[passed_] < rows.end; ++passed_)
      result_.kept_y.push_back(y_[chosen[passed_] - rows.begin]);
  }

  void keep_near(Range rows) {
    for (Index i = 0; i < rows.size(); ++i) {
      if (!(distance_[i] <= threshold_[i])) continue;
      result_.near.push_back(rows.begin + i);
      result_.kept_y.push_back(y_[i]);
    }
  }

  RowTask task_;
  Index size_, passed_ = 0;  ///< length of x, and how many of the chosen rows were passed
  RowTile tile_;
  std::vector<double> x_, leverage_, z_, y_, distance_, threshold_, root_, scaled_;
  RowResult result_;
};

}  // namespace saddleback
