// Mesh: ranks laid out along named axes, such as "pp=2,dp=2,cp=1,tp=4".
//
// The last axis varies fastest: ranks 0 to 3 of this mesh form one group of tp. Axes for expert
// layers may follow after a semicolon: "dp=4,cp=2,tp=2;edp=2,ep=4,etp=2". These axes replace the
// last axes before the semicolon that have the same product of sizes; in this example, all three.
// So attention and experts of one model can have different layouts (parallel folding: Liu et al.,
// 2025, arXiv 2504.14960). A size may be a product of numbers and earlier axes:
// "dp=2,cp=2,tp=2;ep=dp*cp,etp=tp".
//
// The text has the same form in C++, in Python, on the command line and in files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono::parallel {

// One axis of a mesh.
struct Axis {
  std::string name;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// Computes with the axes of a mesh, without ranks. All members are local.
// Threads: any.
class UNISONO_EXPORT MeshShape {
 public:
  // Parses the text of a mesh. If `ranks` is not 0, the product of the axes must be `ranks`.
  // Errors: config. The error names the mistake in the text; if the product is wrong, it names both
  // numbers.
  static MeshShape parse(std::string_view text, int ranks = 0);

  int ranks() const { return ranks_; }                         // product of all axes
  const std::vector<Axis>& axes() const { return axes_; }      // slowest first
  const std::vector<Axis>& folded() const { return folded_; }  // axes after the semicolon
  std::string text() const;                                    // the text that parse() reads

  // size() returns the number of ranks along one axis, or along several axes ("dp,cp").
  // coordinate() returns a rank's index along these axes.
  // Errors: usage if an axis does not exist or is named twice, or if the names mix axes after the
  // semicolon with axes that these replace.
  int size(std::string_view names) const;
  int coordinate(int rank, std::string_view names) const;
  // Returns the ranks whose coordinates differ from those of `rank` in these axes only, in mesh
  // order.
  std::vector<int> group(int rank, std::string_view names) const;
  // Returns all groups along these axes, ordered by their first ranks.
  std::vector<std::vector<int>> groups(std::string_view names) const;
  // Returns the names in the order of the mesh, so that "cp,dp" and "dp,cp" both become "dp,cp".
  std::string canonical(std::string_view names) const;

 private:
  struct Place {
    int size = 1;
    int stride = 1;  // distance of neighbouring ranks along this axis
  };
  std::vector<Place> places(std::string_view names) const;
  void check_rank(int rank) const;

  std::vector<Axis> axes_;
  std::vector<Axis> folded_;
  int ranks_ = 1;
};

// A communicator for each axis of a mesh.
// Threads: as for a Communicator.
class UNISONO_EXPORT Mesh {
 public:
  // Collective. Makes a mesh; all ranks pass the same text.
  // Errors: those of MeshShape::parse(); mismatch if the texts differ.
  static Mesh create(Communicator& communicator, std::string_view text);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

  // Local. Return the mesh's shape, this rank's number in the mesh, the number of ranks along one
  // or several axes, and this rank's index along these axes.
  const MeshShape& shape() const;
  int rank() const;
  int size(std::string_view names) const { return shape().size(names); }
  int coordinate(std::string_view names) const { return shape().coordinate(rank(), names); }
  // Returns this rank's group along one axis, or along several axes: axes("dp,cp"). The first call
  // for an axis makes the group and is collective over the members of the group. The group lives as
  // long as the mesh, and needs no thread and no descriptor. If ranks are threads of one process,
  // all ranks of the mesh must request the same groups in the same order.
  // Errors: those of MeshShape::size(), Communicator::subgroup().
  Communicator& axis(std::string_view name) { return axes(name); }
  Communicator& axes(std::string_view names);
  Communicator& world();  // all ranks of the mesh

 private:
  struct State;
  explicit Mesh(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
