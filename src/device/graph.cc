#include "device/graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <tuple>

namespace unisono::device {
namespace {

using engine::OperandPlace;

struct Node {
  int rank = 0;
  GraphPass pass = {};
  std::vector<int> after = {};  // nodes
  int pusher = -1;
  std::vector<std::pair<int, std::size_t>> lanes = {};  // message, index of the source
};

struct Message {
  int from = 0;
  GraphCell source = {};
  int reader = -1;  // node
  int writer = -1;  // node of the sender's pass whose sum it carries
  int copy = -1;    // node, where it is staged
  bool push = false;
  bool stage = false;
};

// What a rank's program does to its cells, in its order.
struct Access {
  int node = -1;  // own; -1: a send
  int message = -1;
};

class Builder {
 public:
  Builder(const Schedule& schedule, const GraphOptions& options)
      : schedule_(schedule), options_(options) {}

  Graph run() {
    list();
    connect();
    if (options_.direct) {
      choose_pushes();
      connect();
      if (!orders()) {
        for (Message& message : messages_) {
          message.push = false;
        }
        connect();
      }
    }
    if (!orders()) {
      throw std::logic_error("passes of " + schedule_.algorithm + " wait for each other");
    }
    find_sums();
    return write();
  }

 private:
  void list();
  void connect();
  void choose_pushes();
  bool orders() const;
  void find_sums();
  Graph write() const;
  GraphCell cell(int rank, OperandPlace place, int index) const {
    // In place, what has been written is the output, and so is what has not.
    return {rank, place, index};
  }
  std::size_t key(const GraphCell& cell) const {
    const bool scratch = cell.place == OperandPlace::scratch;
    const std::size_t kind = scratch ? 2 : cell.place == OperandPlace::input && !options_.in_place;
    const auto most = static_cast<std::size_t>(std::max(slots_, schedule_.chunks));
    return (static_cast<std::size_t>(cell.rank) * 3 + kind) * most +
           static_cast<std::size_t>(cell.index);
  }

  const Schedule& schedule_;
  GraphOptions options_;
  std::vector<Node> nodes_;
  std::vector<Message> messages_;
  std::vector<std::vector<Access>> order_;  // [rank]
  std::vector<std::vector<int>> touched_;   // [rank]: nodes of others that use its cells
  int slots_ = 0;
};

void Builder::list() {
  std::map<std::tuple<int, int, int>, int> named;  // from, to, ordinal
  std::vector<engine::Program> programs;
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    programs.push_back(engine::lower(
        schedule_, rank, {.multicast = false, .in_place = options_.in_place, .contiguous = false}));
  }
  std::vector<int> slot(static_cast<std::size_t>(schedule_.chunks), -1);
  for (const auto& program : programs) {
    for (std::size_t chunk = 0; chunk < program.scratch.size(); ++chunk) {
      if (program.scratch[chunk] && slot[chunk] < 0) {
        slot[chunk] = slots_++;
      }
    }
  }
  order_.resize(programs.size());
  const int kept = slots_;
  const auto own = [&](int rank, OperandPlace place, int chunk) {
    return cell(rank, place,
                place == OperandPlace::scratch ? slot[static_cast<std::size_t>(chunk)] : chunk);
  };
  const auto message_of = [&](int from, int to, int ordinal) {
    const auto [at, is_new] =
        named.try_emplace({from, to, ordinal}, static_cast<int>(messages_.size()));
    if (is_new) {
      messages_.push_back({.from = from});
    }
    return at->second;
  };
  for (const engine::Program& program : programs) {
    const int rank = program.rank;
    std::vector<int> node_of(program.passes.size(), -1);
    int aside_next = kept;  // each rank's own, as only its own messages are staged there
    auto& order = order_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < program.passes.size(); ++i) {
      const engine::Pass& pass = program.passes[i];
      if (pass.send) {
        const int number = message_of(rank, pass.targets[0].lane, pass.targets[0].ordinal);
        Message& message = messages_[static_cast<std::size_t>(number)];
        message.source = own(rank, pass.sources[0].place, pass.chunk);
        message.stage =
            !pass.may_share || (!options_.direct && pass.sources[0].place != OperandPlace::scratch);
        for (std::size_t k = 0; k < i; ++k) {
          const auto& forwards = program.passes[k].forwards;
          if (std::find(forwards.begin(), forwards.end(), static_cast<int>(i)) != forwards.end()) {
            message.writer = node_of[k];
          }
        }
        if (message.stage) {
          const GraphCell aside{rank, OperandPlace::scratch, aside_next++};
          slots_ = std::max(slots_, aside_next);
          if (message.writer >= 0) {
            nodes_[static_cast<std::size_t>(message.writer)].pass.targets.push_back(aside);
            message.copy = message.writer;
          } else {
            message.copy = static_cast<int>(nodes_.size());
            Node copy{.rank = rank};
            copy.pass = {.chunk = pass.chunk,
                         .step = pass.step,
                         .sources = {message.source},
                         .targets = {aside}};
            nodes_.push_back(copy);
            order.push_back({.node = message.copy});
          }
          message.source = aside;
        } else {
          order.push_back({.message = number});
        }
        continue;
      }
      Node node{.rank = rank};
      node.pass.chunk = pass.chunk;
      node.pass.step = pass.step;
      for (const engine::Operand& source : pass.sources) {
        if (source.place == OperandPlace::lane) {
          node.lanes.emplace_back(message_of(source.lane, rank, source.ordinal),
                                  node.pass.sources.size());
          node.pass.sources.push_back({});
        } else {
          node.pass.sources.push_back(own(rank, source.place, pass.chunk));
        }
      }
      for (const engine::Operand& target : pass.targets) {
        node.pass.targets.push_back(own(rank, target.place, pass.chunk));
      }
      node_of[i] = static_cast<int>(nodes_.size());
      for (const auto& [number, source] : node.lanes) {
        messages_[static_cast<std::size_t>(number)].reader = node_of[i];
      }
      order.push_back({.node = node_of[i]});
      nodes_.push_back(std::move(node));
    }
  }
  for (Node& node : nodes_) {
    for (const auto& [number, source] : node.lanes) {
      node.pass.sources[source] = messages_[static_cast<std::size_t>(number)].source;
    }
  }
}

