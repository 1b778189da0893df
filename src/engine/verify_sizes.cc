#include "engine/verify_sizes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/layout.h"
#include "schedule/findings.h"

namespace unisono::engine {
namespace {

using Mistake = Finding::Mistake;

class Proof {
 public:
  explicit Proof(const Schedule& schedule)
      : schedule_(schedule),
        counts_(schedule.counts),
        pieces_(schedule.chunks / (schedule.ranks * schedule.ranks)) {}

  std::vector<Finding> run() && {
    check_moves();
    for (int rank = 0; rank < schedule_.ranks && !findings_.full(); ++rank) {
      check_rank(rank);
    }
    return std::move(findings_).take();
  }

 private:
  struct Block {
    int from = 0;
    int to = 0;
  };
  Block block_of(int chunk) const {
    const int block = chunk / pieces_;
    return {block / schedule_.ranks, block % schedule_.ranks};
  }

  // Finds moves that involve a rank at neither end of a block. Such a rank would lay the block out
  // without bytes and forward nothing.
  void check_moves() {
    for (const Move& move : schedule_.moves) {
      for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
        const Block block = block_of(chunk);
        for (const int rank : {move.from, move.to}) {
          if (rank != block.from && rank != block.to && counts_.sent(block.from, block.to) > 0) {
            findings_.add({.kind = Finding::Kind::sizes,
                           .mistake = Mistake::size_unknown,
                           .step = move.step,
                           .rank = rank,
                           .chunk = chunk,
                           .line = move.line,
                           .arguments = {block.from, block.to}});
          }
        }
        if (findings_.full()) {
          return;
        }
      }
    }
  }

  // Compares one rank's layout, computed as in its call, with the sizes that the other ends send
  // and with the sums of the preceding blocks.
  void check_rank(int rank) {
    const auto n = static_cast<std::size_t>(schedule_.ranks);
    std::vector<std::size_t> send(n);
    std::vector<std::size_t> expected(n);
    for (std::size_t other = 0; other < n; ++other) {
      send[other] = static_cast<std::size_t>(counts_.sent(rank, static_cast<int>(other)));
      expected[other] = static_cast<std::size_t>(counts_.expected(rank, static_cast<int>(other)));
    }
    const auto places = lay_out(schedule_, rank,
                                {.element = static_cast<std::size_t>(counts_.element_bytes),
                                 .counts = send,
                                 .recv_counts = expected});
    std::size_t input = 0;
    std::size_t output = 0;
    for (int other = 0; other < schedule_.ranks && !findings_.full(); ++other) {
      check_block({rank, other}, rank, places, &ChunkPlace::input, input);
      check_block({other, rank}, rank, places, &ChunkPlace::output, output);
    }
  }

  // Checks that the pieces of a block follow each other from `place` on. Advances `place` to the
  // block's end.
  void check_block(Block block, int rank, const std::vector<ChunkPlace>& places,
                   std::size_t ChunkPlace::* offset, std::size_t& place) {
    const int first = (block.from * schedule_.ranks + block.to) * pieces_;
    std::size_t bytes = 0;
    for (int chunk = first; chunk < first + pieces_; ++chunk) {
      const ChunkPlace& found = places[static_cast<std::size_t>(chunk)];
      if (found.*offset != place + bytes) {
        findings_.add({.kind = Finding::Kind::sizes,
                       .mistake = Mistake::block_place,
                       .rank = rank,
                       .chunk = chunk,
                       .arguments = {block.from, block.to, as_number(found.*offset),
                                     as_number(place + bytes)}});
        break;
      }
      bytes += found.bytes;
    }
    if (offset == &ChunkPlace::output) {
      check_count(block);
    }
    // Later blocks are checked relative to the end that this rank computes for this block.
    const std::int64_t count = rank == block.from && offset == &ChunkPlace::input
                                   ? counts_.sent(block.from, block.to)
                                   : counts_.expected(block.to, block.from);
    place += static_cast<std::size_t>(count * counts_.element_bytes);
  }

  void check_count(Block block) {
    const std::int64_t sent = counts_.sent(block.from, block.to);
    const std::int64_t expected = counts_.expected(block.to, block.from);
    if (sent != expected) {
      findings_.add({.kind = Finding::Kind::sizes,
                     .mistake = Mistake::counts_differ,
                     .rank = block.to,
                     .chunk = (block.from * schedule_.ranks + block.to) * pieces_,
                     .arguments = {block.from, block.to, sent, expected}});
    }
  }

  static std::int64_t as_number(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

  const Schedule& schedule_;
  const Counts& counts_;
  int pieces_;  // of a block
  Findings findings_;
};

}  // namespace

std::vector<Finding> verify_sizes(const Schedule& schedule) {
  return Proof(schedule).run();
}

std::vector<Finding> verify_with_sizes(const Schedule& schedule) {
  std::vector<Finding> findings = verify(schedule);
  const bool is_sound = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.kind == Finding::Kind::structure;
  });
  if (!schedule.counts.empty() && is_sound) {
    const std::vector<Finding> sizes = verify_sizes(schedule);
    findings.insert(findings.end(), sizes.begin(), sizes.end());
  }
  return findings;
}

}  // namespace unisono::engine
