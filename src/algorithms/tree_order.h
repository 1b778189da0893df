// Sums over a fixed tree of the ranks: tree(a, b) = tree(a, m) + tree(m, b), where m - a is the
// largest power of two below b - a. The sum is tree(0, n).
//
// The ranks form blocks, one for each bit of n, the largest first: 7 ranks are [0, 4), [4, 6) and
// [6, 7). Inside a block, ranks exchange with partners at distance 1, 2, 4, ... After the step with
// distance d, the partial sums of chunk c are on the block's ranks r with r mod 2d = c mod 2d. Then
// the blocks join, the last two first, as tree(0, n) requires. A block sends its sums of the later
// blocks' chunks to the ranks of these chunks, and receives the sums of all other chunks from the
// next block. So every rank sends each chunk except its own exactly once, and chunk c ends at
// rank c.
#pragma once

#include <algorithm>
#include <source_location>
#include <tuple>
#include <vector>

#include "algorithms/shapes.h"

namespace unisono::algorithms {

// Chunks first, first + stride, ... below `end`.
struct TreeMessage {
  int step = 0;
  int from = 0;
  int to = 0;
  int first = 0;
  int stride = 1;
  int end = 0;

  constexpr int count() const { return first < end ? (end - first - 1) / stride + 1 : 0; }
};

struct TreeBlock {
  int first = 0;
  int size = 1;

