// Mesh: ranks laid out along named axes, such as "pp=2,dp=2,cp=1,tp=4".
//
// The last axis varies fastest: ranks 0 to 3 of that mesh are one group of tp. Behind a semicolon
// come axes for expert layers alone, "dp=4,cp=2,tp=2;edp=2,ep=4,etp=2": they lie folded over the
// last axes of the same product (here all three), so that attention and experts of one model can be
// laid out differently (parallel folding: Liu et al., 2025, arXiv 2504.14960). A size is a product
// of numbers and of axes that stand before: "dp=2,cp=2,tp=2;ep=dp*cp,etp=tp".
//
// The text is the same in C++, Python, on the command line and in files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono::parallel {

struct Axis {
  std::string name;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// The arithmetic of a mesh, which needs no ranks. Any thread.
class UNISONO_EXPORT MeshShape {
 public:
  // Errors: config, with what is wrong in the text, or with both numbers where the product of the
  // axes is not `ranks` (0: any).
  static MeshShape parse(std::string_view text, int ranks = 0);

  int ranks() const { return ranks_; }
  const std::vector<Axis>& axes() const { return axes_; }      // the slowest first
  const std::vector<Axis>& folded() const { return folded_; }  // behind the semicolon
  std::string text() const;

  // For one axis or for several, "dp,cp". Errors: usage, for an axis that does not exist, one that
  // is named twice, and for axes of both sides of the semicolon that are not the same ranks.
  int size(std::string_view names) const;
  int coordinate(int rank, std::string_view names) const;
  // The ranks that differ from `rank` in these axes alone, in the order of the mesh.
  std::vector<int> group(int rank, std::string_view names) const;
  // All groups over these axes, by their first ranks.
  std::vector<std::vector<int>> groups(std::string_view names) const;
  // The same for all spellings of the same axes: "cp,dp" gives "dp,cp".
  std::string canonical(std::string_view names) const;

 private:
  struct Place {
    int size = 1;
    int stride = 1;  // how far two ranks that are neighbours along this axis lie apart
  };
  std::vector<Place> places(std::string_view names) const;
  void check_rank(int rank) const;

  std::vector<Axis> axes_;
  std::vector<Axis> folded_;
  int ranks_ = 1;
};

// Thread rule: as a Communicator.
class UNISONO_EXPORT Mesh {
 public:
  // All ranks call it with the same text. Errors: as of MeshShape::parse(); mismatch where the
  // texts differ.
  static Mesh create(Communicator& communicator, std::string_view text);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

  const MeshShape& shape() const;
  int rank() const;
  int size(std::string_view names) const { return shape().size(names); }
  int coordinate(std::string_view names) const { return shape().coordinate(rank(), names); }
  // The group of this rank along one axis, or over several: axes("dp,cp"). It is made when it is
  // asked for first, by its members alone, with neither thread nor descriptor; where ranks are
  // threads of one process, all ranks of the mesh have to ask for the same groups in the same
  // order. It lives as long as the mesh.
  Communicator& axis(std::string_view name) { return axes(name); }
  Communicator& axes(std::string_view names);
  Communicator& world();  // all ranks of the mesh

 private:
  struct State;
  explicit Mesh(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
