/// \file
/// The Python module: checks what comes in and hands it on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>

#include "loss.hpp"
#include "matrix.hpp"
#include "products.hpp"
#include "sweep.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace saddleback {
namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Input = Array<const double>;
using Output = Array<double>;
using Indices = Array<const Index>;
using Draws = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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
  if (holds<double>(matrix))
    return std::make_unique<Dense<double>>(data<double>(matrix), rows, count, stride);
  if (holds<float>(matrix))
    return std::make_unique<Dense<float>>(data<float>(matrix), rows, count, stride);
  throw nb::type_error("a matrix must hold float32 or float64");
}

template <class I>
MatrixPointer sparse_view(const Anything& indptr, const Anything& indices, const Anything& values,
                          Index rows) {
  const auto count = static_cast<Index>(indptr.size()) - 1;
  const auto stored = static_cast<Index>(values.size());
  if (holds<double>(values))
    return std::make_unique<Sparse<I, double>>(data<I>(indptr), data<I>(indices),
                                               data<double>(values), stored, rows, count);
  if (holds<float>(values))
    return std::make_unique<Sparse<I, float>>(data<I>(indptr), data<I>(indices),
                                              data<float>(values), stored, rows, count);
  throw nb::type_error("a matrix must hold float32 or float64");
}

