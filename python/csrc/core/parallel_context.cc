// Context parallelism: attention over a sharded sequence, with a kernel in Python.
#include <pybind11/stl.h>

#include <string>

#include "parallel.h"
#include "unisono/parallel/context_parallel.hpp"

namespace unisono_python {
namespace {

namespace up = unisono::parallel;
using py::arg;
using Use = Memory::Use;
using OptionalComm = std::shared_ptr<Comm>;

up::ContextOrder order_of(const std::string& text) {
  if (text == "contiguous") {
    return up::ContextOrder::contiguous;
  }
  if (text == "zigzag") {
    return up::ContextOrder::zigzag;
  }
  if (text == "striped") {
    return up::ContextOrder::striped;
  }
  throw py::value_error("unknown order '" + text + "'; known are contiguous, zigzag, striped");
}

up::ContextMethod method_of(const std::string& text) {
  if (text == "ring") {
    return up::ContextMethod::ring;
  }
  if (text == "all_gather") {
    return up::ContextMethod::all_gather;
  }
  throw py::value_error("unknown method '" + text + "'; known are ring and all_gather");
}

// Returns a view for callbacks, which must not keep it. The buffer protocol has no bf16 and f8,
// which become integers of the same size.
py::object view(up::ConstAnySpan data, const std::vector<std::size_t>& shape, bool read_only) {
  std::vector<py::ssize_t> sizes(shape.begin(), shape.end());
  std::vector<py::ssize_t> strides(shape.size());
  const auto bytes = static_cast<py::ssize_t>(unisono::size_of(data.dtype()));
  py::ssize_t stride = bytes;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  const char* format = data.dtype() == unisono::Dtype::f32   ? "f"
                       : data.dtype() == unisono::Dtype::f16 ? "e"
                       : bytes == 2                          ? "H"
                                                             : "B";
  return py::memoryview::from_buffer(const_cast<void*>(data.data()), bytes, format, sizes, strides,
                                     read_only);
}
// Wraps f32 memory whose length follows from its shape.
up::ConstAnySpan floats(const float* data) {
  return {data, 0, unisono::Dtype::f32};
}
py::object view(std::span<const std::size_t> positions) {
  return py::memoryview::from_buffer(
      const_cast<std::size_t*>(positions.data()), sizeof(std::size_t), "N",
      {static_cast<py::ssize_t>(positions.size())}, {sizeof(std::size_t)}, true);
}

class Context {
 public:
  Context(OptionalComm outer, OptionalComm heads, const std::string& method,
          const std::string& order)
      : outer_(std::move(outer)), heads_(std::move(heads)) {
    axes_ = {.method = method_of(method), .order = order_of(order)};
  }
  // Runs with exclusive use of both communicators. A callback's exception ends their world, because
  // other ranks would wait for this rank.
  template <typename Call>
  void run(const Call& call) {
    inside(outer_, &axes_.outer, [&] { inside(heads_, &axes_.heads, [&] { call(axes_); }); });
  }
  std::vector<std::size_t> positions(std::size_t length) {
    std::vector<std::size_t> result;
    run([&](const up::ContextAxes& axes) { result = axes.positions(length); });
    return result;
  }
  void abort(const std::string& reason) {
    for (unisono::Communicator* axis : {axes_.outer, axes_.heads}) {
      if (axis != nullptr) {
        axis->abort(reason);
      }
    }
  }

 private:
  template <typename Call>
  static void inside(const OptionalComm& comm, unisono::Communicator** open, const Call& call) {
    if (comm == nullptr) {
      call();
      return;
    }
    const py::gil_scoped_acquire locked;  // alone() has released the GIL
    comm->alone([&](unisono::Communicator& given) {
      *open = &given;
      call();
    });
  }

  OptionalComm outer_;
  OptionalComm heads_;
  up::ContextAxes axes_;
};

class Kernel {
 public:
  Kernel(Context& context, py::object forward, py::object backward)
      : context_(context), forward_(std::move(forward)), backward_(std::move(backward)) {}

  up::AttentionKernel callbacks() {
    return {.forward =
                [this](const up::AttentionBlock& block, float* out, float* log_sum) {
                  call([&] {
                    forward_(query(block, block.query), keys(block, block.key),
                             keys(block, block.value), view(block.query_positions),
                             view(block.key_positions), query(block, floats(out), false),
                             rows(block, log_sum, false));
                  });
                },
            .backward =
                [this](const up::AttentionBlock& block, const up::AttentionBackward& to) {
                  call([&] {
                    backward_(query(block, block.query), keys(block, block.key),
                              keys(block, block.value), view(block.query_positions),
                              view(block.key_positions), query(block, to.gradient),
                              rows(block, to.log_sum), rows(block, to.delta),
                              query(block, floats(to.query_gradient), false),
                              keys(block, floats(to.key_gradient), false),
                              keys(block, floats(to.value_gradient), false));
                  });
                }};
  }

 private:
  template <typename Call>
  void call(const Call& call) {
    const py::gil_scoped_acquire locked;
    try {
      call();
    } catch (const py::error_already_set& error) {
      context_.abort("the attention kernel failed: " + std::string(error.what()));
      throw;
    }
  }
  static py::object query(const up::AttentionBlock& block, up::ConstAnySpan data, bool ro = true) {
    const auto& s = block.shape;
    return view(data, {s.batch, block.query_positions.size(), s.heads, s.dim}, ro);
  }
  static py::object keys(const up::AttentionBlock& block, up::ConstAnySpan data, bool ro = true) {
    const auto& s = block.shape;
    return view(data, {s.batch, block.key_positions.size(), s.key_value_heads, s.dim}, ro);
  }
  static py::object rows(const up::AttentionBlock& block, const float* data, bool ro = true) {
    return view(floats(data), {block.shape.batch, block.query_positions.size(), block.shape.heads},
                ro);
  }

