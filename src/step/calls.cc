#include "step/calls.h"

#include <algorithm>
#include <map>

#include "step/walk.h"

namespace unisono::step {
namespace {

class Unroll {
 public:
  Unroll(const Step& step, const parallel::MeshShape& mesh)
      : step_(step), mesh_(mesh), calls_(static_cast<std::size_t>(mesh.ranks())) {}

  std::vector<std::vector<Call>> run() {
    std::vector<Finding> none;
    walk(step_, mesh_, 1 << 20, none, [&](const Visit& visit) {
      for (int rank = 0; rank < mesh_.ranks(); ++rank) {
        add(visit, rank);
      }
    });
    return std::move(calls_);
  }

 private:
  int stage_of(int rank) const {
    return step_.stage_axis.empty() ? 0 : mesh_.coordinate(rank, step_.stage_axis);
  }

  void add(const Visit& visit, int rank) {
    const Node& node = visit.node;
    if (node.kind == Node::Kind::broadcast) {
      call(visit, rank, "broadcast", step_.stage_axis, bytes_of(node.reads, visit.before, rank));
      return;
    }
    if (node.kind == Node::Kind::send) {
      send(visit, rank);
      return;
    }
    if (stage_of(rank) != visit.section.stage) {
      return;
    }
    if (node.kind == Node::Kind::compute) {
      compute(visit, rank);
    } else if (mesh_.size(node.axes) > 1) {
      move(visit, rank);
    }
  }

  Call& push(const Visit& visit, int rank, std::string what) {
    return calls_[static_cast<std::size_t>(rank)].emplace_back(Call{.what = std::move(what),
                                                                    .section = visit.section.name,
                                                                    .node = visit.node.name,
                                                                    .layer = visit.layer});
  }

  void call(const Visit& visit, int rank, const char* what, const std::string& axes, double bytes) {
    Call& made = push(visit, rank, what);
    made.group = mesh_.group(rank, axes);
    made.bytes = bytes;
  }

  double bytes_of(const std::vector<std::string>& names, const State& state, int rank) const {
    double bytes = 0;
    for (const std::string& name : names) {
      bytes += local_bytes(step_, mesh_, *step_.find_tensor(name), state.at(name), rank);
    }
    return bytes;
  }

  void send(const Visit& visit, int rank) {
    const int stage = stage_of(rank);
    const int from = visit.section.stage;
    if (stage != from && stage != from + 1) {
      return;
    }
    Call& made = push(visit, rank, stage == from ? "send" : "receive");
    made.group = mesh_.group(rank, step_.stage_axis);
    made.peer = made.group[static_cast<std::size_t>(stage == from ? from + 1 : from)];
    // Ranks of one group lie alike but for the stage.
    made.bytes =
        bytes_of(visit.node.reads, visit.before, made.group[static_cast<std::size_t>(from)]);
  }

  // Flops count for each element of the product of all dimensions; one that is cut as another one
  // is a part of that. What has none looks up, copies or norms: as much as the largest activation.
  void compute(const Visit& visit, int rank) {
    std::map<std::string, std::size_t> extents;
    double bytes = 0;
    double largest = 0;
    const auto look = [&](const std::vector<std::string>& names, const State& state) {
      for (const std::string& name : names) {
        const Tensor& tensor = *step_.find_tensor(name);
        const double own = local_bytes(step_, mesh_, tensor, state.at(name), rank);
        bytes += own;
        largest = tensor.kind == Tensor::Kind::activation ? std::max(largest, own) : largest;
        for (const std::string& dim : tensor.dims) {
          extents.emplace(dim, extent(step_, mesh_, *step_.find_dim(dim), state.at(name), rank));
        }
      }
    };
    look(visit.node.reads, visit.before);
    look(visit.node.writes, visit.after);
    double elements = 1;
    for (const auto& [dim, count] : extents) {
      const std::string& like = step_.find_dim(dim)->like;
      elements *= like.empty() || !extents.contains(like) ? static_cast<double>(count) : 1;
    }
    Call& made = push(visit, rank, "computing");
    made.flops = visit.node.share * visit.node.flops * elements;
    made.memory_bytes = visit.node.share * (made.flops > 0 ? bytes : 2 * largest);
  }

