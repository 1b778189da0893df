// Meshes: named axes and the communicators along them.
#include <pybind11/stl.h>

#include <map>
#include <string>

#include "parallel.h"
#include "unisono/parallel/mesh.hpp"

namespace unisono_python {
namespace {

using unisono::parallel::Mesh;
using unisono::parallel::MeshShape;

class PythonMesh {
 public:
  PythonMesh(const std::shared_ptr<Comm>& comm, const std::string& text) {
    comm->alone([&](unisono::Communicator& open) {
      mesh_ = std::make_shared<Mesh>(Mesh::create(open, text));
    });
    world_ = adopt(std::shared_ptr<unisono::Communicator>(mesh_, &mesh_->world()));
  }

  const std::shared_ptr<Comm>& world() const { return world_; }
  const MeshShape& shape() const { return open().shape(); }
  int coordinate(const std::string& names) const { return open().coordinate(names); }
  // Returns the same object for all spellings of the same axes.
  std::shared_ptr<Comm> axis(const std::string& names) {
    const std::string key = shape().canonical(names);
    const auto known = groups_.find(key);
    if (known != groups_.end()) {
      return known->second;
    }
    unisono::Communicator* group = nullptr;
    world_->alone([&](unisono::Communicator&) { group = &mesh_->axes(key); });
    return groups_.emplace(key, adopt(std::shared_ptr<unisono::Communicator>(mesh_, group)))
        .first->second;
  }
  void close() {
    for (const auto& group : groups_) {
      group.second->close();
    }
    groups_.clear();
    if (world_ != nullptr) {
      world_->close();
    }
    const py::gil_scoped_release unlocked;
    mesh_.reset();
  }

 private:
  Mesh& open() const {
    if (mesh_ == nullptr) {
      throw unisono::Error(unisono::ErrorCode::usage, "the mesh is closed\nmake a new one");
    }
    return *mesh_;
  }

  std::shared_ptr<Mesh> mesh_;  // shared with the communicators of its groups
  std::shared_ptr<Comm> world_;
  std::map<std::string, std::shared_ptr<Comm>> groups_;
};

py::dict sizes_of(const std::vector<unisono::parallel::Axis>& axes) {
  py::dict result;
  for (const auto& axis : axes) {
    result[py::str(axis.name)] = axis.size;
  }
  return result;
}

}  // namespace

void define_mesh(py::module_& module) {
  using py::arg;
  py::class_<MeshShape>(module, "MeshShape", "The arithmetic of a mesh, without ranks.")
      .def(py::init(
               [](const std::string& text, int ranks) { return MeshShape::parse(text, ranks); }),
           arg("text"), arg("ranks") = 0)
      .def_property_readonly("ranks", &MeshShape::ranks)
      .def_property_readonly("axes", [](const MeshShape& self) { return sizes_of(self.axes()); })
      .def_property_readonly("folded",
                             [](const MeshShape& self) { return sizes_of(self.folded()); })
      .def(
          "size", [](const MeshShape& self, const std::string& names) { return self.size(names); },
          arg("names"), "Returns the number of ranks of a group over these axes.")
      .def(
          "coordinate",
          [](const MeshShape& self, int rank, const std::string& names) {
            return self.coordinate(rank, names);
          },
          arg("rank"), arg("names"), "Returns the index of a rank in its group over these axes.")
      .def(
          "groups",
          [](const MeshShape& self, const std::string& names) { return self.groups(names); },
          arg("names"),
          "Returns the ranks of all groups over these axes, ordered by their first ranks.")
      .def("__str__", &MeshShape::text);
  py::class_<PythonMesh>(module, "Mesh", "Ranks along named axes: Mesh(comm, 'dp=2,tp=4').")
      .def(py::init<const std::shared_ptr<Comm>&, const std::string&>(), arg("comm"), arg("text"))
      .def_property_readonly("shape", &PythonMesh::shape, py::return_value_policy::copy)
      .def_property_readonly("world", &PythonMesh::world, "The communicator of all ranks.")
      .def(
          "size",
          [](const PythonMesh& self, const std::string& names) { return self.shape().size(names); },
          arg("names"), "Returns the number of ranks in the group.")
      .def("coordinate", &PythonMesh::coordinate, arg("names"),
           "Returns this rank's index in its group.")
      .def("axis", &PythonMesh::axis, arg("names"),
           "Returns the communicator of this rank's group along one or several axes: 'dp,cp'. If "
           "ranks are threads of one process, all of them must request the same groups in the same "
           "order.")
      .def("close", &PythonMesh::close, "Leaves all groups of the mesh.");
}

}  // namespace unisono_python
