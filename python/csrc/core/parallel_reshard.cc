// Reshards tensors to another mesh, and maps their names to an engine's names.
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "parallel.h"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/reshard_names.hpp"

namespace unisono_python {
namespace {

using unisono::parallel::LocalPart;
using unisono::parallel::MeshLayout;
using unisono::parallel::NamedTarget;
using unisono::parallel::NamedTensor;
using unisono::parallel::NameMap;
using unisono::parallel::ReshardPlan;
using unisono::parallel::ReshardTensor;
using unisono::parallel::Tensor;
using Use = Memory::Use;
using py::arg;
using Shape = std::vector<std::size_t>;

// Name, dtype and shape of a tensor.
using Named = std::tuple<std::string, py::object, Shape>;

// Types sent as several elements have an additional last dimension.
struct Typed {
  NamedTensor tensor = {};
  std::size_t units = 1;
};

std::optional<Elements> elements_of(const std::string& name, const py::object& dtype) {
  try {
    return elements_of_dtype(dtype);
  } catch (const py::type_error& error) {
    throw py::type_error("\"" + name + "\": " + error.what());
  }
}

MeshLayout layout_of(const std::string& name, const std::string& text) {
  try {
    return MeshLayout::parse(text);
  } catch (const unisono::Error& error) {
    throw unisono::Error(error.code(), "reshard: tensor \"" + name + "\": layout \"" + text +
                                           "\": " + std::string(error.message()));
  }
}

Typed typed(const Named& named) {
  const auto& [name, dtype, shape] = named;
  const auto elements = elements_of(name, dtype);
  if (!elements) {
    throw py::type_error("\"" + name + "\": the dtype is missing");
  }
  Typed made{.tensor = {.name = name, .dtype = elements->dtype, .shape = shape},
             .units = elements->units};
  if (made.units > 1) {
    made.tensor.shape.push_back(made.units);
  }
  return made;
}

std::vector<NamedTensor> tensors_of(const std::vector<Named>& named) {
  std::vector<NamedTensor> tensors;
  for (const Named& one : named) {
    tensors.push_back(typed(one).tensor);
  }
  return tensors;
}

// Position of a move in the caller's inputs and outputs.
struct Place {
  std::size_t input = 0;
  std::size_t output = 0;
  bool has_names = false;  // then `from` and `to` are set if this rank has a part
  std::optional<LocalPart> from = {};
  std::optional<LocalPart> to = {};
};

class PythonReshard {
 public:
  PythonReshard(const std::shared_ptr<Comm>& comm, const std::vector<Named>& named,
                const std::vector<std::string>& from, const std::vector<std::string>& to) {
    std::vector<ReshardTensor> tensors;
    for (std::size_t i = 0; i < named.size(); ++i) {
      const std::string& name = std::get<0>(named[i]);
      add(named[i], layout_of(name, from[i]), layout_of(name, to[i]), tensors);
      places_.push_back({.input = i, .output = i});
    }
    open(comm, std::move(tensors));
  }

  // `targets`: names and layouts of the engine's tensors.
  PythonReshard(const std::shared_ptr<Comm>& comm, const std::vector<Named>& named,
                const std::vector<std::string>& from, const NameMap& names,
                const std::vector<std::pair<std::string, std::string>>& targets) {
    const std::vector<NamedTensor> sources = tensors_of(named);
    std::map<std::string, NamedTarget> made;
    for (NamedTarget& target : names.apply(sources)) {
      made.emplace(target.tensor.name, std::move(target));
    }
    std::vector<ReshardTensor> tensors;
    std::string unknown;
    for (std::size_t output = 0; output < targets.size(); ++output) {
      const auto found = made.find(targets[output].first);
      if (found == made.end()) {
        unknown += "\nno source makes \"" + targets[output].first + "\"";
        continue;
      }
      const NamedTarget& target = found->second;
      const MeshLayout layout = layout_of(targets[output].first, targets[output].second);
      for (std::size_t part = 0; part < target.parts.size(); ++part) {
        const std::size_t input = target.parts[part].source;
        const NamedTarget source = source_of_part(target.parts[part], sources);
        const MeshLayout before = layout_of(sources[input].name, from[input]);
        const NamedTensor tensor = tensor_of_part(target.parts[part], sources);
        tensors.push_back({.name = tensor.name,
                           .dtype = tensor.dtype,
                           .shape = tensor.shape,
                           .from = layout_of_part(source, 0, sources, before),
                           .to = layout_of_part(target, part, sources, layout)});
        places_.push_back({.input = input,
                           .output = output,
                           .has_names = true,
                           .from = local_part(source, 0, before, comm->rank()),
                           .to = local_part(target, part, layout, comm->rank())});
      }
      made.erase(found);
    }
    for (const auto& [name, target] : made) {
      unknown += "\n\"" + name + "\" has no layout in targets";
    }
    if (!unknown.empty()) {
      throw unisono::Error(unisono::ErrorCode::usage,
                           "reshard: names do not fit the targets" + unknown);
    }
    open(comm, std::move(tensors));
  }