MatrixPointer sparse_view(const Anything& indptr, const Anything& indices, const Anything& values,
                          Index rows) {
  for (const Anything* array : {&indptr, &indices, &values})
    require(array->ndim() == 1 && contiguous_along(*array, 0),
            "indptr, indices and data must be contiguous vectors");
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
    require(!transposed || contiguous_along(matrix, 1),
            "a matrix must have contiguous columns or contiguous rows");
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

std::pair<Result, Result> sums(const Columns& matrix, int power) {
  require(0 <= power && power <= 2, "power must be 0, 1 or 2");
  double *columns, *rows;
  std::pair result{new_array(matrix.count(), columns), new_array(matrix.rows(), rows)};
  nb::gil_scoped_release released;
  sum_powers(matrix, power, columns, rows);
  return result;
}

Callable callable(nb::handle address, nb::handle user_data, nb::handle takes_user_data) {
  const auto pointer = nb::cast<std::uintptr_t>(address);
  require(pointer != 0, "a callable must have an address");
  return {reinterpret_cast<const void*>(pointer),
          reinterpret_cast<void*>(nb::cast<std::uintptr_t>(user_data)),
          nb::cast<bool>(takes_user_data)};
}

std::unique_ptr<Loss> make_loss(Index rows, nb::tuple loss, nb::object loss_callable) {
  constexpr auto message = "the parameters of the loss must be float64 vectors with one entry a row";
  require(nb::len(loss) >= 1, "the loss must have a kind");
  const auto kind = nb::cast<std::string>(loss[0]);
  const auto parameter = [&](int i) { return copy(loss[i], rows, message); };
  if (kind == "coordinate" && nb::len(loss) == 6)
    return std::make_unique<CoordinateLoss>(parameter(1), parameter(2), parameter(3), parameter(4),
                                            parameter(5));
  if (kind == "logistic" && nb::len(loss) == 3)
    return std::make_unique<LogisticLoss>(parameter(1), parameter(2));
  if (kind == "callable" && nb::len(loss) == 1 && nb::len(loss_callable) == 3)
    return std::make_unique<CallableLoss>(
        rows, callable(loss_callable[0], loss_callable[1], loss_callable[2]));
  throw nb::value_error("the loss must be coordinate, logistic or callable, with its parameters");
}

Penalty make_penalty(nb::tuple parameters, nb::sequence callables) {
  constexpr auto message = "the penalty must be five float64 vectors of equal length";
  require(nb::len(parameters) == 5, message);
  const auto n = static_cast<Index>(as<Input>(parameters[0], message).size());
  std::vector<double> p[5];
  for (int i = 0; i < 5; ++i) p[i] = copy(parameters[i], n, message);
  Penalty penalty;
  penalty.coordinate.reserve(n);
  for (Index d = 0; d < n; ++d)
    penalty.coordinate.push_back({p[0][d], p[1][d], p[2][d], p[3][d], p[4][d]});
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

/// A kernel and the arrays it looks into.
class BoundKernel {
 public:
  BoundKernel(Index rows, nb::sequence matrices, Indices block_start, Indices block_columns,
              nb::tuple penalty, Input group_weight, nb::tuple loss, nb::sequence callables,
              nb::object loss_callable) {
    require(rows >= 0, "rows must not be negative");
    std::vector<MatrixPointer> views;
    for (nb::handle matrix : matrices) views.push_back(view(matrix, rows));
    const auto vector = [](const auto& array) {
      return std::vector(array.data(), array.data() + array.size());
    };
    kernel_ = std::make_unique<Kernel>(
        rows, std::move(views),
        Blocks(vector(block_start), vector(block_columns), vector(group_weight)),
        make_penalty(penalty, callables), make_loss(rows, loss, loss_callable));
  }

  void sweep(const Draws& draws, const Input& h, const Input& sigma, double extrapolation,
             const Output& x, const Output& y, const Output& r, const Output& x_sum,
             const Output& y_sum, bool lazy) {
    require_columns(h, x, x_sum);
    require_rows(sigma, y, r, y_sum);
    const Primal primal{h.data(), x.data(), x_sum.data(), y.data()};
    const Dual dual{extrapolation, nullptr, r.data(), y.data(), y_sum.data()};
    const auto iterations = static_cast<Index>(draws.shape(0));
    const auto size = static_cast<Index>(draws.shape(1));
    nb::gil_scoped_release released;
    if (lazy) kernel_->sweep_lazily(draws.data(), iterations, size, sigma.data(), primal, dual);
    else kernel_->sweep(draws.data(), iterations, size, sigma.data(), primal, dual);
  }

  void sweep_pure(const Draws& draws, const Input& h, const Input& sigma, const Input& theta,
                  const Output& x, const Output& y, const Output& bar, const Output& r,
                  const Output& x_sum, const Output& y_sum) {
    require_columns(h, x, x_sum);
    require_rows(sigma, theta, y, bar, r, y_sum);
    const Primal primal{h.data(), x.data(), x_sum.data(), bar.data()};
    const Dual dual{0, nullptr, r.data(), y.data(), y_sum.data()};
    nb::gil_scoped_release released;
    kernel_->sweep_pure(draws.data(), static_cast<Index>(draws.shape(0)),
                        static_cast<Index>(draws.shape(1)), sigma.data(), theta.data(), primal,
                        dual, bar.data());
  }

  void primal_step(const Indices& blocks, const Input& h, const Output& x, const Input& y,
                   const Output& v) {
    require_columns(h, x);
    require_rows(y, v);
    nb::gil_scoped_release released;
    kernel_->primal_step(blocks.data(), static_cast<Index>(blocks.size()),
                         {h.data(), x.data(), nullptr, y.data()}, v.data());
  }

 private:
  MatrixPointer view(nb::handle matrix, Index rows) {
    constexpr auto message = "a matrix must be an array or a tuple (indptr, indices, data, n_columns)";
    const auto keep = [&](nb::handle object) {
      return owners_.emplace_back(as<Anything>(object, message));
    };
    if (!nb::isinstance<nb::tuple>(matrix)) {
      const Anything array = keep(matrix);
      require(array.ndim() == 2 && contiguous_along(array, 0),
              "a dense matrix must have contiguous columns");
      return dense_view(array, false);
    }
    require(nb::len(matrix) == 4, message);
    const Anything indptr = keep(matrix[0]), indices = keep(matrix[1]), values = keep(matrix[2]);
    require(static_cast<Index>(indptr.size()) == nb::cast<Index>(matrix[3]) + 1,
            "indptr must have one entry more than there are columns");
    return sparse_view(indptr, indices, values, rows);
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

  std::vector<Anything> owners_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled core: products with a matrix and the block-coordinate iteration.";

  m.def("hardware_threads", &hardware_threads, "Number of threads the machine can run at once.");
  m.def(
      "set_threads",
      [](int n) {
        require(n >= 1, "at least one thread is needed");
        nb::gil_scoped_release released;
        return Threads::instance().set_limit(n);
      },
      "n"_a, "Limit the threads used by this module; return the previous limit.");

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
      "csc_matvec",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows,
         const Input& x) {
        return multiply(*sparse_view(indptr, indices, values, rows), x, false);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a,
      "x"_a.noconvert(), "Return A @ x for A in compressed sparse columns.");
  m.def(
      "csc_rmatvec",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows,
         const Input& y) {
        return multiply(*sparse_view(indptr, indices, values, rows), y, true);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a,
      "y"_a.noconvert(), "Return A.T @ y for A in compressed sparse columns.");
  m.def(
      "csc_sums",
      [](const Anything& indptr, const Anything& indices, const Anything& values, Index rows,
         int power) { return sums(*sparse_view(indptr, indices, values, rows), power); },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "rows"_a, "power"_a,
      "Return the column and the row sums of |A| ** power for A in compressed sparse columns.");

  nb::class_<BoundKernel>(m, "Kernel", "The iteration for one problem; looks into the matrices it is given.")
      .def(nb::init<Index, nb::sequence, Indices, Indices, nb::tuple, Input, nb::tuple,
                    nb::sequence, nb::object>(),
           "rows"_a, "matrices"_a, "block_start"_a.noconvert(), "block_columns"_a.noconvert(),
           "penalty"_a, "group_weight"_a.noconvert(), "loss"_a,
           "penalty_callables"_a = nb::make_tuple(), "loss_callable"_a = nb::none(),
           "Check the parts of a problem and fit them together.")
      .def("sweep", &BoundKernel::sweep, "draws"_a.noconvert(), "h"_a.noconvert(),
           "sigma"_a.noconvert(), "extrapolation"_a, "x"_a.noconvert(), "y"_a.noconvert(),
           "r"_a.noconvert(), "x_sum"_a.noconvert(), "y_sum"_a.noconvert(), "lazy"_a = false,
           "Run one iteration for each row of draws, updating the vectors in place.")
      .def("sweep_pure", &BoundKernel::sweep_pure, "draws"_a.noconvert(), "h"_a.noconvert(),
           "sigma"_a.noconvert(), "theta"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(),
           "bar"_a.noconvert(), "r"_a.noconvert(), "x_sum"_a.noconvert(), "y_sum"_a.noconvert(),
           "Run one iteration of PURE-CD for each row of draws, updating the vectors in place.")
      .def("primal_step", &BoundKernel::primal_step, "blocks"_a.noconvert(), "h"_a.noconvert(),
           "x"_a.noconvert(), "y"_a.noconvert(), "v"_a.noconvert(),
           "Update x on the drawn blocks and write the change of A @ x to v.");
}

}  // namespace saddleback