void Builder::connect() {
  for (Node& node : nodes_) {
    node.after.clear();
    node.pusher = -1;
  }
  for (const Message& message : messages_) {
    if (message.push) {
      nodes_[static_cast<std::size_t>(message.reader)].pusher = message.writer;
    }
  }
  touched_.assign(order_.size(), {});
  struct History {
    int writer = -1;
    std::vector<int> readers = {};
  };
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    std::map<std::size_t, History> cells;
    const auto wait = [&](int node, int other) {
      if (other >= 0 && other != node) {
        nodes_[static_cast<std::size_t>(node)].after.push_back(other);
      }
    };
    const auto read = [&](const GraphCell& source, int node) {
      History& history = cells[key(source)];
      wait(node, history.writer);
      history.readers.push_back(node);
    };
    const auto write = [&](const GraphCell& target, int node) {
      History& history = cells[key(target)];
      wait(node, history.writer);
      for (const int reader : history.readers) {
        wait(node, reader);
      }
      history = {.writer = node};
    };
    for (const Access& access : order_[rank]) {
      if (access.node < 0) {
        const Message& message = messages_[static_cast<std::size_t>(access.message)];
        if (!message.push) {
          read(message.source, message.reader);
          touched_[rank].push_back(message.reader);
        }
        continue;
      }
      Node& node = nodes_[static_cast<std::size_t>(access.node)];
      const int maker = node.pusher < 0 ? access.node : node.pusher;
      if (node.pusher < 0) {
        for (const GraphCell& source : node.pass.sources) {
          if (source.rank == node.rank) {
            read(source, access.node);
          }
        }
      } else {
        touched_[rank].push_back(node.pusher);
      }
      for (const GraphCell& target : node.pass.targets) {
        write(target, maker);
      }
    }
    // What is staged is read where nobody writes again.
    for (const Message& message : messages_) {
      if (message.copy >= 0 && message.from == static_cast<int>(rank)) {
        wait(message.reader, message.copy);
        touched_[rank].push_back(message.reader);
      }
    }
  }
}

// What a pass of the receiver's waits for must be known to the sender without being told: that it
// reads the cell itself in that very pass, or in one before.
void Builder::choose_pushes() {
  std::vector<int> position(nodes_.size());
  for (const auto& order : order_) {
    int next = 0;
    for (const Access& access : order) {
      if (access.node >= 0) {
        position[static_cast<std::size_t>(access.node)] = next++;
      }
    }
  }
  for (Message& message : messages_) {
    if (message.writer < 0 || message.stage) {
      continue;
    }
    const Node& reader = nodes_[static_cast<std::size_t>(message.reader)];
    const Node& writer = nodes_[static_cast<std::size_t>(message.writer)];
    // A copy that is passed on is as well read where it came to.
    const bool is_sum = writer.pass.sources.size() > 1;
    const bool is_copy = reader.pass.sources.size() == 1 && reader.pass.targets.size() == 1;
    message.push =
        is_sum && is_copy && std::all_of(reader.after.begin(), reader.after.end(), [&](int other) {
          return nodes_[static_cast<std::size_t>(other)].rank == writer.rank &&
                 position[static_cast<std::size_t>(other)] <=
                     position[static_cast<std::size_t>(message.writer)];
        });
  }
}

