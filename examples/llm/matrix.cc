#include "matrix.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>

namespace llm {
namespace {

using dnnl::memory;

memory::dim size(std::size_t count) {
  return static_cast<memory::dim>(count);
}

memory::data_type type_of(Precision precision) {
  return precision == Precision::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

}  // namespace

struct Matrix::Packed {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::size_t outputs = 0;
  std::size_t inputs = 0;
  Precision precision = Precision::f32;
  memory weights;
  // A product of one row, and of as many as the last other call had.
  struct Prepared {
    std::size_t rows = 0;
    dnnl::matmul product;
    memory given, x, y;  // x is what is given, rounded
    dnnl::reorder round;
  };
  Prepared one, other;

  memory::desc x_of(std::size_t rows, Precision as) const {
    return {{size(rows), size(inputs)}, type_of(as), memory::format_tag::ab};
  }
  memory::desc y_of(std::size_t rows) const {
    return {{size(rows), size(outputs)}, memory::data_type::f32, memory::format_tag::ab};
  }
  dnnl::matmul::primitive_desc describe(std::size_t rows, const memory::desc& w) const {
    return {dnnl::matmul::desc(x_of(rows, precision), w, y_of(rows)), engine};
  }
  void prepare(Prepared& prepared, std::size_t rows) const {
    prepared = {.rows = rows,
                .product = dnnl::matmul(describe(rows, weights.get_desc())),
                .given = memory(x_of(rows, Precision::f32), engine, nullptr),
                .x = {},
                .y = memory(y_of(rows), engine, nullptr),
                .round = {}};
    if (precision != Precision::f32) {
      prepared.x = memory(x_of(rows, precision), engine);
      prepared.round = dnnl::reorder(prepared.given, prepared.x);
    }
  }
};

Matrix::Matrix() = default;
Matrix::Matrix(Matrix&&) noexcept = default;
Matrix& Matrix::operator=(Matrix&&) noexcept = default;
Matrix::~Matrix() = default;

Matrix::Matrix(std::span<const float> w, std::size_t outputs, Precision precision, Arena& arena) {
  if (w.empty()) {
    return;
  }
  packed_ = std::make_unique<Packed>();
  Packed& p = *packed_;
  p.outputs = outputs;
  p.inputs = w.size() / outputs;
  p.precision = precision;
  const memory::dims dims = {size(p.inputs), size(outputs)};
  // The layout is that for a single row: an answer is made of them.
  const memory::desc any(dims, type_of(precision), memory::format_tag::any);
  try {
    const memory::desc packed = p.describe(1, any).weights_desc();
    p.weights = memory(packed, p.engine, arena.take(packed.get_size()));
  } catch (const dnnl::error&) {
    throw std::runtime_error(
        "oneDNN has no products of this precision on this processor; try --precision f32");
  }
  // oneDNN only reads this argument, although its interface takes it as writable.
  memory given({dims, memory::data_type::f32, memory::format_tag::ba}, p.engine,
               const_cast<float*>(w.data()));
  dnnl::reorder(given, p.weights).execute(p.stream, given, p.weights);
  p.stream.wait();
  p.prepare(p.one, 1);
}

std::size_t Matrix::outputs() const {
  return packed_ == nullptr ? 0 : packed_->outputs;
}

std::size_t Matrix::bytes() const {
  return packed_ == nullptr ? 0 : packed_->weights.get_desc().get_size();
}

void Matrix::times(std::span<const float> x, std::span<float> y, std::size_t rows) const {
  if (rows == 0 || y.empty()) {
    return;
  }
  if (packed_ == nullptr) {  // no inputs: a rank may have none of the hidden features
    std::ranges::fill(y, 0.0F);
    return;
  }
  Packed& p = *packed_;
  if (x.size() != rows * p.inputs || y.size() != rows * p.outputs) {
    throw std::logic_error("llm: a product with a wrong number of rows");
  }
  Packed::Prepared& prepared = rows == 1 ? p.one : p.other;
  if (prepared.rows != rows) {
    p.prepare(prepared, rows);
  }
  const bool is_rounded = p.precision != Precision::f32;
  prepared.given.set_data_handle(const_cast<float*>(x.data()));
  prepared.y.set_data_handle(y.data());
  if (is_rounded) {
    prepared.round.execute(p.stream, prepared.given, prepared.x);
  }
  prepared.product.execute(p.stream, {{DNNL_ARG_SRC, is_rounded ? prepared.x : prepared.given},
                                      {DNNL_ARG_WEIGHTS, p.weights},
                                      {DNNL_ARG_DST, prepared.y}});
  p.stream.wait();
}

void multiply(const Product& product, Rows a, Rows b, float* c, std::size_t c_step) {
  const auto lead = [](std::size_t step) { return size(std::max<std::size_t>(step, 1)); };
  const dnnl_status_t status =
      dnnl_sgemm('N', product.is_turned ? 'T' : 'N', size(product.rows), size(product.columns),
                 size(product.inner), product.scale, a.data, lead(a.step), b.data, lead(b.step), 0,
                 c, lead(c_step));
  if (status != dnnl_success) {
    throw std::runtime_error("oneDNN cannot multiply matrices: its status is " +
                             std::to_string(static_cast<int>(status)));
  }
}

void set_product_threads(int threads) {
  omp_set_num_threads(threads);
}

int processors() {
  return omp_get_num_procs();
}

}  // namespace llm
