// Placements, redistribute(), checkpoints.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <string>

#include "parallel.h"
#include "unisono/parallel/checkpoint.hpp"
#include "unisono/parallel/placement.hpp"

namespace unisono_python {
namespace {

using unisono::parallel::Placement;
using unisono::parallel::Saved;
using Use = Memory::Use;

Placement partial(const std::string& op) {
  const auto parsed = unisono::parse_reduce_op(op);
  if (!parsed) {
    throw py::value_error("unknown op '" + op +
                          "'; a Partial supports sum, avg, prod, min and max");
  }
  return unisono::parallel::Partial(*parsed);
}

// Refuses negative dimensions, because a placement does not know the number of dimensions of its
// tensor.
Placement shard(py::ssize_t dim) {
  if (dim < 0) {
    throw py::value_error("Shard(" + std::to_string(dim) +
                          "): dimensions are numbered from 0; the last of x is x.ndim - 1");
  }
  return unisono::parallel::Shard(static_cast<std::size_t>(dim));
}

// Complex numbers can only be summed or averaged, part by part.
void check_reduces(const Array& in, const Placement& from) {
  using unisono::ReduceOp;
  if (from.kind != Placement::Kind::partial) {
    return;
  }
  const bool sums = from.op == ReduceOp::sum || from.op == ReduceOp::avg;
  if (!in.elements().reduces || (in.elements().units > 1 && !sums)) {
    throw py::type_error("elements of type " + in.elements().name + " cannot be reduced with " +
                         std::string(unisono::to_string(from.op)));
  }
}

// Refuses to shard a dimension that the caller's array does not have; sent data may have an
// additional last dimension.
void check_dim(const Array& array, const Placement& placement) {
  if (placement.kind == Placement::Kind::shard && placement.dim >= array.dims()) {
    throw unisono::Error(unisono::ErrorCode::usage,
                         "redistribute: " + unisono::parallel::to_string(placement) +
                             " of an array of " + std::to_string(array.dims()) +
                             " dimensions\ndimensions are numbered from 0");
  }
}

py::object redistribute(const std::shared_ptr<Comm>& comm, const py::object& data,
                        const Placement& from, const Placement& to, const py::object& out,
                        bool replicate_to_partial, int timeout_ms) {
  const Array in(data, Use::read, "data");
  const Array target(out, Use::write, "out");
  check_reduces(in, from);
  check_dim(in, from);
  check_dim(target, to);
  comm->alone([&](unisono::Communicator& open) {
    unisono::parallel::redistribute(
        open, in.tensor(), from, target.tensor(), to,
        {.replicate_to_partial = replicate_to_partial, .timeout_ms = timeout_ms});
  });
  return out;
}

// A tensor of a checkpoint: (name, whole shape, this rank's part or None, first index of the part).
// For tensors without a part on this rank, the shape contains the dtype.
using Row = std::tuple<std::string, std::vector<std::size_t>, py::object, py::object,
                       std::vector<std::size_t>>;

struct Rows {
  Rows(const std::vector<Row>& rows, Use use) {
    for (const auto& [name, shape, part, dtype, first] : rows) {
      Saved saved{.name = name, .shape = shape, .part = {}, .first = first};
      std::optional<Elements> elements;
      if (part.is_none()) {
        elements = elements_of_dtype(dtype);
        if (!elements) {
          throw py::type_error("\"" + name + "\": pass dtype if this rank has no part");
        }
        saved.part.dtype = elements->dtype;
      } else {
        arrays.push_back(std::make_unique<Array>(part, use, name.c_str()));
        elements = arrays.back()->elements();
        saved.part = arrays.back()->tensor();
      }
      if (elements->units != 1) {
        throw py::type_error("\"" + name + "\": a checkpoint does not support elements of type " +
                             elements->name);
      }
      saved.part.data = part.is_none() ? nullptr : saved.part.data;
      list.push_back(std::move(saved));
    }
  }
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<Saved> list;
};

void define_checkpoints(py::module_& module) {
  using py::arg;
  module.def(
      "save_checkpoint",
      [](const std::shared_ptr<Comm>& comm, const std::filesystem::path& folder,
         const std::vector<Row>& tensors) {
        const Rows rows(tensors, Use::read);
        comm->alone([&](unisono::Communicator& open) {
          unisono::parallel::save_checkpoint(open, folder.string(), rows.list);
        });
      },
      arg("comm"), arg("folder"), arg("tensors"));
  module.def(
      "load_checkpoint",
      [](const std::filesystem::path& folder, const std::vector<Row>& tensors) {
        const Rows rows(tensors, Use::write);
        const py::gil_scoped_release unlocked;
        unisono::parallel::load_checkpoint(folder.string(), rows.list);
      },
      arg("folder"), arg("tensors"));
  // `tensors`: (name, layout, this rank's part or None).
  module.def(
      "load_checkpoint_together",
      [](const std::shared_ptr<Comm>& comm, const std::filesystem::path& folder,
         const std::vector<std::tuple<std::string, std::string, py::object>>& tensors) {
        std::vector<std::unique_ptr<Array>> arrays;
        std::vector<unisono::parallel::Loaded> wanted;
        for (const auto& [name, layout, part] : tensors) {
          wanted.push_back({.name = name, .layout = unisono::parallel::MeshLayout::parse(layout)});
          if (!part.is_none()) {
            arrays.push_back(std::make_unique<Array>(part, Use::write, name.c_str()));
            wanted.back().part = arrays.back()->tensor();
          }
        }
        comm->alone([&](unisono::Communicator& open) {
          unisono::parallel::load_checkpoint(open, folder.string(), wanted);
        });
      },
      arg("comm"), arg("folder"), arg("tensors"));
  module.def(
      "list_checkpoint",
      [](const std::filesystem::path& folder) {
        py::dict all;
        for (const auto& tensor : unisono::parallel::list_checkpoint(folder.string())) {
          const auto elements = elements_of_dtype(py::str(unisono::to_string(tensor.dtype)));
          all[py::str(tensor.name)] =
              py::make_tuple(elements->name, py::tuple(py::cast(tensor.shape)));
        }
        return all;
      },
      arg("folder"), "Returns the tensors of a checkpoint: name -> (dtype, shape).");
}

}  // namespace

void define_redistribution(py::module_& module) {
  using py::arg;
  py::class_<Placement>(module, "Placement",
                        "The placement of a tensor over the ranks of one axis.")
      .def("__str__", [](const Placement& self) { return unisono::parallel::to_string(self); })
      .def("__repr__", [](const Placement& self) { return unisono::parallel::to_string(self); })
      .def("__eq__", [](const Placement& self, const Placement& other) { return self == other; });
  module.def(
      "Replicate", [] { return unisono::parallel::Replicate(); },
      "Every rank has the whole tensor.");
  module.def("Shard", &shard, arg("dim"),
             "Rank r has part r of the dimension, as given by shard_range(); dimensions are "
             "numbered from 0.");
  module.def("Partial", &partial, arg("op") = "sum",
             "Every rank has a summand of the whole shape; op: sum, avg, prod, min or max.");
  module.def(
      "shard_range",
      [](std::size_t size, int ranks, int rank) {
        const auto range = unisono::parallel::shard_range(size, ranks, rank);
        return py::slice(static_cast<py::ssize_t>(range.first),
                         static_cast<py::ssize_t>(range.first + range.count), 1);
      },
      arg("size"), arg("ranks"), arg("rank"),
      "Returns a rank's part of a dimension, as a slice; sizes differ by at most one.");
  module.def(
      "conjugate",
      [](const Placement& from, const Placement& to) {
        const auto made = unisono::parallel::conjugate({.from = from, .to = to});
        return std::pair(made.from, made.to);
      },
      arg("from_"), arg("to"),
      "Returns the conversion of the backward pass: the placements from and to.");
  module.def("redistribute", &redistribute, arg("comm"), arg("data"), arg("from_"), arg("to"),
             arg("out"), py::kw_only(), arg("replicate_to_partial") = false, arg("timeout_ms") = -1,
             "Converts this rank's part `data` in placement `from_` into its part `out` in "
             "placement `to`; strides are free. Returns `out`. Collective.");
  define_checkpoints(module);
}

}  // namespace unisono_python
