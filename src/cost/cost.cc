#include "cost/cost.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include "cost/play.h"

namespace unisono::cost {
namespace {

// A chain of messages, counted in whole chunks (or elements, see chunk_bytes), so that sums are
// exact.
struct Chain {
  double messages = 0;
  double chunks = 0;
  double reduced = 0;
  double time = 0;
};

// Ties go to the chain with more messages, then to the one with more reduced bytes.
bool later(const Chain& a, const Chain& b) {
  return std::tie(a.time, a.messages, a.reduced) > std::tie(b.time, b.messages, b.reduced);
}

void extend(Chain& chain, const Chain& other) {
  if (later(other, chain)) {
    chain = other;
  }
}

class Network {
 public:
  Network(const Schedule& schedule, double chunk, const Parameters& parameters)
      : chunk_(chunk),
        parameters_(parameters),
        out_(static_cast<std::size_t>(schedule.ranks)),
        in_(out_.size()) {}

  // Returns when the message's data is ready at the receiver.
  Chain deliver(const JoinedMessage& message, Chain end) {
    Chain& out = out_[static_cast<std::size_t>(message.from)];
    Chain& in = in_[static_cast<std::size_t>(message.to)];
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
    return end;
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
  Chain advance(Chain chain, double messages, double chunks, double reduced) const {
    chain.messages += messages;
    chain.chunks += chunks;
    chain.reduced += reduced;
    chain.time = chain.messages * parameters_.alpha_s +
                 chain.chunks * chunk_ * parameters_.beta_s_per_byte +
                 chain.reduced * chunk_ * parameters_.gamma_s_per_byte;
    return chain;
  }

  const double chunk_;
  const Parameters& parameters_;
  std::vector<Chain> out_;  // by rank: when its port is free again
  std::vector<Chain> in_;
};

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
  MessagePlayer<Chain>(schedule).run([&](const JoinedMessage& message, const Chain& ready) {
    return network.deliver(message, ready);
  });
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

}  // namespace unisono::cost
