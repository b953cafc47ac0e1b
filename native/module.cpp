/// \file
/// The Python module: checks what comes in and hands it on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "block_kernel.hpp"
#include "descent.hpp"
#include "digest.hpp"
#include "matrix.hpp"
#include "newton.hpp"
#include "products.hpp"
#include "row_loss.hpp"
#include "sparse_gram.hpp"
#include "stack.hpp"
#include "threads.hpp"
#include "tiled_blas.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace saddleback {
namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Input = Array<const double>;
using Output = Array<double>;
using Indices = Array<const Index>;
using DrawArray = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Anything = nb::ndarray<nb::ro, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using MatrixPointer = std::unique_ptr<Columns>;

void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

/// The object as an array of this kind, as it is: no copy, no conversion.
template <class Kind>
Kind as(nb::handle object, const char* message) {
  Kind array;
  if (!nb::try_cast<Kind>(object, array, false)) throw nb::type_error(message);
  return array;
}

template <class T>
bool holds(const Anything& array) {
  return array.dtype() == nb::dtype<T>();
}

template <class T>
const T* data(const Anything& array) {
  return static_cast<const T*>(array.data());
}

std::vector<double> copy(nb::handle object, Index size, const char* message) {
  const auto array = as<Input>(object, message);
  require(static_cast<Index>(array.size()) == size, message);
  return {array.data(), array.data() + size};
}