// Whether the passes can be made, each rank's in its order.
bool Builder::orders() const {
  std::vector<std::size_t> next(order_.size());
  std::vector<bool> done(nodes_.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      for (; next[rank] < order_[rank].size(); ++next[rank], moved = true) {
        const int number = order_[rank][next[rank]].node;
        if (number < 0) {
          continue;
        }
        const Node& node = nodes_[static_cast<std::size_t>(number)];
        if (node.pusher >= 0) {
          continue;
        }
        if (!std::all_of(node.after.begin(), node.after.end(),
                         [&](int other) { return done[static_cast<std::size_t>(other)]; })) {
          break;
        }
        done[static_cast<std::size_t>(number)] = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    if (next[rank] != order_[rank].size()) {
      return false;
    }
  }
  return true;
}

// Which pass makes a sum whole: follow whose contributions each cell has.
void Builder::find_sums() {
  if (!reduces(schedule_.collective)) {
    return;
  }
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - schedule_.ranks);
  std::map<std::size_t, std::uint64_t> held;  // by cells that have been written
  std::vector<std::size_t> next(order_.size());
  std::vector<bool> done(nodes_.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      for (; next[rank] < order_[rank].size(); ++next[rank], moved = true) {
        const int number = order_[rank][next[rank]].node;
        if (number < 0 || nodes_[static_cast<std::size_t>(number)].pusher >= 0) {
          continue;
        }
        Node& node = nodes_[static_cast<std::size_t>(number)];
        if (!std::all_of(node.after.begin(), node.after.end(),
                         [&](int other) { return done[static_cast<std::size_t>(other)]; })) {
          break;
        }
        std::uint64_t sum = 0;
        bool whole_before = false;
        for (const GraphCell& source : node.pass.sources) {
          const std::uint64_t one = std::uint64_t{1} << source.rank;
          const auto at = held.find(key(source));
          const std::uint64_t has =
              source.place == OperandPlace::input || at == held.end() ? one : at->second;
          whole_before = whole_before || (has == all && source.place != OperandPlace::input);
          sum |= has;
        }
        node.pass.finish = sum == all && !whole_before;
        for (const GraphCell& target : node.pass.targets) {
          held[key(target)] = sum;
        }
        for (const Message& message : messages_) {
          if (message.push && message.writer == number) {
            for (const GraphCell& target :
                 nodes_[static_cast<std::size_t>(message.reader)].pass.targets) {
              held[key(target)] = sum;
            }
          }
        }
        done[static_cast<std::size_t>(number)] = true;
      }
    }
  }
}

Graph Builder::write() const {
  Graph graph{.slots = slots_};
  std::vector<int> index(nodes_.size(), -1);
  graph.ranks.resize(order_.size());
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    for (const Access& access : order_[rank]) {
      if (access.node >= 0 && nodes_[static_cast<std::size_t>(access.node)].pusher < 0) {
        index[static_cast<std::size_t>(access.node)] =
            static_cast<int>(graph.ranks[rank].passes.size());
        graph.ranks[rank].passes.push_back(nodes_[static_cast<std::size_t>(access.node)].pass);
      }
    }
  }
  const auto pass_at = [&](int node) -> GraphPass& {
    const auto n = static_cast<std::size_t>(node);
    return graph.ranks[static_cast<std::size_t>(nodes_[n].rank)]
        .passes[static_cast<std::size_t>(index[n])];
  };
  for (const Message& message : messages_) {
    if (message.push) {
      const auto& targets = nodes_[static_cast<std::size_t>(message.reader)].pass.targets;
      auto& all = pass_at(message.writer).targets;
      all.insert(all.end(), targets.begin(), targets.end());
    }
    ++(message.push ? graph.pushed : message.stage ? graph.staged : graph.pulled);
  }
  const auto add = [&](std::vector<After>& waits, int rank, int other) {
    const auto o = static_cast<std::size_t>(other);
    const int from = nodes_[o].rank;
    if (from == rank) {
      return;
    }
    pass_at(other).signals |= std::uint64_t{1} << rank;
    const int passes = index[o] + 1;
    for (After& wait : waits) {
      if (wait.rank == from) {
        wait.passes = std::max(wait.passes, passes);
        return;
      }
    }
    waits.push_back({.rank = from, .passes = passes});
  };
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].pusher >= 0) {
      continue;
    }
    for (const int other : nodes_[n].after) {
      add(pass_at(static_cast<int>(n)).waits, nodes_[n].rank, other);
    }
  }
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    for (const int other : touched_[rank]) {
      add(graph.ranks[rank].exit, static_cast<int>(rank), other);
    }
  }
  return graph;
}

}  // namespace

Graph build_graph(const Schedule& schedule, const GraphOptions& options) {
  return Builder(schedule, options).run();
}

}  // namespace unisono::device
