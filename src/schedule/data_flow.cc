// Data flow, one chunk at a time: data moves only within its chunk, so the chunks are independent,
// and the state of one chunk is small.
//
// The contents of a cell are counters: how often each rank's contribution is in the cell. Counters
// stop at 255. If only one rank has the chunk as input, a cell can hold only this rank's
// contribution, and one counter is enough.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/cells.h"
#include "schedule/final_state.h"
#include "schedule/moves_by_chunk.h"
#include "schedule/proofs.h"

namespace unisono {
namespace {

using Count = std::uint8_t;
constexpr unsigned kMostCount = 255;

class Fnv {
 public:
  void add(Count byte) {
    constexpr std::uint32_t kPrime = 16777619;
    value_ = (value_ ^ byte) * kPrime;
  }
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 2166136261;
};

// These loops over all counters of a cell have no branch, so that compilers vectorize them.
bool share_a_rank(std::span<const Count> one, std::span<const Count> other) {
  unsigned shared = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    shared |= static_cast<unsigned>(one[i] == 1) & static_cast<unsigned>(other[i] == 1);
  }
  return shared != 0;
}

void add(std::span<const Count> counts, std::span<Count> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const unsigned count = static_cast<unsigned>(sum[i]) + counts[i];
    sum[i] = static_cast<Count>(std::min(count, kMostCount));
  }
}

class ChunkFlow {
 public:
  ChunkFlow(const Schedule& schedule, Findings& findings)
      : schedule_(schedule),
        findings_(findings),
        by_chunk_(moves_by_chunk(schedule)),
        counts_everyone_(reduces(schedule.collective) ||
                         schedule.collective == Collective::barrier),
        everyone_contributes_(!is_scan(schedule.collective)),
        width_(counts_everyone_ ? static_cast<std::size_t>(schedule.ranks) : 1),
        written_(2 * static_cast<std::size_t>(schedule.ranks), false),
        written_in_(written_.size(), -1),
        cells_(written_.size() * width_, 0),
        nothing_(width_, 0),
        own_(width_, 0) {}

  // Adds the final contents of the chunk's cells to `state`, if it is given.
  void run(int chunk, Fnv* state = nullptr) {
    chunk_ = chunk;
    const Moves moves = std::as_const(by_chunk_).of(static_cast<std::size_t>(chunk));
    for_steps(moves, [this](Moves step) { run_step(step); });
    check_end();
    if (state != nullptr) {
      add_to(*state);
    }
    for (const Move* const move : moves) {  // ready for the next chunk
      written_[slot(move->to, move->target)] = false;
      written_in_[slot(move->to, move->target)] = -1;
    }
  }

 private:
  using Contents = std::span<Count>;

  static std::size_t slot(int rank, Buffer buffer) {
    return 2 * static_cast<std::size_t>(rank) + (buffer == Buffer::scratch ? 1 : 0);
  }
  Contents contents(std::size_t slot) { return Contents(cells_).subspan(slot * width_, width_); }

  // All reads of a step come before all its writes, so the results wait in `results_`.
  void run_step(Moves moves) {
    results_.clear();
    targets_.clear();
    for (const Move* const move : moves) {
      const Move& each = *move;
      const std::size_t target = slot(each.to, each.target);
      if (written_in_[target] == each.step) {
        blame(each, Finding::Kind::hazard, each.to, Finding::Mistake::two_writes,
              std::string(to_string(each.target)));
        continue;
      }
      written_in_[target] = each.step;
      targets_.push_back(target);
      result(each);
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      written_[targets_[i]] = true;
      std::copy_n(results_.begin() + static_cast<std::ptrdiff_t>(i * width_), width_,
                  contents(targets_[i]).begin());
    }
  }

  // Appends the contents that the move produces.
  void result(const Move& each) {
    const Contents source = read(each.from, each.source, each);
    const std::size_t at = results_.size();
    results_.insert(results_.end(), source.begin(), source.end());
    if (each.combine == Combine::replace) {
      return;
    }
    const Contents target = read(each.to, each.target, each);
    const Contents sum = Contents(results_).subspan(at);
    if (schedule_.collective != Collective::barrier && share_a_rank(sum, target)) {
      for (std::size_t i = 0; i < width_; ++i) {
        if (sum[i] == 1 && target[i] == 1) {
          blame(each, Finding::Kind::data_flow, each.to, Finding::Mistake::counted_twice,
                static_cast<int>(i));
        }
      }
    }
    add(target, sum);
  }