Result new_array(Index size, double*& entries) {
  entries = new double[size]();
  nb::capsule owner(entries, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return Result(entries, {static_cast<std::size_t>(size)}, owner);
}

bool contiguous_along(const Anything& matrix, int axis) {
  return matrix.size() == 0 || matrix.shape(axis) == 1 || matrix.stride(axis) == 1;
}

/// The columns of a dense array, or its rows where `transposed`.
MatrixPointer dense_view(const Anything& matrix, bool transposed) {
  const int along = transposed ? 1 : 0, across = 1 - along;
  const auto rows = static_cast<Index>(matrix.shape(along));
  const auto count = static_cast<Index>(matrix.shape(across));
  const Index stride = matrix.stride(across);
  if (holds<double>(matrix)) return std::make_unique<Dense<double>>(data<double>(matrix), rows, count, stride);
  if (holds<float>(matrix)) return std::make_unique<Dense<float>>(data<float>(matrix), rows, count, stride);
  throw nb::type_error("a matrix must hold float32 or float64");
}

template <class I>
MatrixPointer sparse_view(const Anything& indptr, const Anything& indices, const Anything& values, Index rows) {
  const auto count = static_cast<Index>(indptr.size()) - 1;
  const auto stored = static_cast<Index>(values.size());
  if (holds<double>(values))
    return std::make_unique<Sparse<I, double>>(data<I>(indptr), data<I>(indices), data<double>(values), stored, rows,
                                               count);
  if (holds<float>(values))
    return std::make_unique<Sparse<I, float>>(data<I>(indptr), data<I>(indices), data<float>(values), stored, rows,
                                              count);
  throw nb::type_error("a matrix must hold float32 or float64");
}

MatrixPointer sparse_view(const Anything& indptr, const Anything& indices, const Anything& values, Index rows) {
  for (const Anything* array : {&indptr, &indices, &values})
    require(array->ndim() == 1 && contiguous_along(*array, 0), "indptr, indices and data must be contiguous vectors");
  require(rows >= 0 && indptr.size() >= 1 && indices.size() == values.size(),
          "indptr must not be empty, and indices must be as long as data");
  if (holds<std::int32_t>(indptr) && holds<std::int32_t>(indices))
    return sparse_view<std::int32_t>(indptr, indices, values, rows);
  if (holds<std::int64_t>(indptr) && holds<std::int64_t>(indices))
    return sparse_view<std::int64_t>(indptr, indices, values, rows);
  throw nb::type_error("indptr and indices must both hold int32 or both int64");
}

/// A dense array seen along whichever axis is contiguous.
struct DenseArgument {
  explicit DenseArgument(const Anything& matrix) {
    require(matrix.ndim() == 2, "a matrix must have two dimensions");
    transposed = !contiguous_along(matrix, 0);
    require(!transposed || contiguous_along(matrix, 1), "a matrix must have contiguous columns or contiguous rows");
    view = dense_view(matrix, transposed);
  }

  bool transposed;
  MatrixPointer view;
};

Result multiply(const Columns& matrix, const Input& vector, bool transposed) {
  const Index inner = transposed ? matrix.rows() : matrix.count();
  const Index outer = transposed ? matrix.count() : matrix.rows();
  require(static_cast<Index>(vector.size()) == inner, "the vector does not fit the matrix");
  double* entries;
  Result result = new_array(outer, entries);
  nb::gil_scoped_release released;
  if (transposed) multiply_transposed(matrix, vector.data(), entries);
  else multiply(matrix, vector.data(), entries);
  return result;
}

/// The lower triangle of A' diag(weight) A, n x n, one column after the other.
Result gram(const Indices& indptr, const Indices& indices, const Input& values, Index columns, const Input& weight) {
  require(indptr.size() == weight.size() + 1 && indices.size() == values.size(),
          "indptr must be longer by one than weight, and indices as long as data");
  require(0 <= columns && columns < (Index{1} << 31), "columns must lie between 0 and 2**31, so that columns**2 fits");
  const auto rows = static_cast<Index>(weight.size());
  require(indptr.data()[0] == 0 && indptr.data()[rows] == static_cast<Index>(values.size()),
          "indptr must begin with 0 and end with the number of entries");
  for (Index row = 0; row < rows; ++row) {
    Index before = -1;
    require(indptr.data()[row] <= indptr.data()[row + 1], "indptr must not decrease");
    for (Index at = indptr.data()[row]; at < indptr.data()[row + 1]; ++at) {
      require(indices.data()[at] > before && indices.data()[at] < columns,
              "the columns of a row must increase and lie inside the matrix");
      before = indices.data()[at];
    }
  }
  double* entries;
  Result result = new_array(columns * columns, entries);
  nb::gil_scoped_release released;
  add_gram({indptr.data(), indices.data(), values.data(), rows}, weight.data(), entries, columns);
  return result;
}

void require_columns(const Indices& columns, Index count) {
  for (std::size_t k = 0; k < columns.size(); ++k)
    require(columns.data()[k] >= 0 && columns.data()[k] < count, "a listed column does not exist");
}

Result multiply_listed(const Columns& matrix, const Indices& columns, const Input& y) {
  require(static_cast<Index>(y.size()) == matrix.rows(), "the vector does not fit the matrix");
  require_columns(columns, matrix.count());
  double* entries;
  Result result = new_array(static_cast<Index>(columns.size()), entries);
  nb::gil_scoped_release released;
  multiply_transposed(matrix, columns.data(), static_cast<Index>(columns.size()), y.data(), entries);
  return result;
}

std::pair<Result, Result> sums(const Columns& matrix, int power) {
  require(0 <= power && power <= 2, "power must be 0, 1 or 2");
  double *columns, *rows;
  std::pair result{new_array(matrix.count(), columns), new_array(matrix.rows(), rows)};
  nb::gil_scoped_release released;
  sum_powers(matrix, power, columns, rows);
  return result;
}

std::tuple<Result, Result, Result> survey(const Columns& matrix, const Input& y) {
  require(static_cast<Index>(y.size()) == matrix.rows(), "the vector does not fit the matrix");
  double *columns, *rows, *products;
  std::tuple result{new_array(matrix.count(), columns), new_array(matrix.rows(), rows),
                    new_array(matrix.count(), products)};
  nb::gil_scoped_release released;
  scan(matrix, y.data(), columns, rows, products);
  return result;
}

/// Some columns of a dense array, in memory of their own and in the precision of To.
template <class From, class To>
nb::object gather(const Anything& matrix, const Indices& columns) {
  // Columns a multiple of a page apart would all compete for the same few places in the cache.
  constexpr Index line = 64 / sizeof(To), page = 4096 / sizeof(To);
  const auto rows = static_cast<Index>(matrix.shape(0)), count = static_cast<Index>(columns.size());
  Index stride = (rows + line - 1) / line * line;
  if (stride % page == 0) stride += line;
  To* entries = new To[std::max<Index>(1, stride * count)];
  nb::capsule owner(entries, [](void* p) noexcept { delete[] static_cast<To*>(p); });
  {
    nb::gil_scoped_release released;
    copy_columns(data<From>(matrix), rows, matrix.stride(1), columns.data(), count, entries, stride);
  }
  const std::size_t shape[] = {static_cast<std::size_t>(rows), static_cast<std::size_t>(count)};
  const std::int64_t strides[] = {1, stride};
  return nb::cast(nb::ndarray<nb::numpy, To, nb::ndim<2>>(entries, 2, shape, owner, strides));
}

template <class T>
T* new_vector(Index size, nb::object& array) {
  T* entries = new T[std::max<Index>(1, size)];
  nb::capsule owner(entries, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const std::size_t shape[] = {static_cast<std::size_t>(size)};
  array = nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(entries, 1, shape, owner));
  return entries;
}

/// Some columns of a sparse matrix, in memory of their own and in the precision of To.
template <class I, class From, class To>
nb::tuple gather(const Anything& indptr, const Anything& indices, const Anything& values, const Indices& columns) {
  const I *start = data<I>(indptr), *row = data<I>(indices);
  const From* value = data<From>(values);
  const auto count = static_cast<Index>(columns.size());
  nb::object new_indptr, new_indices, new_values;
  I* to = new_vector<I>(count + 1, new_indptr);
  const auto stored = static_cast<Index>(values.size());
  Index total = to[0] = 0;
  for (Index k = 0; k < count; ++k) {
    const Index first = start[columns.data()[k]], stop = start[columns.data()[k] + 1];
    require(0 <= first && first <= stop && stop <= stored, "a listed column lies outside indices and data");
    total += stop - first;
    require(total <= std::numeric_limits<I>::max(), "the listed columns have more entries than indptr can count");
    to[k + 1] = static_cast<I>(total);
  }
  I* to_row = new_vector<I>(to[count], new_indices);
  To* to_value = new_vector<To>(to[count], new_values);
  {
    nb::gil_scoped_release released;
    for (Index k = 0; k < count; ++k) {
      const Index from = start[columns.data()[k]], size = to[k + 1] - to[k];
      std::copy_n(row + from, size, to_row + to[k]);
      std::transform(value + from, value + from + size, to_value + to[k],
                     [](From entry) { return static_cast<To>(entry); });
    }
  }
  return nb::make_tuple(new_indptr, new_indices, new_values);
}

nb::tuple gather(const Anything& indptr, const Anything& indices, const Anything& values, const Indices& columns,
                 bool single) {
  const auto matrix = sparse_view(indptr, indices, values, 0);
  require_columns(columns, matrix->count());
  const auto of_index = [&]<class I>(I) {
    if (holds<float>(values)) return gather<I, float, float>(indptr, indices, values, columns);
    return single ? gather<I, double, float>(indptr, indices, values, columns)
                  : gather<I, double, double>(indptr, indices, values, columns);
  };
  return holds<std::int32_t>(indptr) ? of_index(std::int32_t{}) : of_index(std::int64_t{});
}

nb::object gather(const Anything& matrix, const Indices& columns, bool single) {
  require(matrix.ndim() == 2 && contiguous_along(matrix, 0), "a dense matrix must have contiguous columns");
  require_columns(columns, static_cast<Index>(matrix.shape(1)));
  if (holds<double>(matrix))
    return single ? gather<double, float>(matrix, columns) : gather<double, double>(matrix, columns);
  require(holds<float>(matrix), "a matrix must hold float32 or float64");
  return gather<float, float>(matrix, columns);
}

/// A routine of scipy's, checked to take what Fortran gives it. The signature names the types of numbers by
/// their letters at the ends of longer names.
template <class Function>
Function routine(const nb::dict& routines, const char* name, const char* expected) {
  const auto capsule = nb::cast<nb::capsule>(routines[name]);
  std::string signature = capsule.name();
  for (std::size_t at; (at = signature.find("__pyx_t_")) != std::string::npos;) {
    const std::size_t end = signature.find(" *", at);
    require(end != std::string::npos, "a routine has another signature");
    signature.erase(at, end - 1 - at);
  }
  require(signature == expected, "a routine has another signature");
  return reinterpret_cast<Function>(capsule.data());
}

void use_blas(const nb::dict& routines) {
  Blas blas;
  blas.dgemm = routine<Blas::Gemm<double>>(
      routines, "dgemm", "void (char *, char *, int *, int *, int *, d *, d *, int *, d *, int *, d *, d *, int *)");
  blas.sgemm = routine<Blas::Gemm<float>>(
      routines, "sgemm", "void (char *, char *, int *, int *, int *, s *, s *, int *, s *, int *, s *, s *, int *)");
  blas.dsyrk =
      routine<Blas::Syrk>(routines, "dsyrk", "void (char *, char *, int *, int *, d *, d *, int *, d *, d *, int *)");
  blas.dtrsm = routine<Blas::Trsm>(routines, "dtrsm",
                                   "void (char *, char *, char *, char *, int *, int *, d *, d *, int *, d *, int *)");
  blas.dpotrf = routine<Blas::Potrf>(routines, "dpotrf", "void (char *, int *, d *, int *, int *)");
  Blas::instance() = blas;
}

template <class T>
using Square = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

void require_blas() { require(Blas::instance().complete(), "use_blas has not been called"); }

/// What the BLAS takes: sizes that are ints, and one axis along which entries lie side by side.
template <class T>
Tiled<const T> tiled(const Anything& matrix) {
  require(matrix.ndim() == 2 && holds<T>(matrix), "the matrices must be two-dimensional and of one type");
  const bool by_rows = !contiguous_along(matrix, 0);
  require(!by_rows || contiguous_along(matrix, 1), "a matrix must have contiguous columns or contiguous rows");
  const auto inner = static_cast<Index>(matrix.shape(by_rows ? 1 : 0));
  const Index stride = matrix.shape(by_rows ? 0 : 1) > 1 ? matrix.stride(by_rows ? 0 : 1) : inner;
  require(stride >= std::max<Index>(1, inner), "a matrix must be stored forwards");
  for (const Index size : {static_cast<Index>(matrix.shape(0)), static_cast<Index>(matrix.shape(1)), stride})
    require(size <= std::numeric_limits<int>::max(), "a matrix is too large for the BLAS");
  return {data<T>(matrix), stride, by_rows};
}

Index factor(const Square<double>& matrix) {
  require_blas();
  const auto n = static_cast<Index>(matrix.shape(0));
  require(static_cast<Index>(matrix.shape(1)) == n && (n <= 1 || (matrix.stride(0) == 1 && matrix.stride(1) == n)),
          "the matrix must be square, with contiguous columns");
  require(n <= std::numeric_limits<int>::max(), "the matrix is too large for the BLAS");
  nb::gil_scoped_release released;
  return cholesky(matrix.data(), n, std::max<Index>(1, n));
}

void add_panel(const Anything& panel, const Input& weight, const Square<double>& out) {
  require_blas();
  require(panel.ndim() == 2, "a matrix must have two dimensions");
  const auto m = static_cast<Index>(panel.shape(0)), n = static_cast<Index>(panel.shape(1));
  require(static_cast<Index>(weight.size()) == m, "there must be a weight for every row");
  require(static_cast<Index>(out.shape(0)) == n && static_cast<Index>(out.shape(1)) == n &&
              (n <= 1 || (out.stride(0) == 1 && out.stride(1) == n)),
          "the result must be square, with contiguous columns");
  if (m == 0 || n == 0) return;
  const auto add = [&]<class T>(const Tiled<const T>& p) {
    nb::gil_scoped_release released;
    add_weighted_gram(p, m, n, weight.data(), out.data());
  };
  if (holds<float>(panel)) add(tiled<float>(panel));
  else add(tiled<double>(panel));
}

template <class T>
void product(Blas::Gemm<T> gemm, const Anything& a, const Anything& b, const Square<T>& out, bool symmetric) {
  require(a.size() > 0 && b.size() > 0, "the matrices must not be empty");
  const Tiled<const T> left = tiled<T>(a), right = tiled<T>(b);
  const auto m = static_cast<Index>(a.shape(0)), k = static_cast<Index>(a.shape(1)), n = static_cast<Index>(b.shape(1));
  require(static_cast<Index>(b.shape(0)) == k && static_cast<Index>(out.shape(0)) == m &&
              static_cast<Index>(out.shape(1)) == n && (m <= 1 || out.stride(0) == n) && (n <= 1 || out.stride(1) == 1),
          "the matrices do not fit, or the result has no contiguous rows");
  require(!symmetric || m == n, "a symmetric matrix must be square");
  nb::gil_scoped_release released;
  multiply_tiles(gemm, left, right, out.data(), m, n, k, symmetric);
}

Callable callable(nb::handle address, nb::handle user_data, nb::handle takes_user_data) {
  const auto pointer = nb::cast<std::uintptr_t>(address);
  require(pointer != 0, "a callable must have an address");
  return {reinterpret_cast<const void*>(pointer), reinterpret_cast<void*>(nb::cast<std::uintptr_t>(user_data)),
          nb::cast<bool>(takes_user_data)};
}

Coordinates make_coordinates(nb::handle parameters, Index first, Index size, const char* message) {
  const auto parameter = [&](Index i) { return copy(parameters[first + i], size, message); };
  return {parameter(0), parameter(1), parameter(2), parameter(3), parameter(4)};
}

std::shared_ptr<const RowLoss> make_loss(Index rows, nb::tuple loss, nb::object loss_callable) {
  constexpr auto message = "the parameters of the loss must be float64 vectors with one entry per row";
  require(nb::len(loss) >= 1, "the loss must have a kind");
  const auto kind = nb::cast<std::string>(loss[0]);
  if (kind == "coordinate" && nb::len(loss) == 6)
    return std::make_shared<CoordinateLoss>(make_coordinates(loss, 1, rows, message));
  if (kind == "logistic" && nb::len(loss) == 3)
    return std::make_shared<LogisticLoss>(copy(loss[1], rows, message), copy(loss[2], rows, message));
  if (kind == "callable" && nb::len(loss) == 1 && nb::len(loss_callable) == 3)
    return std::make_shared<CallableLoss>(rows, callable(loss_callable[0], loss_callable[1], loss_callable[2]));
  throw nb::value_error("the loss must be coordinate, logistic or callable, with its parameters");
}

std::vector<Coordinate> make_coordinates(nb::tuple parameters) {
  constexpr auto message = "the penalty must be five float64 vectors of equal length";
  require(nb::len(parameters) == 5, message);
  return make_coordinates(parameters, 0, static_cast<Index>(as<Input>(parameters[0], message).size()), message)
      .by_entry();
}

Penalty make_penalty(nb::tuple parameters, nb::sequence callables) {
  Penalty penalty;
  penalty.coordinate = make_coordinates(parameters);
  const auto n = static_cast<Index>(penalty.coordinate.size());
  for (nb::handle entry : callables) {
    require(nb::len(entry) == 5, "a penalty callable must be a tuple of five");
    const auto first = nb::cast<Index>(entry[0]), stop = nb::cast<Index>(entry[1]);
    require(0 <= first && first <= stop && stop <= n, "a penalty callable names missing columns");
    penalty.callable_of.resize(n, -1);
    std::fill(penalty.callable_of.begin() + first, penalty.callable_of.begin() + stop,
              static_cast<int>(penalty.callable.size()));
    penalty.callable.push_back(callable(entry[2], entry[3], entry[4]));
  }
  return penalty;
}

/// Matrices that Python owns, and the arrays that keep them alive.
class Owners {
 public:
  MatrixPointer view(nb::handle matrix, Index rows) {
    constexpr auto message = "a matrix must be an array or a tuple (indptr, indices, data, n_columns)";
    const auto keep = [&](nb::handle object) { return owners_.emplace_back(as<Anything>(object, message)); };
    if (!nb::isinstance<nb::tuple>(matrix)) {
      const Anything array = keep(matrix);
      require(array.ndim() == 2 && contiguous_along(array, 0), "a dense matrix must have contiguous columns");
      return dense_view(array, false);
    }
    require(nb::len(matrix) == 4, message);
    const Anything indptr = keep(matrix[0]), indices = keep(matrix[1]), values = keep(matrix[2]);
    require(static_cast<Index>(indptr.size()) == nb::cast<Index>(matrix[3]) + 1,
            "indptr must have one entry more than there are columns");
    return sparse_view(indptr, indices, values, rows);
  }

  Stack stack(nb::sequence matrices, Index rows) {
    require(rows >= 0, "rows must not be negative");
    std::vector<MatrixPointer> result;
    for (nb::handle matrix : matrices) result.push_back(view(matrix, rows));
    return Stack(rows, std::move(result));
  }

 private:
  std::vector<Anything> owners_;
};

Blocks make_blocks(const Indices& start, const Indices& columns, const Input& group_weight) {
  const auto vector = [](const auto& array) { return std::vector(array.data(), array.data() + array.size()); };
  return Blocks(vector(start), vector(columns), vector(group_weight));
}

/// The Python function as what a kernel calls while the interpreter is released; it must not
/// outlive the function. Empty for none.
Exchange exchange_through(const std::optional<nb::callable>& function, Index size) {
  if (!function) return {};
  return [&function, size](double* numbers) {
    nb::gil_scoped_acquire acquired;
    (*function)(nb::ndarray<nb::numpy, double, nb::ndim<1>>(numbers, {static_cast<std::size_t>(size)}, nb::none()));
  };
}

/// A kernel and the arrays it looks into.
class BoundKernel {
 public:
  BoundKernel(Index rows, nb::sequence matrices, Indices block_start, Indices block_columns, nb::tuple penalty,
              Input group_weight, nb::tuple loss, nb::sequence callables, nb::object loss_callable) {
    kernel_ =
        std::make_unique<Kernel>(owners_.stack(matrices, rows), make_blocks(block_start, block_columns, group_weight),
                                 make_penalty(penalty, callables), make_loss(rows, loss, loss_callable));
  }

  void sweep(const DrawArray& draws, const Input& h, const Input& sigma, double extrapolation, const Output& x,
             const Output& y, const Output& r, const Output& x_sum, const Output& y_sum, bool lazy,
             std::optional<nb::callable> exchange) {
    require(!(lazy && exchange), "changes are exchanged in all rows, and not lazily");
    require_columns(h, x, x_sum);
    require_rows(sigma, y, r, y_sum);
    const Primal primal{h.data(), x.data(), x_sum.data(), y.data()};
    const Dual dual{extrapolation, nullptr, r.data(), y.data(), y_sum.data()};
    const Exchange with_others = exchange_through(exchange, kernel_->rows());
    nb::gil_scoped_release released;
    if (lazy) kernel_->sweep_lazily(all(draws), sigma.data(), primal, dual);
    else kernel_->sweep(all(draws), sigma.data(), primal, dual, with_others);
  }

  void sweep_pure(const DrawArray& draws, const Input& h, const Input& sigma, const Input& theta, const Output& x,
                  const Output& y, const Output& bar, const Output& r, const Output& x_sum, const Output& y_sum) {
    require_columns(h, x, x_sum);
    require_rows(sigma, theta, y, bar, r, y_sum);
    const Primal primal{h.data(), x.data(), x_sum.data(), bar.data()};
    const Dual dual{0, nullptr, r.data(), y.data(), y_sum.data()};
    nb::gil_scoped_release released;
    kernel_->sweep_pure(all(draws), sigma.data(), theta.data(), primal, dual, bar.data());
  }

  void primal_step(const Indices& blocks, const Input& h, const Output& x, const Input& y, const Output& v) {
    require_columns(h, x);
    require_rows(y, v);
    nb::gil_scoped_release released;
    kernel_->primal_step(blocks.data(), static_cast<Index>(blocks.size()), {h.data(), x.data(), nullptr, y.data()},
                         v.data());
  }

 private:
  static Draws all(const DrawArray& draws) {
    return {draws.data(), static_cast<Index>(draws.shape(0)), static_cast<Index>(draws.shape(1))};
  }

  template <class... Vectors>
  void require_columns(const Vectors&... vectors) const {
    require(((static_cast<Index>(vectors.size()) == kernel_->columns()) && ...),
            "h, x and x_sum must have one entry a column");
  }

  template <class... Vectors>
  void require_rows(const Vectors&... vectors) const {
    require(((static_cast<Index>(vectors.size()) == kernel_->rows()) && ...),
            "sigma, theta, y, bar, r, v and y_sum must have one entry a row");
  }

  Owners owners_;
  std::unique_ptr<Kernel> kernel_;
};

/// A smooth loss, which kernels share.
struct BoundLoss {
  BoundLoss(Index rows, nb::tuple loss, Input curvature)
      : shared(std::make_shared<const SmoothLoss>(
            make_loss(rows, loss, nb::none()), std::vector(curvature.data(), curvature.data() + curvature.size()))) {}

  std::shared_ptr<const SmoothLoss> shared;
};

/// Coordinate descent and the arrays it looks into.
class BoundDescent {
 public:
  BoundDescent(Index rows, nb::sequence matrices, Indices block_start, Indices block_columns, nb::tuple penalty,
               Input group_weight, const BoundLoss& loss, Index width, std::optional<BoundDescent*> measured) {
    require(width >= 1, "a panel must have at least one column");
    SmoothProblem problem{owners_.stack(matrices, rows), make_blocks(block_start, block_columns, group_weight),
                          make_coordinates(penalty), loss.shared};
    nb::gil_scoped_release released;
    descent_ = std::make_unique<Descent>(std::move(problem), width, measured ? (*measured)->descent_.get() : nullptr);
  }

  void look_into(nb::sequence matrices) {
    Owners owners;
    descent_->rebind(owners.stack(matrices, descent_->rows()));
    owners_ = std::move(owners);
  }

  Index sweep(Index sweeps, const Output& x, const Output& u, const Output& y, std::optional<nb::callable> exchange) {
    require(static_cast<Index>(x.size()) == descent_->columns(), "x must have one entry a column");
    require_rows(u.size());
    require_rows(y.size());
    const Exchange with_others = exchange_through(exchange, Rounds::exchanged(descent_->rows()));
    nb::gil_scoped_release released;
    return descent_->sweep(sweeps, x.data(), u.data(), y.data(), with_others);
  }

  double together() const { return descent_->columns_between_exchanges(); }
  void set_together(double columns) { descent_->set_columns_between_exchanges(columns); }

  Result strength() const {
    double* entries;
    Result result = new_array(descent_->columns(), entries);
    std::copy_n(descent_->strength().data(), descent_->columns(), entries);
    return result;
  }

  Result products(const Indices& columns, const Input& y) {
    require_columns(columns, descent_->columns());
    require_rows(y.size());
    double* entries;
    Result result = new_array(static_cast<Index>(columns.size()), entries);
    nb::gil_scoped_release released;
    Lease lease;
    selected(columns).products(lease, y.data(), entries);
    return result;
  }

  Result image(const Indices& columns, const Input& d) {
    require_columns(columns, descent_->columns());
    require(d.size() == columns.size(), "there must be one entry a listed column");
    double* entries;
    Result result = new_array(descent_->rows(), entries);
    nb::gil_scoped_release released;
    Lease lease;
    selected(columns).image(lease, d.data(), entries);
    return result;
  }

  std::pair<Result, Index> solve(const Indices& columns, const Input& weight, const Input& extra, const Input& along,
                                 const Indices& group, const Input& right, const Input& diagonal, double tolerance,
                                 Index most) {
    require_columns(columns, descent_->columns());
    require_rows(weight.size());
    for (const std::size_t size : {extra.size(), along.size(), group.size(), right.size(), diagonal.size()})
      require(size == columns.size(), "there must be one entry a listed column");
    for (std::size_t k = 0; k < group.size(); ++k)
      require(group.data()[k] >= 0 && group.data()[k] < static_cast<Index>(columns.size()),
              "groups are numbered from 0, and fewer than the listed columns");
    double* entries;
    Result result = new_array(static_cast<Index>(columns.size()), entries);
    Index steps;
    {
      nb::gil_scoped_release released;
      const NewtonSystem system{weight.data(), extra.data(), along.data(), group.data(), right.data(), diagonal.data()};
      steps = conjugate_gradients(selected(columns), system, tolerance, most, entries);
    }
    return {result, steps};
  }

 private:
  Selection selected(const Indices& columns) const {
    return {descent_->matrix(), columns.data(), static_cast<Index>(columns.size())};
  }

  void require_rows(std::size_t size) const {
    require(static_cast<Index>(size) == descent_->rows(), "u, y and weight must have one entry a row");
  }

  Owners owners_;
  std::unique_ptr<Descent> descent_;
};

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled core: products with a matrix and the block-coordinate iteration.";

  m.attr("MOST_THREADS") = Pool::kMostThreads;
  m.def(
      "set_threads",
      [](int n) {
        require(n >= 1, "at least one thread is needed");
        return Threads::instance().set_limit(n);
      },
      "n"_a, "Limit the threads used in calls from this thread; return the previous limit.");
  m.def(
      "set_process_threads",
      [](int n) {
        require(n >= 1, "at least one thread is needed");
        Threads::instance().set_process_limit(n);
      },
      "n"_a, "Limit the threads used in calls from every thread without a limit of its own.");
  m.def(
      "thread_limit", [] { return Threads::instance().limit(); },
      "Number of threads that calls from this thread may use.");
  m.def(
      "leave_threads", [](int n) { return std::exchange(left_to_others(), n); }, "n"_a,
      "Leave so many of the threads to others in calls from this thread; return how many were left so far.");

  m.def(
      "dense_matvec",
      [](const Anything& A, const Input& x) {
        const DenseArgument matrix(A);
        return multiply(*matrix.view, x, matrix.transposed);
      },
      "A"_a.noconvert(), "x"_a.noconvert(), "Return A @ x in double precision.");
  m.def(
      "dense_rmatvec",
      [](const Anything& A, const Input& y) {
        const DenseArgument matrix(A);
        return multiply(*matrix.view, y, !matrix.transposed);
      },
      "A"_a.noconvert(), "y"_a.noconvert(), "Return A.T @ y in double precision.");
  m.def(
      "dense_sums",
      [](const Anything& A, int power) {
        const DenseArgument matrix(A);
        auto result = sums(*matrix.view, power);
        if (matrix.transposed) std::swap(result.first, result.second);
        return result;
      },
      "A"_a.noconvert(), "power"_a, "Return the column and the row sums of |A| ** power.");

  m.def(
      "dense_survey",
      [](const Anything& A, const Input& y) {
        const DenseArgument matrix(A);
        require(!matrix.transposed, "a dense matrix must have contiguous columns");
        return survey(*matrix.view, y);
      },
      "A"_a.noconvert(), "y"_a.noconvert(),
      "Return the column and the row sums of A ** 2 and A.T @ y, in one reading of A.");
  m.def(
      "csc_survey",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows, const Input& y) {
        return survey(*sparse_view(indptr, indices, values, rows), y);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "y"_a.noconvert(),
      "Return the same for A in compressed sparse columns.");

  m.def(
      "dense_columns_rmatvec",
      [](const Anything& A, const Indices& columns, const Input& y) {
        const DenseArgument matrix(A);
        require(!matrix.transposed, "a dense matrix must have contiguous columns");
        return multiply_listed(*matrix.view, columns, y);
      },
      "A"_a.noconvert(), "columns"_a.noconvert(), "y"_a.noconvert(), "Return A[:, columns].T @ y in double precision.");
  m.def(
      "csc_columns_rmatvec",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows, const Indices& columns,
         const Input& y) { return multiply_listed(*sparse_view(indptr, indices, values, rows), columns, y); },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "columns"_a.noconvert(),
      "y"_a.noconvert(), "Return A[:, columns].T @ y for A in compressed sparse columns.");
  m.def(
      "dense_columns",
      [](const Anything& A, const Indices& columns, bool single) { return gather(A, columns, single); },
      "A"_a.noconvert(), "columns"_a.noconvert(), "single"_a,
      "Return some columns in memory of their own, in single precision if asked for.");

  m.def(
      "csc_columns",
      [](const Anything& indptr, const Anything& indices, const Anything& values, const Indices& columns, bool single) {
        return gather(indptr, indices, values, columns, single);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "columns"_a.noconvert(), "single"_a,
      "Return the same for A in compressed sparse columns: indptr, indices and data of them.");

  m.def(
      "csc_matvec",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows, const Input& x) {
        return multiply(*sparse_view(indptr, indices, values, rows), x, false);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "x"_a.noconvert(),
      "Return A @ x for A in compressed sparse columns.");
  m.def(
      "csc_rmatvec",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows, const Input& y) {
        return multiply(*sparse_view(indptr, indices, values, rows), y, true);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "y"_a.noconvert(),
      "Return A.T @ y for A in compressed sparse columns.");
  m.def(
      "csc_sums",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows, int power) {
        return sums(*sparse_view(indptr, indices, values, rows), power);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "power"_a,
      "Return the column and the row sums of |A| ** power for A in compressed sparse columns.");

  m.def(
      "csc_check",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows) {
        const auto matrix = sparse_view(indptr, indices, values, rows);
        nb::gil_scoped_release released;
        const bool sound = matrix->valid();
        return std::pair(sound, sound && matrix->canonical());
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a,
      "Return whether every column and row index lies inside the matrix, and whether the rows of each column "
      "increase.");
  m.def(
      "digest",
      [](const Anything& array) {
        require(array.ndim() == 1 && contiguous_along(array, 0), "an array must be a contiguous vector");
        nb::gil_scoped_release released;
        return digest(static_cast<const unsigned char*>(array.data()), static_cast<Index>(array.nbytes()));
      },
      "array"_a.noconvert(), "Return a number that differs, with near certainty, if any bit of the array does.");

  m.def("csr_gram", &gram, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "columns"_a,
        "weight"_a.noconvert(),
        "Return A.T @ diag(weight) @ A, its lower triangle by columns, for A in compressed sparse rows.");

  m.def("use_blas", &use_blas, "routines"_a,
        "Take the routines of BLAS and LAPACK, by name, from what scipy offers to compiled code.");
  m.def("cholesky", &factor, "matrix"_a.noconvert(),
        "Replace the lower triangle by its Cholesky factor; return 0, or the first pivot that is not positive.");
  m.def("add_gram", &add_panel, "panel"_a.noconvert(), "weight"_a.noconvert(), "out"_a.noconvert(),
        "Add panel.T @ diag(weight) @ panel to the lower triangle of a matrix with contiguous columns.");
  m.def(
      "product",
      [](const Anything& A, const Anything& B, const Square<double>& out, bool symmetric) {
        require_blas();
        product<double>(Blas::instance().dgemm, A, B, out, symmetric);
      },
      "A"_a.noconvert(), "B"_a.noconvert(), "out"_a.noconvert(), "symmetric"_a = false,
      "Write A @ B, which may be known to be symmetric, to a matrix with contiguous rows.");
  m.def(
      "product",
      [](const Anything& A, const Anything& B, const Square<float>& out, bool symmetric) {
        require_blas();
        product<float>(Blas::instance().sgemm, A, B, out, symmetric);
      },
      "A"_a.noconvert(), "B"_a.noconvert(), "out"_a.noconvert(), "symmetric"_a = false,
      "Write A @ B in single precision.");

  nb::class_<BoundKernel>(m, "Kernel", "The iteration for one problem; looks into the matrices it is given.")
      .def(nb::init<Index, nb::sequence, Indices, Indices, nb::tuple, Input, nb::tuple, nb::sequence, nb::object>(),
           "rows"_a, "matrices"_a, "block_start"_a.noconvert(), "block_columns"_a.noconvert(), "penalty"_a,
           "group_weight"_a.noconvert(), "loss"_a, "penalty_callables"_a = nb::make_tuple(),
           "loss_callable"_a = nb::none(), "Check the parts of a problem and fit them together.")
      .def("sweep", &BoundKernel::sweep, "draws"_a.noconvert(), "h"_a.noconvert(), "sigma"_a.noconvert(),
           "extrapolation"_a, "x"_a.noconvert(), "y"_a.noconvert(), "r"_a.noconvert(), "x_sum"_a.noconvert(),
           "y_sum"_a.noconvert(), "lazy"_a = false, "exchange"_a = nb::none(),
           "Run one iteration for each row of draws, updating the vectors in place.")
      .def("sweep_pure", &BoundKernel::sweep_pure, "draws"_a.noconvert(), "h"_a.noconvert(), "sigma"_a.noconvert(),
           "theta"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "bar"_a.noconvert(), "r"_a.noconvert(),
           "x_sum"_a.noconvert(), "y_sum"_a.noconvert(),
           "Run one iteration of PURE-CD for each row of draws, updating the vectors in place.")
      .def("primal_step", &BoundKernel::primal_step, "blocks"_a.noconvert(), "h"_a.noconvert(), "x"_a.noconvert(),
           "y"_a.noconvert(), "v"_a.noconvert(), "Update x on the drawn blocks and write the change of A @ x to v.");

  nb::class_<BoundLoss>(m, "SmoothLoss", "A smooth loss, which several kernels of descent may share.")
      .def(nb::init<Index, nb::tuple, Input>(), "rows"_a, "loss"_a, "curvature"_a.noconvert());

  nb::class_<BoundDescent>(m, "Descent", "Coordinate descent on a smooth loss; looks into the matrices it is given.")
      .def(nb::init<Index, nb::sequence, Indices, Indices, nb::tuple, Input, const BoundLoss&, Index,
                    std::optional<BoundDescent*>>(),
           "rows"_a, "matrices"_a, "block_start"_a.noconvert(), "block_columns"_a.noconvert(), "penalty"_a,
           "group_weight"_a.noconvert(), "loss"_a, "width"_a, "measured"_a = nb::none(),
           "Check the parts of a problem and measure the panels; take over those of a part of it.")
      .def("look_into", &BoundDescent::look_into, "matrices"_a,
           "Look from now on into matrices with the same entries elsewhere in memory.")
      .def("sweep", &BoundDescent::sweep, "sweeps"_a, "x"_a.noconvert(), "u"_a.noconvert(), "y"_a.noconvert(),
           "exchange"_a = nb::none(),
           "Visit all blocks, then again those of panels that are not all 0; update x, u = A @ x and y.")
      .def_prop_rw("together", &BoundDescent::together, &BoundDescent::set_together,
                   "Columns that are visited before processes meet.")
      .def("strength", &BoundDescent::strength,
           "Return a bound on the curvature of the loss along the block of each column.")
      .def("products", &BoundDescent::products, "columns"_a.noconvert(), "y"_a.noconvert(),
           "Return A_S.T @ y over the listed columns S.")
      .def("image", &BoundDescent::image, "columns"_a.noconvert(), "d"_a.noconvert(),
           "Return A_S @ d over the listed columns S.")
      .def("solve", &BoundDescent::solve, "columns"_a.noconvert(), "weight"_a.noconvert(), "extra"_a.noconvert(),
           "along"_a.noconvert(), "group"_a.noconvert(), "right"_a.noconvert(), "diagonal"_a.noconvert(), "tolerance"_a,
           "most"_a, "Solve the system of a Newton step by conjugate gradients; return it and the steps.");
}

}  // namespace saddleback
