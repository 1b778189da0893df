#include "schedule/tree_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace unisono {
namespace {

// Sums as numbers: two sums have the same number exactly if they are the same expression.
class Expressions {
 public:
  int leaf(int index) { return find({-1, index}); }
  int sum(int a, int b) { return find(std::minmax(a, b)); }
  int tree(int first, int end) {
    if (end - first == 1) {
      return leaf(first);
    }
    int half = 1;
    while (half < end - first - half) {
      half *= 2;
    }
    const int left = tree(first, first + half);
    return sum(left, tree(first + half, end));
  }
  // Returns a text such as "(0+1)+(2+3)", shortened to fit into a line.
  std::string text(int number) const {
    constexpr std::size_t kLongest = 60;
    std::string text;
    append(number, text, kLongest);
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
  }

 private:
  int find(std::pair<int, int> key) {
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<int>(terms_.size()));
    if (is_new) {
      terms_.push_back(key);
    }
    return found->second;
  }
  void append(int number, std::string& text, std::size_t longest) const {
    if (text.size() > longest) {
      return;
    }
    const auto [a, b] = terms_[static_cast<std::size_t>(number)];
    if (a < 0) {
      text += std::to_string(b);
      return;
    }
    const auto append_term = [&](int term) {
      const bool is_sum = terms_[static_cast<std::size_t>(term)].first >= 0;
      text += is_sum ? "(" : "";
      append(term, text, longest);
      text += is_sum ? ")" : "";
    };
    append_term(a);
    text += "+";
    append_term(b);
  }

  std::map<std::pair<int, int>, int> numbers_;
  std::vector<std::pair<int, int>> terms_;  // of each number; {-1, i}: leaf i
};

class TreeFlow {
 public:
  TreeFlow(const Schedule& schedule, std::span<const int> leaves) : schedule_(schedule) {
    int next = 0;
    for (const int count : leaves) {
      inputs_.push_back(expressions_.tree(next, next + count));
      next += count;
    }
    leaves_ = next;
    whole_ = expressions_.tree(0, next);
  }

  void run() {
    struct Write {
      std::size_t cell = 0;
      int sum = 0;
    };
    std::vector<Write> writes;
    for (std::size_t begin = 0; begin < schedule_.moves.size();) {
      writes.clear();  // a step reads before it writes
      const int step = schedule_.moves[begin].step;
      for (; begin < schedule_.moves.size() && schedule_.moves[begin].step == step; ++begin) {
        const Move& move = schedule_.moves[begin];
        for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
          const int source = read(move.from, move.source, chunk);
          writes.push_back(
              {.cell = cell(move.to, move.target, chunk),
               .sum = move.combine == Combine::replace
                          ? source
                          : expressions_.sum(read(move.to, move.target, chunk), source)});
        }
      }
      for (const Write& write : writes) {
        cells_.insert_or_assign(write.cell, write.sum);
      }
    }
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> findings;
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (needs_output(schedule_, rank, chunk) && read(rank, Buffer::output, chunk) != whole_) {
          findings.push_back({.kind = Finding::Kind::claim,
                              .mistake = Finding::Mistake::order,
                              .rank = rank,
                              .chunk = chunk,
                              .arguments = {expressions_.text(read(rank, Buffer::output, chunk)),
                                            std::int64_t{leaves_}}});
        }
      }
    }
    return findings;
  }

 private:
  int read(int rank, Buffer buffer, int chunk) const {
    const auto found =
        buffer == Buffer::input ? cells_.end() : cells_.find(cell(rank, buffer, chunk));
    return found == cells_.end() ? inputs_[static_cast<std::size_t>(rank)] : found->second;
  }

  std::size_t cell(int rank, Buffer buffer, int chunk) const {
    const std::size_t place =
        static_cast<std::size_t>(rank) * static_cast<std::size_t>(schedule_.chunks) +
        static_cast<std::size_t>(chunk);
    return place * 2 + (buffer == Buffer::scratch ? 1 : 0);
  }

  const Schedule& schedule_;
  Expressions expressions_;
  std::vector<int> inputs_;  // by rank
  int leaves_ = 0;
  int whole_ = 0;
  std::unordered_map<std::size_t, int> cells_;  // what was written
};

}  // namespace

std::vector<Finding> verify_tree_order(const Schedule& schedule, std::span<const int> leaves) {
  if (!reduces(schedule.collective)) {
    return {};
  }
  TreeFlow flow(schedule, leaves);
  flow.run();
  return flow.findings();
}

bool sums_in_tree_order(const Schedule& schedule, std::span<const int> leaves) {
  return verify_tree_order(schedule, leaves).empty();
}

bool sums_in_tree_order(const Schedule& schedule) {
  return sums_in_tree_order(schedule,
                            std::vector<int>(static_cast<std::size_t>(schedule.ranks), 1));
}

}  // namespace unisono
