// Converts the ranks' programs into nodes and messages.
#include <algorithm>
#include <map>
#include <tuple>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

using engine::OperandPlace;

// Converts all programs, one after the other.
class GraphDrafter {
 public:
  GraphDrafter(const Schedule& schedule, const GraphOptions& options)
      : direct_(options.direct),
        slot_(static_cast<std::size_t>(schedule.chunks), -1),
        draft_{.chunks = schedule.chunks, .in_place = options.in_place} {}

  GraphDraft run(const std::vector<engine::Program>& programs) {
    number_scratch(programs);
    draft_.order.resize(programs.size());
    for (const engine::Program& program : programs) {
      add_program(program);
    }
    for (GraphNode& node : draft_.nodes) {
      for (const auto& [number, source] : node.lanes) {
        node.pass.sources[source] = draft_.message(number).source;
      }
    }
    return std::move(draft_);
  }

 private:
  void number_scratch(const std::vector<engine::Program>& programs);
  void add_program(const engine::Program& program);
  // Sending passes become messages, all other passes become nodes.
  void add_send(const engine::Pass& pass, int writer);
  int add_node(const engine::Pass& pass);
  // Adds a node that copies a message's source to scratch memory.
  void stage(const engine::Pass& pass, GraphMessage& message);
  GraphCell own(OperandPlace place, int chunk) const;
  int message_of(int from, int to, int ordinal);
  std::vector<GraphAccess>& order() { return draft_.order[static_cast<std::size_t>(rank_)]; }

  bool direct_;
  std::vector<int> slot_;  // scratch slot per chunk; -1: none
  GraphDraft draft_;
  std::map<std::tuple<int, int, int>, int> messages_ = {};  // from, to, ordinal
  int kept_ = 0;                                            // first slot for staged messages
  int rank_ = 0;                                            // rank whose program is being added
  int aside_next_ = 0;                                      // slot for its next staged message
};

void GraphDrafter::number_scratch(const std::vector<engine::Program>& programs) {
  for (const engine::Program& program : programs) {
    for (std::size_t chunk = 0; chunk < program.scratch.size(); ++chunk) {
      if (program.scratch[chunk] && slot_[chunk] < 0) {
        slot_[chunk] = kept_++;
      }
    }
  }
  draft_.slots = kept_;
}

void GraphDrafter::add_program(const engine::Program& program) {
  rank_ = program.rank;
  aside_next_ = kept_;  // starts at kept_ for each rank, which stages only its own messages
  std::vector<int> writer(program.passes.size(), -1);  // node that wrote what a pass sends
  for (std::size_t i = 0; i < program.passes.size(); ++i) {
    const engine::Pass& pass = program.passes[i];
    const int node = pass.send ? -1 : add_node(pass);
    if (pass.send) {
      add_send(pass, writer[i]);
    }
    for (const int forwarded : pass.forwards) {
      writer[static_cast<std::size_t>(forwarded)] = node;
    }
  }
}

void GraphDrafter::add_send(const engine::Pass& pass, int writer) {
  const OperandPlace place = pass.sources[0].place;
  const int number = message_of(rank_, pass.targets[0].lane, pass.targets[0].ordinal);
  GraphMessage& message = draft_.message(number);
  message.source = own(place, pass.chunk);
  message.writer = writer;
  message.stage = !pass.may_share || (!direct_ && place != OperandPlace::scratch);
  if (message.stage) {
    stage(pass, message);
  } else {
    order().push_back({.message = number});
  }
}

void GraphDrafter::stage(const engine::Pass& pass, GraphMessage& message) {
  const GraphCell aside{rank_, OperandPlace::scratch, aside_next_++};
  draft_.slots = std::max(draft_.slots, aside_next_);
  if (message.writer >= 0) {
    draft_.node(message.writer).pass.targets.push_back(aside);
    message.copy = message.writer;
  } else {
    message.copy = static_cast<int>(draft_.nodes.size());
    draft_.nodes.push_back({.rank = rank_,
                            .pass = {.chunk = pass.chunk,
                                     .step = pass.step,
                                     .sources = {message.source},
                                     .targets = {aside}}});
    order().push_back({.node = message.copy});
  }
  message.source = aside;
}

int GraphDrafter::add_node(const engine::Pass& pass) {
  const auto number = static_cast<int>(draft_.nodes.size());
  GraphNode node{.rank = rank_, .pass = {.chunk = pass.chunk, .step = pass.step}};
  for (const engine::Operand& source : pass.sources) {
    if (source.place == OperandPlace::lane) {
      const int message = message_of(source.lane, rank_, source.ordinal);
      draft_.message(message).reader = number;
      node.lanes.emplace_back(message, node.pass.sources.size());
      node.pass.sources.push_back({});  // set when the sender has been added
    } else {
      node.pass.sources.push_back(own(source.place, pass.chunk));
    }
  }
  for (const engine::Operand& target : pass.targets) {
    node.pass.targets.push_back(own(target.place, pass.chunk));
  }
  order().push_back({.node = number});
  draft_.nodes.push_back(std::move(node));
  return number;
}

GraphCell GraphDrafter::own(OperandPlace place, int chunk) const {
  const bool is_scratch = place == OperandPlace::scratch;
  return {rank_, place, is_scratch ? slot_[static_cast<std::size_t>(chunk)] : chunk};
}

int GraphDrafter::message_of(int from, int to, int ordinal) {
  const auto [at, is_new] =
      messages_.try_emplace({from, to, ordinal}, static_cast<int>(draft_.messages.size()));
  if (is_new) {
    draft_.messages.push_back({.from = from});
  }
  return at->second;
}

}  // namespace

GraphDraft draft_graph(const Schedule& schedule, const GraphOptions& options) {
  std::vector<engine::Program> programs;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    programs.push_back(engine::lower(
        schedule, rank, {.multicast = false, .in_place = options.in_place, .contiguous = false}));
  }
  return GraphDrafter(schedule, options).run(programs);
}

}  // namespace unisono::device
