#include "step/calls.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "step/extent.h"
#include "step/walk.h"

namespace unisono::step {
namespace {

// The calls of each rank in each section, and a pipeline's messages at both ends, by rank, sending
// stage and pass.
struct Unrolled {
  std::vector<std::vector<std::vector<Call>>> calls = {};
  std::map<std::tuple<int, int, StagePass>, Call> messages = {};
};

class Unroll {
 public:
  Unroll(const Step& step, const StepRanks& ranks) : step_(step), ranks_(ranks) {}

  Unrolled run() {
    made_.calls.assign(step_.sections.size(),
                       std::vector<std::vector<Call>>(static_cast<std::size_t>(ranks_.count())));
    std::vector<Finding> none;
    walk(step_, ranks_, 1 << 20, none, [&](const Visit& visit) {
      for (int rank = 0; rank < ranks_.count(); ++rank) {
        add(visit, rank);
      }
    });
    return std::move(made_);
  }

 private:
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
    if (!does(visit, rank) || node.kind == Node::Kind::sum_stages) {
      return;
    }
    if (node.kind == Node::Kind::compute) {
      compute(visit, rank);
    } else if (ranks_.size(node.axes) > 1) {
      move(visit, rank);
    }
  }

  // In a section of all stages a rank acts only at the first of its stages.
  bool does(const Visit& visit, int rank) const {
    if (visit.section.stage != kAllStages) {
      return ranks_.has_stage(rank, visit.stage);
    }
    int first = 0;
    while (!ranks_.has_stage(rank, first)) {
      ++first;
    }
    return visit.stage == first;
  }

  std::size_t index_of(const Section& section) const {
    return static_cast<std::size_t>(&section - step_.sections.data());
  }
  static std::size_t index_of(const Visit& visit) {
    return static_cast<std::size_t>(&visit.node - visit.section.nodes.data());
  }

  Call& push(const Visit& visit, int rank, std::string what) {
    return made_.calls[index_of(visit.section)][static_cast<std::size_t>(rank)].emplace_back(
        Call{.what = std::move(what),
             .section = visit.section.name,
             .node = visit.node.name,
             .section_index = index_of(visit.section),
             .node_index = index_of(visit),
             .layer = visit.layer});
  }

  void call(const Visit& visit, int rank, const char* what, const std::string& axes, double bytes) {
    Call& made = push(visit, rank, what);
    made.group = ranks_.group(rank, axes);
    made.bytes = bytes;
  }

  double bytes_of(const std::vector<std::string>& names, const State& state, int rank) const {
    double bytes = 0;
    for (const std::string& name : names) {
      bytes += local_bytes(step_, ranks_, ranks_.tensor(name), state.at(name), rank);
    }
    return bytes;
  }

  void send(const Visit& visit, int rank) {
    const int to = ranks_.sends_to(visit.section);
    const bool sends = ranks_.has_stage(rank, visit.stage);
    if (to < 0 || (!sends && !ranks_.has_stage(rank, to))) {
      return;
    }
    const int sender = ranks_.rank_at(rank, visit.stage);
    const int receiver = ranks_.rank_at(rank, to);
    if (sender == receiver) {
      return;
    }
    Call& made = visit.section.pass == StagePass::none
                     ? push(visit, rank, sends ? "send" : "receive")
                     : made_.messages[{rank, visit.stage, visit.section.pass}];
    made.section = visit.section.name;
    made.node = visit.node.name;
    made.section_index = index_of(visit.section);
    made.node_index = index_of(visit);
    made.group = ranks_.pipeline_of(rank);
    made.peer = sends ? receiver : sender;
    made.bytes += bytes_of(visit.node.reads, visit.before, sender);
  }

