#include "matrix.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "in_order/product.h"

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
  std::span<float> tiles = {};  // in order: [tile of outputs][inputs][outputs of a tile]
  // Prepared products: for one row, and for the row count of the last other call.
  struct Prepared {
    std::size_t rows = 0;
    dnnl::matmul product;
    memory given, x, y;  // x is the given input, rounded
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
  void pack(std::span<const float> w, Arena& arena) {
    constexpr std::size_t kColumns = in_order::kTileColumns;
    const std::size_t count = (outputs + kColumns - 1) / kColumns;
    tiles = {reinterpret_cast<float*>(arena.take(count * kColumns * inputs * sizeof(float))),
             count * kColumns * inputs};
    for (std::size_t tile = 0; tile < count; ++tile) {
      const std::size_t first = tile * kColumns;
      in_order::pack({w.data() + first * inputs, 1, inputs}, inputs,
                     std::min(kColumns, outputs - first), &tiles[first * inputs]);
    }
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
  if (precision == Precision::f32_in_order) {
    p.pack(w, arena);
    return;
  }
  const memory::dims dims = {size(p.inputs), size(outputs)};
  // Uses the best layout for a single row, because answers are computed row by row.
  const memory::desc any(dims, type_of(precision), memory::format_tag::any);
  try {
    const memory::desc packed = p.describe(1, any).weights_desc();
    p.weights = memory(packed, p.engine, arena.take(packed.get_size()));
  } catch (const dnnl::error&) {
    throw std::runtime_error(
        "oneDNN has no products of this precision on this processor; try --precision f32");
  }
  // oneDNN only reads this argument, although its interface requires a writable pointer.
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
  if (packed_ == nullptr) {
    return 0;
  }
  return packed_->tiles.empty() ? packed_->weights.get_desc().get_size()
                                : packed_->tiles.size_bytes();
}

void Matrix::times(std::span<const float> x, std::span<float> y, std::size_t rows) const {
  if (rows == 0 || y.empty()) {
    return;
  }
  if (packed_ == nullptr) {  // no inputs: a rank may have no hidden features
    std::ranges::fill(y, 0.0F);
    return;
  }
  Packed& p = *packed_;
  if (x.size() != rows * p.inputs || y.size() != rows * p.outputs) {
    throw std::logic_error("llm: a product with a wrong number of rows");
  }
  if (p.precision == Precision::f32_in_order) {
    const std::array<std::size_t, 1> whole = {p.inputs};
    times(x, y, rows, {.ends = whole});
    return;
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

void Matrix::times(std::span<const float> x, std::span<float> y, std::size_t rows,
                   const Blocks& blocks) const {
  if (rows == 0 || y.empty()) {
    return;
  }
  const Packed& p = *packed_;
  std::vector<in_order::Term> terms;
  std::size_t begin = 0;
  for (const std::size_t end : blocks.ends) {
    terms.push_back({.a = {x.data() + blocks.first + begin, p.inputs, 1}, .depth = end - begin});
    begin = end;
  }
  constexpr std::size_t kWorthThreads = 1 << 18;  // number of multiplications
  const bool is_long = rows * p.outputs * begin >= kWorthThreads;
#pragma omp parallel for if (is_long)
  for (std::size_t first = 0; first < p.outputs; first += in_order::kTileColumns) {
    in_order::multiply(
        in_order::Tile{.rows = rows,
                       .columns = std::min(in_order::kTileColumns, p.outputs - first),
                       .terms = terms,
                       .b = &p.tiles[first * p.inputs + blocks.first * in_order::kTileColumns],
                       .c = y.data() + first,
                       .c_step = p.outputs});
  }
}

void multiply(const Product& product, Rows a, Rows b, float* c, std::size_t c_step) {
  if (product.in_order) {
    const std::array<in_order::Term, 1> terms = {
        {{.a = {a.data, a.step, 1},
          .b = product.is_turned ? in_order::View{b.data, 1, b.step}
                                 : in_order::View{b.data, b.step, 1},
          .depth = product.inner}}};
    in_order::multiply(in_order::Product{.rows = product.rows,
                                         .columns = product.columns,
                                         .terms = terms,
                                         .c = c,
                                         .c_step = c_step});
    for (std::size_t i = 0; product.scale != 1 && i < product.rows; ++i) {
      for (std::size_t j = 0; j < product.columns; ++j) {
        c[i * c_step + j] *= product.scale;
      }
    }
    return;
  }
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
