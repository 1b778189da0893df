// Gradient buckets, and ZeRO's sharded state.
#include <pybind11/stl.h>

#include <cstring>
#include <string>

#include "parallel.h"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/sharded_state.hpp"

namespace unisono_python {
namespace {

using unisono::Dtype;
using unisono::parallel::GradientBuckets;
using unisono::parallel::Parameter;
using unisono::parallel::ShardedState;
using Use = Memory::Use;
using py::arg;

unisono::ReduceOp op_of(const std::string& op) {
  const auto parsed = unisono::parse_reduce_op(op);
  if (!parsed) {
    throw py::value_error("unknown op '" + op + "'; use avg or sum");
  }
  return *parsed;
}

void expect_count(const char* name, std::size_t have, std::size_t want) {
  if (have != want) {
    throw py::value_error(std::string(name) + " has " + std::to_string(have) +
                          " elements; it must have " + std::to_string(want));
  }
}

class Buckets : public Held<GradientBuckets> {
 public:
  Buckets(const std::shared_ptr<Comm>& comm, const unisono::parallel::BucketOptions& options)
      : Held({comm}, [&](const auto& open) { return GradientBuckets(*open.front(), options); }) {}

  // Converts values of any float type to f32 and adds them.
  void add_to(std::size_t index, const py::object& values) {
    const AnyFloats floats(values, Use::read, "values");
    with([&](GradientBuckets& buckets) {
      expect_count("values", floats.span().size(), buckets.gradient(index).size());
      buckets.add_to(index, floats.span());
    });
  }
  py::object copy_to(std::size_t index, const py::object& out) {
    const Floats floats(out, Use::write, "out");
    with([&](GradientBuckets& buckets) {
      const std::span<float> from = buckets.gradient(index);
      expect_count("out", floats.span().size(), from.size());
      std::copy(from.begin(), from.end(), floats.span().begin());
    });
    return out;
  }
};

class State : public Held<ShardedState> {
 public:
  State(const std::vector<std::shared_ptr<Comm>>& comms,
        const std::vector<std::vector<Parameter>>& units,
        const unisono::parallel::ShardedOptions& options)
      : Held(comms,
             [&](const auto& open) {
               auto given = options;
               std::size_t next = 1;
               given.replicas = options.replicas == nullptr ? nullptr : open[next++].get();
               given.model = options.model == nullptr ? nullptr : open[next].get();
               return ShardedState(*open.front(), units, given);
             }),
        dtype_(options.dtype) {}

  void set(std::size_t unit, const py::object& values) {
    const Floats floats(values, Use::read, "values");
    with([&](ShardedState& state) { state.set(unit, floats.span()); });
  }
  py::object whole(std::size_t unit, const py::object& out) {
    const Floats floats(out, Use::write, "out");
    with([&](ShardedState& state) {
      expect_count("out", floats.span().size(), state.count(unit));
      const std::vector<float> all = state.whole(unit);
      std::copy(all.begin(), all.end(), floats.span().begin());
    });
    return out;
  }
  py::object parameters(std::size_t unit, const py::object& out) {
    const Memory memory = typed(out, Use::write, "out");
    with([&](ShardedState& state) {
      expect_count("out", memory.count(), state.count(unit));
      const std::span<const std::byte> all = state.parameters(unit);
      if (memory.bytes() != 0) {
        std::memcpy(memory.data(), all.data(), memory.bytes());
      }
    });
    return out;
  }
  void add_to_gradients(std::size_t unit, const py::object& values, std::size_t first) {
    const Memory memory = typed(values, Use::read, "values");
    with([&](ShardedState& state) {
      const std::size_t count = state.count(unit);
      if (first > count || memory.count() > count - first) {
        throw py::value_error(std::to_string(memory.count()) + " values from element " +
                              std::to_string(first) + " on; the unit has " + std::to_string(count));
      }
      add(memory, state.gradients(unit).data() + first * memory.elements().bytes());
    });
  }