  // Flops count per element of the product of all dimensions; a dimension that is cut like another
  // one counts as a part of that one. A node without flops looks up, copies or normalises: its
  // bytes follow from the largest activation.
  void compute(const Visit& visit, int rank) {
    std::map<std::string, std::size_t> extents;
    double bytes = 0;
    double largest = 0;
    const auto look = [&](const std::vector<std::string>& names, const State& state) {
      for (const std::string& name : names) {
        const Tensor& tensor = ranks_.tensor(name);
        const double own = local_bytes(step_, ranks_, tensor, state.at(name), rank);
        bytes += own;
        largest = tensor.kind == Tensor::Kind::activation ? std::max(largest, own) : largest;
        for (const std::string& dim : tensor.dims) {
          extents.emplace(dim, extent(step_, ranks_, *step_.find_dim(dim), state.at(name), rank));
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
      return;  // ring_home lists the data that travels around; `first` keeps whole data without a
               // call
    } else if (node.by == "merge") {
      call(visit, rank, "all_gather", node.axes, before * ranks_.size(node.axes));
    } else if (node.from.kind == Kind::partial) {
      call(visit, rank, node.to.kind == Kind::shard ? "reduce_scatter" : "all_reduce", node.axes,
           before);
    } else if (node.from.kind == Kind::shard) {
      call(visit, rank, node.to.kind == Kind::shard ? "all_to_all" : "all_gather", node.axes,
           std::max(before, after));
    }
    // Cutting a replicated tensor needs no call.
  }

  // Adds a message of the ring with the block of `place`: to the next rank, or from the previous
  // one.
  void pass(const Visit& visit, int rank, bool sends, int place) {
    const std::vector<int> group = ranks_.group(rank, visit.node.axes);
    const auto ranks = static_cast<int>(group.size());
    const int self = ranks_.coordinate(rank, visit.node.axes);
    const auto at = [&](int i) { return group[static_cast<std::size_t>((i + 2 * ranks) % ranks)]; };
    const bool is_home = visit.node.by == "ring_home";
    Call& made = push(visit, rank, sends ? "send" : "receive");
    made.group = group;
    made.peer = at(sends ? self + 1 : self - 1);
    // Each rank has summands of whole blocks; a block has the size that it has at its owner.
    made.bytes = bytes_of(visit.node.reads, is_home ? visit.after : visit.before, at(place));
  }

  // Blocks travel around the ring: each rank forwards what it has received.
  void ring(const Visit& visit, int rank) {
    const int self = ranks_.coordinate(rank, visit.node.axes);
    for (int i = 0; i + 1 < ranks_.size(visit.node.axes); ++i) {
      pass(visit, rank, false, self - i - 1);
      pass(visit, rank, true, self - i);
    }
  }

  // Blocks of keys and values travel around the ring. The sums of their gradients follow one step
  // behind, and are equally large.
  void ring_home(const Visit& visit, int rank) {
    const int self = ranks_.coordinate(rank, visit.node.axes);
    const int ranks = ranks_.size(visit.node.axes);
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
  const StepRanks& ranks_;
  Unrolled made_;
};

// Puts the calls of the sections into each rank's order. With a pipeline, passes follow the
// pipeline's order, with its sends and receives in between.
class Order {
 public:
  Order(const Step& step, const StepRanks& ranks, const Unrolled& made)
      : step_(step), ranks_(ranks), made_(made) {}

  std::vector<Call> of(int rank) const {
    std::vector<Call> all;
    bool has_passed = false;
    for (std::size_t i = 0; i < step_.sections.size(); ++i) {
      if (step_.sections[i].pass == StagePass::none) {
        append(all, i, rank, {});
      } else if (!has_passed) {
        has_passed = true;
        for (const pipeline::Action& action : ranks_.actions_of(rank)) {
          add(all, action, rank);
        }
      }
    }
    return all;
  }

 private:
  void append(std::vector<Call>& all, std::size_t section, int rank,
              const std::optional<pipeline::Action>& action) const {
    for (const Call& call : made_.calls[section][static_cast<std::size_t>(rank)]) {
      all.push_back(call);
      all.back().action = action;
    }
  }

  void add(std::vector<Call>& all, const pipeline::Action& action, int rank) const {
    if (is_send(action.kind) || is_receive(action.kind)) {
      message(all, action, rank);
      return;
    }
    for (const StagePass pass : passes_of(action.kind)) {
      for (std::size_t i = 0; i < step_.sections.size(); ++i) {
        if (step_.sections[i].pass == pass && step_.sections[i].stage == action.stage) {
          append(all, i, rank, action);
        }
      }
    }
  }

  // At both ends a message has the name of the node that sends it.
  void message(std::vector<Call>& all, const pipeline::Action& action, int rank) const {
    const bool is_forward = is_forward_lane(action.kind);
    const auto stage = static_cast<std::size_t>(action.stage);
    const int sender = is_send(action.kind) ? action.stage
                       : is_forward         ? ranks_.around().before[stage]
                                            : ranks_.around().next[stage];
    const auto found = made_.messages.find(
        {rank, sender, is_forward ? StagePass::forward : StagePass::backward_input});
    if (found != made_.messages.end()) {
      all.push_back(found->second);
      all.back().what = is_send(action.kind) ? "send" : "receive";
      all.back().action = action;
    }
  }

  const Step& step_;
  const StepRanks& ranks_;
  const Unrolled& made_;
};

}  // namespace

std::vector<std::vector<Call>> calls_of(const Step& step) {
  const StepRanks ranks(step);
  const Unrolled made = Unroll(step, ranks).run();
  const Order order(step, ranks, made);
  std::vector<std::vector<Call>> calls;
  for (int rank = 0; rank < ranks.count(); ++rank) {
    calls.push_back(order.of(rank));
  }
  return calls;
}

}  // namespace unisono::step