  // `inputs` and `outputs` have one object or None per tensor of the constructor and per output.
  void run(const std::vector<py::object>& inputs, const std::vector<py::object>& outputs,
           int timeout_ms) {
    const std::vector<std::unique_ptr<Array>> from = arrays(inputs, Use::read);
    const std::vector<std::unique_ptr<Array>> to = arrays(outputs, Use::write);
    std::vector<Tensor> in;
    std::vector<Tensor> out;
    // Other ranks are notified of memory that does not fit, too.
    std::optional<unisono::Error> wrong;
    const auto part_of = [&](const Array* array, const Place& place,
                             const std::optional<LocalPart>& part) -> Tensor {
      if (array == nullptr || (place.has_names && !part)) {
        return {};
      }
      try {
        return part ? view_of_part(*part, array->tensor()) : array->tensor();
      } catch (const unisono::Error& error) {
        wrong = wrong ? wrong : error;
        return {};
      }
    };
    for (const Place& place : places_) {
      in.push_back(part_of(from.at(place.input).get(), place, place.from));
      out.push_back(part_of(to.at(place.output).get(), place, place.to));
    }
    try {
      held_->with([&](unisono::parallel::Reshard& reshard) { reshard.run(in, out, timeout_ms); });
    } catch (const unisono::Error&) {
      if (wrong) {
        throw unisono::Error(*wrong);
      }
      throw;
    }
  }

  std::optional<Shape> in_shape(std::size_t move) {
    return without_units(move, held_->with([&](unisono::parallel::Reshard& reshard) {
      return reshard.in_shape(move);
    }));
  }
  std::optional<Shape> out_shape(std::size_t move) {
    return without_units(move, held_->with([&](unisono::parallel::Reshard& reshard) {
      return reshard.out_shape(move);
    }));
  }
  // Returns true if all moves to an output have ended.
  bool complete(std::size_t output) {
    return held_->with([&](unisono::parallel::Reshard& reshard) {
      for (std::size_t move = 0; move < places_.size(); ++move) {
        if (places_[move].output == output && !reshard.complete(move)) {
          return false;
        }
      }
      return true;
    });
  }
  std::pair<std::size_t, std::size_t> bytes() {
    return held_->with([](unisono::parallel::Reshard& reshard) {
      return std::pair(reshard.plan().bytes_sent(), reshard.plan().bytes_between_hosts());
    });
  }
  void close() { held_->close(); }

 private:
  static std::vector<std::unique_ptr<Array>> arrays(const std::vector<py::object>& objects,
                                                    Use use) {
    std::vector<std::unique_ptr<Array>> all;
    for (const py::object& object : objects) {
      all.push_back(object.is_none() ? nullptr
                                     : std::make_unique<Array>(
                                           object, use, use == Use::read ? "input" : "output"));
    }
    return all;
  }
  void add(const Named& named, MeshLayout from, MeshLayout to,
           std::vector<ReshardTensor>& tensors) {
    const Typed made = typed(named);
    units_.push_back(made.units);
    tensors.push_back({.name = made.tensor.name,
                       .dtype = made.tensor.dtype,
                       .shape = made.tensor.shape,
                       .from = std::move(from),
                       .to = std::move(to)});
  }
  void open(const std::shared_ptr<Comm>& comm, std::vector<ReshardTensor> tensors) {
    held_ = std::make_unique<Held<unisono::parallel::Reshard>>(
        std::vector<std::shared_ptr<Comm>>{comm}, [&](const auto& opened) {
          return unisono::parallel::Reshard::create(*opened.front(), std::move(tensors));
        });
  }
  std::optional<Shape> without_units(std::size_t move, std::optional<Shape> shape) const {
    if (shape && units_.at(move) > 1) {
      shape->pop_back();
    }
    return shape;
  }

  std::vector<Place> places_;
  std::vector<std::size_t> units_;
  std::unique_ptr<Held<unisono::parallel::Reshard>> held_;
};

// Returns {name: (shape, parts)}, where each part is (source, index or None, dim, first, begin,
// count).
py::dict applied(const NameMap& map, const std::vector<Named>& named) {
  py::dict all;
  const std::vector<NamedTensor> sources = tensors_of(named);
  for (const NamedTarget& target : map.apply(sources)) {
    py::list parts;
    for (const auto& part : target.parts) {
      parts.append(py::make_tuple(sources[part.source].name, part.index, part.dim, part.first,
                                  part.begin, part.count));
    }
    all[py::str(target.tensor.name)] =
        py::make_tuple(py::tuple(py::cast(target.tensor.shape)), parts);
  }
  return all;
}

}  // namespace

void define_reshard(py::module_& module) {
  py::class_<NameMap>(module, "NameMap")
      .def(py::init(&NameMap::parse), arg("json"))
      .def("apply", &applied, arg("tensors"));
  py::class_<PythonReshard>(module, "Reshard")
      .def(py::init<const std::shared_ptr<Comm>&, const std::vector<Named>&,
                    const std::vector<std::string>&, const std::vector<std::string>&>(),
           arg("comm"), arg("tensors"), arg("from_"), arg("to"))
      .def(py::init<const std::shared_ptr<Comm>&, const std::vector<Named>&,
                    const std::vector<std::string>&, const NameMap&,
                    const std::vector<std::pair<std::string, std::string>>&>(),
           arg("comm"), arg("tensors"), arg("from_"), arg("names"), arg("targets"))
      .def("run", &PythonReshard::run, arg("inputs"), arg("outputs"), arg("timeout_ms"))
      .def("in_shape", &PythonReshard::in_shape, arg("move"))
      .def("out_shape", &PythonReshard::out_shape, arg("move"))
      .def("complete", &PythonReshard::complete, arg("output"))
      .def("bytes", &PythonReshard::bytes)
      .def("close", &PythonReshard::close);
}

}  // namespace unisono_python