  constexpr int end() const { return first + size; }
  constexpr int holder(int chunk) const { return first + chunk % size; }
};

// The block of a rank. REQUIRES: rank < ranks.
constexpr TreeBlock tree_block(int ranks, int rank) {
  TreeBlock block{.size = floor_power_of_two(ranks)};
  while (rank >= block.end()) {
    block = {.first = block.end(), .size = floor_power_of_two(ranks - block.end())};
  }
  return block;
}

// Returns the messages that bring the sum of chunk c to rank c, ordered by step, then by sender.
inline std::vector<TreeMessage> tree_messages(int ranks) {
  std::vector<TreeMessage> messages;
  std::vector<TreeBlock> blocks;
  for (int next = 0; next < ranks; next = blocks.back().end()) {
    blocks.push_back(tree_block(ranks, next));
  }
  for (const TreeBlock& block : blocks) {
    for (int distance = 1; distance < block.size; distance *= 2) {
      for (int rank = block.first; rank < block.end(); ++rank) {
        const int partner = rank ^ distance;
        messages.push_back({.step = floor_log2(distance),
                            .from = rank,
                            .to = partner,
                            .first = partner % (2 * distance),
                            .stride = 2 * distance,
                            .end = ranks});
      }
    }
  }
  int done = floor_log2(blocks.back().size);  // steps until the later blocks have joined
  for (std::size_t i = blocks.size() - 1; i-- > 0;) {
    const TreeBlock& left = blocks[i];
    const TreeBlock& right = blocks[i + 1];
    const int step = std::max(done, floor_log2(left.size));
    for (int chunk = 0; chunk < left.size; ++chunk) {
      messages.push_back({.step = step,
                          .from = right.holder(chunk),
                          .to = left.holder(chunk),
                          .first = chunk,
                          .stride = left.size,
                          .end = right.first});
    }
    for (int chunk = right.first; chunk < ranks; ++chunk) {
      messages.push_back({.step = step,
                          .from = left.holder(chunk),
                          .to = chunk,
                          .first = chunk,
                          .end = chunk + 1});
    }
    done = step + 1;
  }
  std::sort(messages.begin(), messages.end(), [](const TreeMessage& a, const TreeMessage& b) {
    return std::tie(a.step, a.from, a.to) < std::tie(b.step, b.from, b.to);
  });
  return messages;
}

// Returns the same messages in reverse: every rank gets every chunk from the rank to which it sent
// the chunk.
inline std::vector<TreeMessage> backwards(std::vector<TreeMessage> messages, int ranks) {
  for (TreeMessage& message : messages) {
    message.step = ceil_log2(ranks) - 1 - message.step;
    std::swap(message.from, message.to);
  }
  std::sort(messages.begin(), messages.end(), [](const TreeMessage& a, const TreeMessage& b) {
    return std::tie(a.step, a.from, a.to) < std::tie(b.step, b.from, b.to);
  });
  return messages;
}

// Returns true if `from` may send partial sums to `to`.
constexpr bool is_tree_order_edge(int ranks, int from, int to) {
  const TreeBlock sender = tree_block(ranks, from);
  const TreeBlock receiver = tree_block(ranks, to);
  if (sender.first == receiver.first) {
    return is_power_of_two(from ^ to);
  }
  return sender.first < receiver.first
             ? sender.holder(to) == from
             : receiver.end() == sender.first && sender.holder(to) == from;
}

// Returns true if the partial sums of a chunk may go this way.
constexpr bool is_tree_order_route(int ranks, int from, int to, int chunk) {
  const TreeBlock sender = tree_block(ranks, from);
  const TreeBlock receiver = tree_block(ranks, to);
  if (sender.first == receiver.first) {
    const int both = 2 * (from ^ to);
    return chunk % both == to % both;
  }
  return sender.holder(chunk) == from &&
         (sender.first < receiver.first ? chunk == to
                                        : chunk < sender.first && receiver.holder(chunk) == to);
}

// `name_of` returns the number of a chunk in the schedule. Chunks with neighbouring numbers go in
// one move.
template <typename Name>
void add_tree_messages(ScheduleBuilder& schedule, const std::vector<TreeMessage>& messages,
                       Combine combine, const Name& name_of,
                       std::source_location where = std::source_location::current()) {
  int step = -1;
  std::vector<int> chunks;
  for (const TreeMessage& message : messages) {
    for (; step < message.step; ++step) {
      schedule.step();
    }
    chunks.clear();
    for (int chunk = message.first; chunk < message.end; chunk += message.stride) {
      chunks.push_back(name_of(chunk));
    }
    std::sort(chunks.begin(), chunks.end());
    for (std::size_t begin = 0; begin < chunks.size();) {
      std::size_t end = begin + 1;
      while (end < chunks.size() && chunks[end] == chunks[end - 1] + 1) {
        ++end;
      }
      schedule.move({.from = message.from,
                     .to = message.to,
                     .chunk = chunks[begin],
                     .chunks = static_cast<int>(end - begin),
                     .combine = combine},
                    where);
      begin = end;
    }
  }
}

// Plays messages on a one-port network (cost/cost.h), for numbers of ranks without a short formula.
class TreeOrderTime {
 public:
  TreeOrderTime(int ranks, const CostTerms& terms)
      : terms_(terms),
        share_(1.0 / ranks),
        out_(static_cast<std::size_t>(ranks)),
        in_(out_.size()) {}

  void play(const std::vector<TreeMessage>& messages, Combine combine) {
    const double gamma = combine == Combine::reduce ? terms_.gamma : 0;
    int step = -1;
    std::vector<double> ready;  // a message sends what earlier steps left
    for (const TreeMessage& message : messages) {
      if (message.step != step) {
        step = message.step;
        ready = in_;
      }
      const auto from = static_cast<std::size_t>(message.from);
      const auto to = static_cast<std::size_t>(message.to);
      const double share = message.count() * share_;
      const double sent =
          std::max({ready[from], out_[from], in_[to]}) + terms_.alpha + share * terms_.beta;
      out_[from] = sent;
      in_[to] = sent + share * gamma;
    }
  }

  double last() const {
    return std::max(*std::max_element(out_.begin(), out_.end()),
                    *std::max_element(in_.begin(), in_.end()));
  }

 private:
  CostTerms terms_;
  double share_;  // of the vector, one chunk
  std::vector<double> out_;
  std::vector<double> in_;
};

}  // namespace unisono::algorithms
