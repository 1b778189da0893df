#include "network_model/cost.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "schedule/cells.h"

namespace unisono::network_model {
namespace {

// A chain of messages, counted in whole chunks (or elements, see chunk_bytes), so that sums are
// exact.
struct Chain {
  double messages = 0;
  double chunks = 0;
  double reduced = 0;
  double time = 0;
};

// Ties go to the chain that shows more of what happened.
bool later(const Chain& a, const Chain& b) {
  return std::tie(a.time, a.messages, a.reduced) > std::tie(b.time, b.messages, b.reduced);
}

void extend(Chain& chain, const Chain& other) {
  if (later(other, chain)) {
    chain = other;
  }
}

// All moves between two ranks in one step; from == to: its local moves, each on its own.
struct Message {
  int from = 0;
  int to = 0;
  double chunks = 0;
  double reduced = 0;
  Chain ready = {};
};

class Network {
 public:
  Network(const Schedule& schedule, double chunk, const Parameters& parameters)
      : schedule_(schedule),
        chunk_(chunk),
        parameters_(parameters),
        out_(static_cast<std::size_t>(schedule.ranks)),
        in_(out_.size()) {}

  void run_step(std::span<const Move> moves) {
    gather(moves);
    for (Message& message : messages_) {
      deliver(message);
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      write(moves[i], messages_[message_of_[i]].ready);
    }
  }

  Chain last() const {
    Chain chain;
    for (std::size_t rank = 0; rank < out_.size(); ++rank) {
      extend(chain, out_[rank]);
      extend(chain, in_[rank]);
    }
    return chain;
  }

 private:
  // Joins the moves of a step to messages. All reads of a step come before its writes.
  void gather(std::span<const Move> moves) {
    messages_.clear();
    message_of_.clear();
    places_.clear();
    for (const Move& move : moves) {
      std::size_t place = messages_.size();
      if (move.from != move.to) {
        const auto pair =
            static_cast<std::uint64_t>(move.from) * static_cast<std::uint64_t>(schedule_.ranks) +
            static_cast<std::uint64_t>(move.to);
        place = places_.try_emplace(pair, place).first->second;
      }
      if (place == messages_.size()) {
        messages_.push_back({.from = move.from, .to = move.to});
      }
      message_of_.push_back(place);
      Message& message = messages_[place];
      const auto length = static_cast<double>(length_of(schedule_, move));
      message.chunks += length * coded_share(move.code);
      message.reduced += move.combine == Combine::reduce ? length : 0;
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        read({move.from, move.source, chunk}, message.ready);
      }
    }
  }

  // Afterwards `ready` is when its data is there.
  void deliver(Message& message) {
    Chain& out = out_[static_cast<std::size_t>(message.from)];
    Chain& in = in_[static_cast<std::size_t>(message.to)];
    Chain end = message.ready;
    if (message.from == message.to) {
      if (message.reduced > 0) {
        extend(end, in);
        end = in = advance(end, 0, 0, message.reduced);
      }
    } else {
      extend(end, out);
      extend(end, in);
      out = advance(end, 1, message.chunks, 0);
      end = in = advance(end, 1, message.chunks, message.reduced);
    }
    message.ready = end;
  }

  Chain advance(Chain chain, double messages, double chunks, double reduced) const {
    chain.messages += messages;
    chain.chunks += chunks;
    chain.reduced += reduced;
    chain.time = chain.messages * parameters_.alpha_s +
                 chain.chunks * chunk_ * parameters_.beta_s_per_byte +
                 chain.reduced * chunk_ * parameters_.gamma_s_per_byte;
    return chain;
  }

  void read(Cell cell, Chain& ready) const {
    const auto found = ready_.find(cell_key(schedule_, cell));
    if (found != ready_.end()) {
      extend(ready, found->second);
    }
  }

  // The target of a reduction is ready earlier: its rank received it through the same port.
  void write(const Move& move, const Chain& ready) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      ready_[cell_key(schedule_, {move.to, move.target, chunk})] = ready;
    }
  }

  const Schedule& schedule_;
  const double chunk_;
  const Parameters& parameters_;
  std::vector<Chain> out_;  // by rank: the end of what its port has taken on
  std::vector<Chain> in_;
  std::unordered_map<std::uint64_t, Chain> ready_;  // cells that have been written
  std::vector<Message> messages_;                   // of the step at hand
  std::vector<std::size_t> message_of_;             // of each of its moves
  std::unordered_map<std::uint64_t, std::size_t> places_;
};

// The moves of each step that has any, in order.
template <typename Visit>
void for_each_step(const Schedule& schedule, const Visit& visit) {
  const std::span<const Move> moves(schedule.moves);
  for (std::size_t first = 0; first < moves.size();) {
    std::size_t end = first + 1;
    while (end < moves.size() && moves[end].step == moves[first].step) {
      ++end;
    }
    visit(moves.subspan(first, end - first));
    first = end;
  }
}

}  // namespace

double chunk_bytes(const Schedule& schedule, double vector_bytes) {
  if (!moves_data(schedule.collective)) {
    return 0;
  }
  if (!schedule.counts.empty()) {
    return static_cast<double>(schedule.counts.element_bytes);
  }
  const bool pairs = cut_of(schedule.collective) == VectorCut::pairs;
  return vector_bytes * (pairs ? schedule.ranks : 1) / schedule.chunks;
}

Cost critical_path(const Schedule& schedule, double vector_bytes, const Parameters& parameters) {
  const double chunk = chunk_bytes(schedule, vector_bytes);
  Network network(schedule, chunk, parameters);
  for_each_step(schedule, [&](std::span<const Move> moves) { network.run_step(moves); });
  const Chain last = network.last();
  return {.messages = last.messages,
          .bytes = last.chunks * chunk,
          .reduced_bytes = last.reduced * chunk};
}

Traffic traffic(const Schedule& schedule, double vector_bytes) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  std::vector<double> sent(ranks);
  std::vector<double> received(ranks);
  std::vector<double> reduced(ranks);
  double total = 0;
  for (const Move& move : schedule.moves) {
    const auto length = static_cast<double>(length_of(schedule, move));
    if (move.combine == Combine::reduce) {
      reduced[static_cast<std::size_t>(move.to)] += length;
    }
    if (move.from != move.to) {
      const double coded = length * coded_share(move.code);
      sent[static_cast<std::size_t>(move.from)] += coded;
      received[static_cast<std::size_t>(move.to)] += coded;
      total += coded;
    }
  }
  const double chunk = chunk_bytes(schedule, vector_bytes);
  const auto most = [chunk](const std::vector<double>& chunks) {
    return chunk * *std::max_element(chunks.begin(), chunks.end());
  };
  return {.steps = schedule.steps,
          .sent_bytes = most(sent),
          .received_bytes = most(received),
          .reduced_bytes = most(reduced),
          .total_bytes = chunk * total};
}

}  // namespace unisono::network_model