 private:
  Memory typed(const py::object& object, Use use, const char* name) const {
    Memory memory = Memory::of(object, use, name, std::nullopt);
    if (memory.elements().dtype != dtype_ || memory.elements().units != 1) {
      throw py::type_error(std::string(name) + " has elements of type " + memory.elements().name +
                           "; the state has type " + std::string(unisono::to_string(dtype_)));
    }
    return memory;
  }
  static void add(const Memory& memory, std::byte* to) {
    if (memory.elements().dtype == Dtype::f32) {
      const auto* from = reinterpret_cast<const float*>(memory.data());
      auto* sums = reinterpret_cast<float*>(to);
      for (std::size_t i = 0; i < memory.count(); ++i) {
        sums[i] += from[i];
      }
      return;
    }
    memory.elements().dtype == Dtype::f16 ? add_narrow<unisono::f16>(memory, to, unisono::to_f16)
                                          : add_narrow<unisono::bf16>(memory, to, unisono::to_bf16);
  }
  template <typename T>
  static void add_narrow(const Memory& memory, std::byte* to, T (*round)(float)) {
    const auto* from = reinterpret_cast<const T*>(memory.data());
    auto* sums = reinterpret_cast<T*>(to);
    for (std::size_t i = 0; i < memory.count(); ++i) {
      sums[i] = round(to_float(sums[i]) + to_float(from[i]));
    }
  }

