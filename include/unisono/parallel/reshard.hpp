// Reshard: tensors move from one mesh of ranks to another, for example from a trainer to an
// inference engine.
//
// Both meshes consist of ranks of one communicator. They may be the same, overlap, or be disjoint.
// A plan says which rank sends which elements to which rank. It covers many tensors, and can be run
// any number of times:
//
//   - a target rank takes an element from its own memory if it holds the element, otherwise from a
//     rank on its host that holds it, otherwise from another host;
//   - a host receives each element at most once, and its ranks pass the element on to each other;
//   - if several ranks hold an element, the sender is the rank that has the least other data to
//     send. A rank that has received an element may pass the element on;
//   - for a tensor that is Partial on the source mesh, one rank receives each summand once, adds
//     the summands in the order of the source mesh, rounds once, and sends the sum on.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/parallel/mesh.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// The placement of a tensor on one axis of a mesh, or on several as one ("dp,cp").
struct AxisPlacement {
  std::string axis = {};
  Placement placement = {};
  // For a shard: lengths of consecutive sections of the dimension. The axis cuts each section
  // separately. Example: q, k and v in a fused projection. Empty: one section.
  std::vector<std::size_t> sections = {};
  // For a shard of one section: the length of each rank's part. Empty: as shard_range() cuts.
  std::vector<std::size_t> parts = {};
  bool operator==(const AxisPlacement&) const = default;
};

// A mesh, the ranks that form it, and how they hold a tensor.
struct UNISONO_EXPORT MeshLayout {
  MeshShape mesh = {};
  // The placements, in the order in which they cut: if two placements shard one dimension, the
  // second placement cuts the parts of the first. Axes that no placement names replicate the
  // tensor.
  std::vector<AxisPlacement> placements = {};
  // The rank of the communicator at each position of the mesh. Empty: position 0 is rank 0, ...
  std::vector<int> ranks = {};

  // Parses text such as "dp=2,tp=4 on 0-7: tp=shard(0) dp=partial". Only the mesh is required. A
  // shard may have sections or parts: "tp=shard(0,sections=4096+2*1024)",
  // "tp=shard(0,parts=3+2+2)".
  // Errors: config, with the mistake in the text.
  static MeshLayout parse(std::string_view text);
  std::string text() const;
  int rank_at(int position) const {
    return ranks.empty() ? position : ranks[static_cast<std::size_t>(position)];
  }
};

// The elements of a tensor that one rank has, or that one move carries: for each dimension a list
// of ranges in ascending order. In memory the ranges of a dimension are adjacent.
using ElementRanges = std::vector<std::vector<Range>>;

// Local. count_of() returns the number of elements. shape_of() returns the shape of memory that
// holds only these elements.
UNISONO_EXPORT std::size_t count_of(const ElementRanges& elements);
UNISONO_EXPORT std::vector<std::size_t> shape_of(const ElementRanges& elements);

// Local. Returns the elements at a position of a mesh.
// Errors: usage if a placement does not fit the tensor, with the dimension and the rank.
UNISONO_EXPORT ElementRanges elements_at(const MeshLayout& layout,
                                         std::span<const std::size_t> shape, int position);

// A tensor that moves, and its layouts.
struct ReshardTensor {
  std::string name = {};
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};  // of the whole tensor
  MeshLayout from = {};
  MeshLayout to = {};
};

// Elements of one tensor that one rank sends to another, or copies within its own memory.
struct ReshardMove {
  std::size_t tensor = 0;
  int from = 0;
  int to = 0;  // == from: own memory
  // `to` keeps the elements as one summand. The summands of a sum are consecutive moves.
  bool summand = false;
  // 0: this move reads the source tensor. Otherwise it reads the elements that the move `after` has
  // brought; the hop of `after` is hop - 1. If `after` brings a summand, this move reads the sum
  // that the summand completes.
  int hop = 0;
  std::size_t after = 0;
  ElementRanges elements = {};
  std::size_t bytes = 0;
};

// The moves between ranks, and the tensors that they move.
struct UNISONO_EXPORT ReshardPlan {
  std::vector<ReshardTensor> tensors = {};
  std::vector<int> hosts = {};  // of each rank
  std::vector<ReshardMove> moves = {};

  std::size_t ranks() const { return hosts.size(); }  // of the communicator
  // Bytes that ranks send to others, and the part of them that goes from host to host.
  std::size_t bytes_sent() const;
  std::size_t bytes_between_hosts() const;
  std::vector<std::size_t> bytes_sent_by_rank() const;
};

// Local. Plans the moves. `hosts` is the host of each rank of the communicator.
// Errors: usage, with the tensor's name, for a layout that does not fit the tensor or the ranks, a
// target with Partial, or source elements that no rank has.
UNISONO_EXPORT ReshardPlan plan_reshard(std::vector<ReshardTensor> tensors, std::vector<int> hosts);

// Local. Verifies a plan and returns its mistakes, at most a hundred. The list is empty if every
// target element is written once, from the right source element, by a move that runs after its data
// has arrived.
UNISONO_EXPORT std::vector<std::string> verify_reshard(const ReshardPlan& plan);

// The fewest bytes that any plan can send: each target element is sent once to each rank that lacks
// it, and each summand is sent once.
struct ReshardBound {
  std::size_t bytes_sent = 0;
  std::size_t bytes_between_hosts = 0;
  // The bytes of the rank that sends most, if a plan sends the bytes above and spreads them as
  // evenly as the source layouts allow. Sums of Partial may need more.
  std::size_t bytes_sent_by_busiest = 0;
};

// Local. Computes the fewest bytes from the layouts and hosts of a plan, without its moves.
UNISONO_EXPORT ReshardBound reshard_bound(const ReshardPlan& plan);

// A plan that is ready to run.
// Threads: as for a Communicator.
class UNISONO_EXPORT Reshard {
 public:
  // Collective. Plans the moves, and makes a group for their messages. All ranks of the
  // communicator, also ranks outside both meshes, pass the same tensors.
  // Errors: those of plan_reshard(); mismatch if the tensors of a rank differ from those of rank 0.
  static Reshard create(Communicator& communicator, std::vector<ReshardTensor> tensors);
  Reshard(Reshard&&) noexcept;
  Reshard& operator=(Reshard&&) noexcept;
  ~Reshard();

  // Collective. Fills `out` from `in`. Does not change `in`.
  // Shapes: one tensor for each tensor of create(), in its order, with any strides: in_shape() and
  // out_shape(). If this rank has no part of a tensor, run() ignores the entry of this tensor.
  // In place: no. An element of `out` must not share memory with an element of `in`.
  // Errors: usage before anything is sent, with the tensor's name, for memory that is missing, has
  // another shape, or is shared by `in` and `out`, and mismatch on the other ranks; those of
  // Communicator::send(). After an error, complete() says which tensors have arrived.
  void run(std::span<const Tensor> in, std::span<const Tensor> out, int timeout_ms = -1);

  // Local. Returns the shape of this rank's part before or after the move; nothing if the rank is
  // outside the mesh.
  std::optional<std::vector<std::size_t>> in_shape(std::size_t tensor) const;
  std::optional<std::vector<std::size_t>> out_shape(std::size_t tensor) const;
  // Local. Returns true if the latest run() has filled this rank's whole part of the tensor in
  // `out`.
  bool complete(std::size_t tensor) const;
  const ReshardPlan& plan() const;

 private:
  struct State;
  explicit Reshard(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace unisono::parallel