  // Returns the contents of a cell as a reader sees them. Valid until the next call.
  Contents read(int rank, Buffer buffer, const Move& reader) {
    if (buffer != Buffer::input && written_[slot(rank, buffer)]) {
      return contents(slot(rank, buffer));
    }
    if (has_input(schedule_, rank, chunk_)) {
      return own(rank);
    }
    blame(reader, Finding::Kind::hazard, rank,
          buffer == Buffer::input ? Finding::Mistake::no_input : Finding::Mistake::reads_unwritten,
          std::string(to_string(buffer)));
    return nothing_;
  }

  Contents own(int rank) {
    std::fill(own_.begin(), own_.end(), Count{0});
    own_[counts_everyone_ ? static_cast<std::size_t>(rank) : 0] = 1;
    return own_;
  }

  void add_to(Fnv& state) {
    for (std::size_t slot = 0; slot < written_.size(); ++slot) {
      state.add(written_[slot] ? 1 : 0);
      if (written_[slot]) {
        for (const Count count : contents(slot)) {
          state.add(count);
        }
      }
    }
  }

  void check_end() {
    const RankRange needing = output_ranks(schedule_, chunk_);
    for (int rank = needing.first; needing.has(rank) && !findings_.full(); ++rank) {
      const std::size_t output = slot(rank, Buffer::output);
      if (written_[output]) {
        check_contents(rank, contents(output));
      } else {
        check_contents(rank, has_input(schedule_, rank, chunk_) ? own(rank) : Contents(nothing_));
      }
    }
  }

  void check_contents(int rank, Contents found) {
    if (everyone_contributes_ && std::memchr(found.data(), 0, found.size()) == nullptr) {
      return;
    }
    std::vector<Finding::Argument> missing;
    std::vector<Finding::Argument> others;
    for (std::size_t i = 0; i < width_; ++i) {
      const int from = static_cast<int>(i);
      const bool belongs = !counts_everyone_ || contributes(schedule_.collective, from, rank);
      if (belongs != (found[i] != 0)) {
        (belongs ? missing : others).emplace_back(counts_everyone_ ? from : owner());
      }
    }
    say(rank, Finding::Mistake::lacks, std::move(missing));
    say(rank, Finding::Mistake::has_others, std::move(others));
  }

  void say(int rank, Finding::Mistake mistake, std::vector<Finding::Argument> ranks) {
    if (!ranks.empty()) {
      findings_.add({.kind = Finding::Kind::data_flow,
                     .mistake = mistake,
                     .rank = rank,
                     .chunk = chunk_,
                     .arguments = std::move(ranks)});
    }
  }

  int owner() const { return input_ranks(schedule_, chunk_).first; }

  void blame(const Move& each, Finding::Kind kind, int rank, Finding::Mistake mistake,
             Finding::Argument argument) {
    findings_.add({.kind = kind,
                   .mistake = mistake,
                   .step = each.step,
                   .rank = rank,
                   .chunk = chunk_,
                   .line = each.line,
                   .arguments = {std::move(argument)}});
  }

  const Schedule& schedule_;
  Findings& findings_;
  Grouped<const Move*> by_chunk_;
  bool counts_everyone_;
  bool everyone_contributes_;
  std::size_t width_;            // counts a cell
  std::vector<bool> written_;    // by slot: outputs and scratch of all ranks
  std::vector<int> written_in_;  // by slot: the last step that wrote it
  std::vector<Count> cells_;     // by slot
  std::vector<Count> nothing_;   // what a cell that cannot be read holds
  std::vector<Count> own_;       // a rank's own contribution
  std::vector<Count> results_;   // of the moves of one step
  std::vector<std::size_t> targets_;
  int chunk_ = 0;
};

}  // namespace

void check_data_flow(const Schedule& schedule, Findings& findings) {
  ChunkFlow flow(schedule, findings);
  for (int chunk = 0; chunk < schedule.chunks && !findings.full(); ++chunk) {
    flow.run(chunk);
  }
}

std::uint32_t final_state_hash(const Schedule& schedule) {
  Findings nobody_reads;
  ChunkFlow flow(schedule, nobody_reads);
  Fnv state;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    flow.run(chunk, &state);
  }
  return state.value();
}

std::string final_state_text(const Schedule& schedule) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::uint32_t hash = final_state_hash(schedule);
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) {
    text += kDigits[(hash >> static_cast<unsigned>(shift)) & 15U];
  }
  return text;
}

}  // namespace unisono
