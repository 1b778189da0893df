// The groups of a mesh of live ranks, each made when it is first used.
#include "unisono/parallel/mesh.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/rank_list.h"

namespace unisono::parallel {

struct Mesh::State {
  MeshShape shape;
  Communicator world;
  bool threads = false;  // several ranks are threads of one process
  std::map<std::string, Communicator> groups = {};
};

Mesh::Mesh(std::unique_ptr<State> state) : state_(std::move(state)) {}
Mesh::Mesh(Mesh&&) noexcept = default;
Mesh& Mesh::operator=(Mesh&&) noexcept = default;
Mesh::~Mesh() = default;

Mesh Mesh::create(Communicator& communicator, std::string_view text) {
  MeshShape shape = MeshShape::parse(text, communicator.size());
  // A separate group, so that the mesh can number its groups freely.
  Communicator world = communicator.split(0, communicator.rank());
  const std::array<std::uint64_t, 2> mine = {Hash().add(shape.text()).value(),
                                             static_cast<std::uint64_t>(getpid())};
  std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(world.size()));
  world.all_gather(mine, all);
  std::vector<int> others;
  bool threads = false;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto at = 2 * static_cast<std::size_t>(rank);
    if (all[at] != mine[0]) {
      others.push_back(rank);
    }
    threads = threads || (rank != world.rank() && all[at + 1] == mine[1]);
  }
  if (!others.empty()) {
    throw Error(ErrorCode::mismatch,
                "mesh: this rank has \"" + shape.text() + "\", and " + ranks_text(others) +
                    " another text\ngive all ranks the same text",
                {.rank = world.rank(), .peer = others.front()});
  }
  // If one rank finds it, all ranks must act on it.
  std::array<std::uint64_t, 1> any = {threads ? 1U : 0U};
  world.all_reduce(any, max);
  return Mesh(std::unique_ptr<State>(
      new State{.shape = std::move(shape), .world = std::move(world), .threads = any[0] != 0}));
}

const MeshShape& Mesh::shape() const {
  return state_->shape;
}
int Mesh::rank() const {
  return state_->world.rank();
}
Communicator& Mesh::world() {
  return state_->world;
}

Communicator& Mesh::axes(std::string_view names) {
  const std::string key = state_->shape.canonical(names);
  const auto known = state_->groups.find(key);
  if (known != state_->groups.end()) {
    return known->second;
  }
  Communicator& world = state_->world;
  const std::vector<int> members = state_->shape.group(world.rank(), key);
  Communicator made = state_->threads ? world.split(members.front(), world.rank())
                                      : world.subgroup(members, Hash().add(key).value());
  return state_->groups.emplace(key, std::move(made)).first->second;
}

}  // namespace unisono::parallel