  Context& context_;
  py::object forward_;
  py::object backward_;
};

using Shape = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

up::AttentionShape shape_of(const Shape& shape, bool causal) {
  const auto [batch, heads, key_value_heads, dim] = shape;
  return {.batch = batch,
          .heads = heads,
          .key_value_heads = key_value_heads,
          .dim = dim,
          .causal = causal};
}

}  // namespace

void define_context(py::module_& module) {
  module.def(
      "context_positions",
      [](const std::string& order, std::size_t length, int ranks, int rank) {
        return up::context_positions(order_of(order), length, ranks, rank);
      },
      arg("order"), arg("length"), arg("ranks"), arg("rank"),
      "Returns the positions of the sequence that a rank has: contiguous, zigzag or striped.");
  module.def(
      "causal_work",
      [](const std::string& order, std::size_t length, int ranks, int rank) {
        return up::causal_work(order_of(order), length, ranks, rank);
      },
      arg("order"), arg("length"), arg("ranks"), arg("rank"),
      "Returns how many pairs of query and key a rank computes under a causal mask.");
  py::class_<Context>(module, "ContextAxes",
                      "The distribution of a sequence over ranks: over `outer` by the method, ring "
                      "or all_gather, and inside it over `heads` by Ulysses. Either may be None. "
                      "positions(length): the positions of this rank.")
      .def(py::init<OptionalComm, OptionalComm, const std::string&, const std::string&>(),
           arg("outer") = nullptr, arg("heads") = nullptr, py::kw_only(), arg("method") = "ring",
           arg("order") = "zigzag")
      .def("positions", &Context::positions, arg("length"));
  module.def(
      "context_attention",
      [](Context& context, const Shape& shape, bool causal, std::size_t length,
         const py::object& forward, const py::object& query, const py::object& key,
         const py::object& value, const py::object& out, const py::object& log_sum) {
        const AnyFloats q(query, Use::read, "query"), k(key, Use::read, "key"),
            v(value, Use::read, "value"), o(out, Use::write, "out");
        const Floats l(log_sum, Use::write, "log_sum");
        Kernel kernel(context, forward, py::none());
        const py::gil_scoped_release unlocked;
        context.run([&](const up::ContextAxes& axes) {
          up::context_attention(axes, shape_of(shape, causal), length, kernel.callbacks(), q.span(),
                                k.span(), v.span(), o.span(), l.span());
        });
      },
      arg("axes"), arg("shape"), arg("causal"), arg("length"), arg("forward"), arg("query"),
      arg("key"), arg("value"), arg("out"), arg("log_sum"),
      "Computes attention of this rank's positions to the whole sequence. shape: (batch, heads, "
      "key_value_heads, dim); query and out [batch, rows, heads, dim], key and value [batch, rows, "
      "key_value_heads, dim], log_sum [batch, rows, heads]. forward(query, key, value, "
      "query_positions, key_positions, out, log_sum) computes one block; it gets views, which it "
      "must not keep. query, key, value and out have one type: float32, bfloat16, float16 or "
      "float8; the kernel reads bfloat16 as uint16 and float8 as uint8, and writes float32.");
  module.def(
      "context_attention_backward",
      [](Context& context, const Shape& shape, bool causal, std::size_t length,
         const py::object& backward, const py::object& query, const py::object& key,
         const py::object& value, const py::object& out, const py::object& log_sum,
         const py::object& gradient, const py::object& query_gradient,
         const py::object& key_gradient, const py::object& value_gradient) {
        const Floats l(log_sum, Use::read, "log_sum");
        const AnyFloats q(query, Use::read, "query"), k(key, Use::read, "key"),
            v(value, Use::read, "value"), o(out, Use::read, "out"),
            g(gradient, Use::read, "gradient"), qg(query_gradient, Use::write, "query_gradient"),
            kg(key_gradient, Use::write, "key_gradient"),
            vg(value_gradient, Use::write, "value_gradient");
        Kernel kernel(context, py::none(), backward);
        const py::gil_scoped_release unlocked;
        context.run([&](const up::ContextAxes& axes) {
          up::context_attention_backward(
              axes, shape_of(shape, causal), length, kernel.callbacks(), q.span(), k.span(),
              v.span(), o.span(), l.span(), g.span(),
              {.query = qg.span(), .key = kg.span(), .value = vg.span()});
        });
      },
      arg("axes"), arg("shape"), arg("causal"), arg("length"), arg("backward"), arg("query"),
      arg("key"), arg("value"), arg("out"), arg("log_sum"), arg("gradient"), arg("query_gradient"),
      arg("key_gradient"), arg("value_gradient"),
      "Computes the three gradients. backward(query, key, value, query_positions, key_positions, "
      "gradient, log_sum, delta, query_gradient, key_gradient, value_gradient) adds to the last "
      "three; delta is the sum of out * gradient of each row and head.");
  module.def(
      "merge_decoded",
      [](const std::shared_ptr<Comm>& comm, const Shape& shape, const py::object& out,
         const py::object& log_sum) {
        const AnyFloats o(out, Use::write, "out");
        const Floats l(log_sum, Use::write, "log_sum");
        comm->alone([&](unisono::Communicator& open) {
          up::merge_decoded(open, shape_of(shape, true), o.span(), l.span());
        });
        return out;
      },
      arg("comm"), arg("shape"), arg("out"), arg("log_sum"),
      "Merges each rank's attention over its keys, [batch, heads, dim] with its log-sum-exp, into "
      "the attention over all keys, on all ranks: for decoding with a cache that is sharded over "
      "the sequence.");
}

}  // namespace unisono_python