  void move(const Visit& visit, int rank) {
    using Kind = Placement::Kind;
    const Node& node = visit.node;
    std::vector<std::string> moved = node.reads;
    moved.resize(node.kind == Node::Kind::redistribute ? moved.size() : node.writes.size());
    const double before = bytes_of(moved, visit.before, rank);
    const double after = bytes_of(node.writes, visit.after, rank);
    if (node.kind != Node::Kind::redistribute) {
      const double rows = node.kind == Node::Kind::dispatch ? before : after;
      call(visit, rank, node.kind == Node::Kind::dispatch ? "dispatch" : "combine", node.axes,
           rows * node.rows_sent);
    } else if (node.by == "ring") {
      ring(visit, rank);
    } else if (node.by == "ring_home") {
      ring_home(visit, rank);
    } else if (node.by == "ring_with" || node.by == "first") {
      return;  // what goes around is told by ring_home; what is whole is kept without a word
    } else if (node.by == "merge") {
      call(visit, rank, "all_gather", node.axes, before * mesh_.size(node.axes));
    } else if (node.from.kind == Kind::partial) {
      call(visit, rank, node.to.kind == Kind::shard ? "reduce_scatter" : "all_reduce", node.axes,
           before);
    } else if (node.from.kind == Kind::shard) {
      call(visit, rank, node.to.kind == Kind::shard ? "all_to_all" : "all_gather", node.axes,
           std::max(before, after));
    }
    // What is whole is cut without a word.
  }

  // A message of the ring, to the next rank or from the one before, of `place`'s block.
  void pass(const Visit& visit, int rank, bool sends, int place) {
    const std::vector<int> group = mesh_.group(rank, visit.node.axes);
    const auto ranks = static_cast<int>(group.size());
    const int self = mesh_.coordinate(rank, visit.node.axes);
    const auto at = [&](int i) { return group[static_cast<std::size_t>((i + 2 * ranks) % ranks)]; };
    const bool is_home = visit.node.by == "ring_home";
    Call& made = push(visit, rank, sends ? "send" : "receive");
    made.group = group;
    made.peer = at(sends ? self + 1 : self - 1);
    // Each rank has summands of whole ones: a block is what they are when they are home.
    made.bytes = bytes_of(visit.node.reads, is_home ? visit.after : visit.before, at(place));
  }

  // Blocks go around: each rank passes on what it has got.
  void ring(const Visit& visit, int rank) {
    const int self = mesh_.coordinate(rank, visit.node.axes);
    for (int i = 0; i + 1 < mesh_.size(visit.node.axes); ++i) {
      pass(visit, rank, false, self - i - 1);
      pass(visit, rank, true, self - i);
    }
  }

  // Blocks of keys and values go around, and the sums of their gradients one step behind, which
  // are as large.
  void ring_home(const Visit& visit, int rank) {
    const int self = mesh_.coordinate(rank, visit.node.axes);
    const int ranks = mesh_.size(visit.node.axes);
    for (int i = 0; i < ranks; ++i) {
      if (i + 1 < ranks) {
        pass(visit, rank, false, self - i - 1);
        pass(visit, rank, true, self - i);
      }
      if (i > 0) {
        pass(visit, rank, false, self - i);
      }
      pass(visit, rank, true, self - i);
    }
    pass(visit, rank, false, self);
  }

  const Step& step_;
  const parallel::MeshShape& mesh_;
  std::vector<std::vector<Call>> calls_;
};

}  // namespace

std::vector<std::vector<Call>> calls_of(const Step& step) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  return Unroll(step, mesh).run();
}

}  // namespace unisono::step
