/// \file
/// Matrices one above the other.
#pragma once

#include "matrix.hpp"
#include "types.hpp"

namespace saddleback {

/// Matrices one above the other, read as one matrix. Rows that none of them has are 0.
class Above final : public Columns {
 public:
  struct Part {
    std::shared_ptr<const Columns> matrix;
    Index first;  ///< its first row
  };

  Above(Index rows, Index count, std::vector<Part> parts) : Columns(rows, count), parts_(std::move(parts)) {
    for (const auto& [matrix, first] : parts_)
      if (matrix->count() != count || first < 0 || matrix->rows() > rows || first > rows - matrix->rows())
        throw std::invalid_argument("matrices one above the other must have the same columns, and lie inside the rows");
  }

  Index stored() const override {
    Index total = 0;
    for (const Part& part : parts_) total += part.matrix->stored();
    return total;
  }

  bool sliceable() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.matrix->sliceable(); });
  }

  void dots(Range rows, const Index* column, int count, const double* y, double* out,
            const double* sums) const override {
    std::fill_n(out, count, 0.0);
    for (const Part& part : parts_) {
      const Range own = inside(part, rows);
      if (own.size() <= 0) continue;
      double product[kBatch];
      part.matrix->dots(own, column, count, y + part.first, product, sums ? sums + part.first : nullptr);
      for (int k = 0; k < count; ++k) out[k] += product[k];
    }
  }

  void add(Range rows, const Index* column, int count, const double* factor, double* v, int following) const override {
    for (const Part& part : parts_) {
      const Range own = inside(part, rows);
      if (own.size() > 0) part.matrix->add(own, column, count, factor, v + part.first, following);
    }
  }

  void scatter(Index column, const double* weight, double* v) const override {
    for (const Part& part : parts_) part.matrix->scatter(column, weight + part.first, v + part.first);
  }

  void append_rows(Index column, std::vector<Index>& out) const override {
    for (const Part& part : parts_) {
      const std::size_t before = out.size();
      part.matrix->append_rows(column, out);
      for (std::size_t i = before; i < out.size(); ++i) out[i] += part.first;
    }
  }

  double add_powers(Index column, int power, double* v) const override {
    double sum = 0;
    for (const Part& part : parts_) sum += part.matrix->add_powers(column, power, v + part.first);
    return sum;
  }

  void scan(const Index* column, int count, const double* y, double* products, double* squares,
            double* v) const override {
    for (int k = 0; k < count; ++k) {
      dots(all(), column + k, 1, y, products + k, nullptr);
      squares[k] = add_powers(column[k], 2, v);
    }
  }

  void add_to(RoundedSum& sum, Index column, const double* y, const double* radius, bool precise) const override {
    for (const Part& part : parts_)
      part.matrix->add_to(sum, column, y + part.first, radius ? radius + part.first : nullptr, precise);
  }

  void add_to(const RoundedSums& sums, Range rows, Index column, double factor, double radius,
              bool precise) const override {
    for (const Part& part : parts_) {
      const Range own = inside(part, rows);
      if (own.size() <= 0) continue;
      const Index begin = part.first + own.begin - rows.begin;
      part.matrix->add_to(sums.from(begin), own, column, factor, radius, precise);
    }
  }

  bool valid(const Index* column, int count) const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](const Part& part) { return part.matrix->valid(column, count); });
  }

  bool valid(Range columns) const override {
    return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.matrix->valid(columns); });
  }

  bool canonical() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.matrix->canonical(); });
  }

 private:
  /// The rows of a part inside a range of all rows.
  static Range inside(const Part& part, Range rows) {
    return {std::max<Index>(rows.begin - part.first, 0), std::min(rows.end - part.first, part.matrix->rows())};
  }

  std::vector<Part> parts_;
};

}  // namespace saddleback
