// Compares an algorithm's claims with a schedule.
#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "schedule/tree_order.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

using Mistake = Finding::Mistake;

Finding claim(Mistake mistake, std::vector<Finding::Argument> arguments) {
  return {.kind = Finding::Kind::claim, .mistake = mistake, .arguments = std::move(arguments)};
}

bool is_rank(const Schedule& schedule, int rank) {
  return rank >= 0 && rank < schedule.ranks;
}

// The lifetimes of chunks in scratch. A chunk lives from the step that writes it to the step that
// last reads it; a chunk that replaces another counts as a new one.
class ScratchUse {
 public:
  explicit ScratchUse(const Schedule& schedule)
      : steps_(static_cast<std::size_t>(schedule.steps) + 1),
        change_(static_cast<std::size_t>(std::max(0, schedule.ranks)) * steps_) {
    for (std::size_t begin = 0; begin < schedule.moves.size();) {
      std::size_t end = begin;
      while (end < schedule.moves.size() &&
             schedule.moves[end].step == schedule.moves[begin].step) {
        read(schedule.moves[end++]);
      }
      for (; begin < end; ++begin) {
        write(schedule.moves[begin]);
      }
    }
    for (const auto& [cell, life] : lives_) {
      close(cell, life);
    }
  }

  int most() const {
    int most = 0;
    for (std::size_t rank = 0; rank < change_.size() / steps_; ++rank) {
      int now = 0;
      for (std::size_t step = 0; step < steps_; ++step) {
        now += change_[rank * steps_ + step];
        most = std::max(most, now);
      }
    }
    return most;
  }

 private:
  struct Life {
    int first = 0;
    int last = 0;
  };

  static std::uint64_t key(int rank, int chunk) {
    return (static_cast<std::uint64_t>(rank) << 32) | static_cast<std::uint32_t>(chunk);
  }

  void use(int rank, int chunk, int step) {
    const auto life = lives_.find(key(rank, chunk));
    if (life != lives_.end()) {
      life->second.last = step;
    }
  }

  void read(const Move& move) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      if (move.source == Buffer::scratch) {
        use(move.from, chunk, move.step);
      }
      if (move.target == Buffer::scratch && move.combine == Combine::reduce) {
        use(move.to, chunk, move.step);
      }
    }
  }

  void write(const Move& move) {
    if (move.target != Buffer::scratch) {
      return;
    }
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      const Life born{.first = move.step, .last = move.step};
      const auto [life, is_new] = lives_.try_emplace(key(move.to, chunk), born);
      if (!is_new && move.combine == Combine::replace) {
        close(life->first, life->second);
        life->second = born;
      }
    }
  }

  void close(std::uint64_t cell, const Life& life) {
    const std::size_t rank = static_cast<std::size_t>(cell >> 32) * steps_;
    ++change_[rank + static_cast<std::size_t>(life.first)];
    --change_[rank + static_cast<std::size_t>(life.last)];
  }

  std::size_t steps_;
  std::vector<int> change_;  // [rank][step]: chunks more than after the step before
  std::unordered_map<std::uint64_t, Life> lives_;
};

bool is_in_range(const Schedule& schedule) {
  return std::all_of(schedule.moves.begin(), schedule.moves.end(), [&](const Move& move) {
    return is_rank(schedule, move.from) && is_rank(schedule, move.to) && move.step >= 0 &&
           move.step < schedule.steps;
  });
}

void check_sends(const Algorithm& algorithm, const Shape& shape, const Schedule& schedule,
                 std::vector<Finding>& findings) {
  std::vector<int> sent(static_cast<std::size_t>(std::max(0, schedule.ranks)));
  for (const Move& move : schedule.moves) {
    if (!is_rank(schedule, move.from) || !is_rank(schedule, move.to) || move.from == move.to) {
      continue;  // verify reports the first two; a local move has no edge
    }
    sent[static_cast<std::size_t>(move.from)] += move.chunks;
    const bool edge = algorithm.edge(shape, move.from, move.to);
    if (!edge || (algorithm.route != nullptr && !algorithm.route(shape, move))) {
      Finding finding = claim(edge ? Mistake::route : Mistake::edge,
                              {move.from, move.to, std::string(algorithm.name)});
      finding.step = move.step;
      finding.rank = move.from;
      finding.chunk = move.chunk;
      finding.line = move.line;
      findings.push_back(std::move(finding));
    }
  }
  const int most = sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
  if (algorithm.total_sent != nullptr) {
    const int total = std::accumulate(sent.begin(), sent.end(), 0);
    if (total != algorithm.total_sent(shape)) {
      findings.push_back(claim(Mistake::sent_by_all, {total, algorithm.total_sent(shape)}));
    }
  }
  const int claimed = algorithm.chunks_sent(shape);
  if (most != claimed) {
    findings.push_back(claim(Mistake::sent_by_one, {most, claimed}));
  }
}

}  // namespace

std::vector<Finding> verify_claims(const Algorithm& algorithm, const Schedule& schedule) {
  std::vector<Finding> findings;
  if (plain_form(schedule.collective) != algorithm.collective) {
    findings.push_back(claim(Mistake::collective, {std::string(to_string(schedule.collective)),
                                                   std::string(to_string(algorithm.collective))}));
  }
  Shape shape;
  try {
    shape = shape_of(algorithm, schedule);
  } catch (const Error&) {
    findings.push_back(claim(Mistake::name, {schedule.algorithm, std::string(algorithm.name)}));
    return findings;
  }
  const int steps = algorithm.steps(shape);
  if (schedule.steps != steps) {
    findings.push_back(claim(Mistake::steps, {schedule.steps, steps}));
  }
  check_sends(algorithm, shape, schedule, findings);
  if (algorithm.scratch_chunks != nullptr && is_in_range(schedule)) {
    const int most = ScratchUse(schedule).most();
    const int claimed = algorithm.scratch_chunks(shape);
    if (most != claimed) {
      findings.push_back(claim(Mistake::scratch, {most, claimed}));
    }
  }
  if (algorithm.name == kTreeOrder && is_in_range(schedule)) {
    const std::vector<Finding> sums =
        verify_tree_order(schedule, std::vector<int>(static_cast<std::size_t>(schedule.ranks), 1));
    findings.insert(findings.end(), sums.begin(), sums.end());
  }
  return findings;
}

}  // namespace unisono