  Dtype dtype_;
};

std::unique_ptr<State> make_state(const std::shared_ptr<Comm>& comm,
                                  const std::vector<std::vector<Parameter>>& units, int stage,
                                  const py::object& dtype, const std::string& op, double rate,
                                  double beta1, double beta2, double epsilon, double decay,
                                  double max_norm, const std::shared_ptr<Comm>& replicas,
                                  const std::shared_ptr<Comm>& model) {
  const auto elements = elements_of_dtype(dtype);
  std::vector<std::shared_ptr<Comm>> comms = {comm};
  unisono::parallel::ShardedOptions options{.stage = stage,
                                            .dtype = elements ? elements->dtype : Dtype::f32,
                                            .op = op_of(op),
                                            .optimizer = {.rate = rate,
                                                          .beta1 = beta1,
                                                          .beta2 = beta2,
                                                          .epsilon = epsilon,
                                                          .decay = decay},
                                            .max_norm = max_norm};
  if (replicas != nullptr) {
    options.replicas = &replicas->open();
    comms.push_back(replicas);
  }
  if (model != nullptr) {
    options.model = &model->open();
    comms.push_back(model);
  }
  return std::make_unique<State>(comms, units, options);
}

void define_buckets(py::module_& module) {
  py::class_<Buckets>(module, "GradientBuckets", "See unisono.parallel.GradientBuckets.")
      .def(
          py::init([](const std::shared_ptr<Comm>& comm, std::size_t first_bytes, std::size_t bytes,
                      const std::string& op, bool allow_unused, bool learn_order, int timeout_ms) {
            return std::make_unique<Buckets>(
                comm, unisono::parallel::BucketOptions{.first_bytes = first_bytes,
                                                       .bytes = bytes,
                                                       .op = op_of(op),
                                                       .allow_unused = allow_unused,
                                                       .learn_order = learn_order,
                                                       .timeout_ms = timeout_ms});
          }),
          arg("comm"), py::kw_only(), arg("first_bytes") = std::size_t{1} << 20,
          arg("bytes") = std::size_t{25} << 20, arg("op") = "avg", arg("allow_unused") = false,
          arg("learn_order") = true, arg("timeout_ms") = 20'000)
      .def(
          "add",
          [](Buckets& self, const std::string& name, std::size_t count) {
            return self.with([&](GradientBuckets& buckets) { return buckets.add(name, count); });
          },
          arg("name"), arg("count"))
      .def(
          "begin",
          [](Buckets& self, bool reduce) {
            self.with([&](GradientBuckets& buckets) { buckets.begin(reduce); });
          },
          arg("reduce") = true)
      .def("add_to", &Buckets::add_to, arg("index"), arg("values"))
      .def(
          "ready",
          [](Buckets& self, std::size_t index) {
            self.with([&](GradientBuckets& buckets) { buckets.ready(index); });
          },
          arg("index"))
      .def("finish",
           [](Buckets& self) { self.with([](GradientBuckets& buckets) { buckets.finish(); }); })
      .def("copy_to", &Buckets::copy_to, arg("index"), arg("out"))
      .def_property_readonly(
          "buckets",
          [](Buckets& self) {
            return self.with([](GradientBuckets& buckets) { return buckets.buckets(); });
          })
      .def_property_readonly(
          "exposed_us",
          [](Buckets& self) {
            return self.with([](GradientBuckets& buckets) { return buckets.exposed_us(); });
          })
      .def("close", &Buckets::close);
}

// Wraps a method whose only argument is a unit.
template <typename Method>
auto on_unit(Method method) {
  return [method](State& self, std::size_t unit) {
    return self.with([&](ShardedState& state) { return (state.*method)(unit); });
  };
}

}  // namespace

void define_sharded_training(py::module_& module) {
  define_buckets(module);
  py::class_<Parameter>(module, "Parameter",
                        "Adds a unit. decays: whether weight decay applies; counted: whether this "
                        "rank counts it in the norm of all gradients.")
      .def(py::init([](const std::string& name, std::size_t count, bool decays, bool counted) {
             return Parameter{.name = name, .count = count, .decays = decays, .counted = counted};
           }),
           arg("name"), arg("count"), py::kw_only(), arg("decays") = true, arg("counted") = true)
      .def_readonly("name", &Parameter::name)
      .def_readonly("count", &Parameter::count);
  py::class_<State>(module, "ShardedState", "See unisono.parallel.ShardedState.")
      .def(py::init(&make_state), arg("comm"), arg("units"), py::kw_only(), arg("stage") = 1,
           arg("dtype") = "float32", arg("op") = "avg", arg("rate") = 1e-3, arg("beta1") = 0.9,
           arg("beta2") = 0.95, arg("epsilon") = 1e-8, arg("decay") = 0.0, arg("max_norm") = 0.0,
           arg("replicas") = nullptr, arg("model") = nullptr)
      .def("count", on_unit(&ShardedState::count), arg("unit"))
      .def("set", &State::set, arg("unit"), arg("values"))
      .def("whole", &State::whole, arg("unit"), arg("out"))
      .def("parameters", &State::parameters, arg("unit"), arg("out"))
      .def("prefetch", on_unit(&ShardedState::prefetch), arg("unit"))
      .def("release", on_unit(&ShardedState::release), arg("unit"))
      .def("add_to_gradients", &State::add_to_gradients, arg("unit"), arg("values"),
           arg("first") = 0)
      .def("gradients_ready", on_unit(&ShardedState::gradients_ready), arg("unit"))
      .def("wait_gradients",
           [](State& self) { self.with([](ShardedState& state) { state.wait_gradients(); }); })
      .def("step",
           [](State& self) { return self.with([](ShardedState& state) { return state.step(); }); })
      .def_property_readonly(
          "bytes_held",
          [](State& self) {
            const auto bytes = self.with([](ShardedState& state) { return state.bytes_held(); });
            py::dict held;
            held["parameters"] = bytes.parameters;
            held["gradients"] = bytes.gradients;
            held["optimizer"] = bytes.optimizer;
            return held;
          })
      .def_property_readonly(
          "exposed_us",
          [](State& self) {
            return self.with([](ShardedState& state) { return state.exposed_us(); });
          })
      .def("close", &State::close);
}

}  // namespace unisono_python
