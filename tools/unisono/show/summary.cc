// A schedule as counts: one line a step, or one step as a list of moves.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/target.h"
#include "cli/wrap.h"
#include "show/provenance.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

// The limits beyond which provenance is left out: its bytes, and the bytes that all steps examine.
constexpr std::uint64_t kMostShownBytes = 256'000'000;
constexpr std::uint64_t kMostWork = 4'000'000'000;
constexpr int kMostMoves = 64;  // listed for one step

const char* unit_of(const Schedule& schedule) {
  return schedule.counts.empty() ? "chunks" : "elements";
}

std::string move_line(const Schedule& schedule, const Move& move) {
  const std::string chunks = move.chunks == 1
                                 ? fmt::format("c{}", move.chunk)
                                 : fmt::format("c{}-c{}", move.chunk, move.chunk + move.chunks - 1);
  const std::int64_t count = length_of(schedule, move);
  const std::string length = schedule.counts.empty()
                                 ? std::string()
                                 : fmt::format("  {} element{}", count, count == 1 ? "" : "s");
  return fmt::format("  {} -> {}  {}{}{}{}\n", move.from, move.to, chunks, length,
                     move.combine == Combine::reduce ? "  reduce" : "",
                     move.line == 0 ? "" : fmt::format("  line {}", move.line));
}

std::string one_step(const Schedule& schedule, int step) {
  const auto moves = Provenance::moves_of(schedule, step);
  const std::string phase = phase_of(schedule, step);
  std::string text = fmt::format("{}  step {}/{}{}{}\n", head_of(schedule), step + 1,
                                 schedule.steps, phase.empty() ? "" : "  ", phase);
  for (std::size_t i = 0; i < moves.size() && i < kMostMoves; ++i) {
    text += move_line(schedule, moves[i]);
  }
  if (moves.size() > kMostMoves) {
    text += fmt::format("  ... and {} more; --json has all\n", moves.size() - kMostMoves);
  }
  return text;
}

// Returns the most chunks, or elements, that one rank sends in the step.
std::int64_t most_sent(const Schedule& schedule, std::span<const Move> moves) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(schedule.ranks));
  for (const Move& move : moves) {
    if (move.from != move.to) {
      sent[static_cast<std::size_t>(move.from)] += length_of(schedule, move);
    }
  }
  return *std::max_element(sent.begin(), sent.end());
}

// Consecutive steps with equal counts, and the number of complete results after the last one.
struct SummaryLine {
  int first = 0;
  int last = 0;
  std::string counts;
  std::string whole;
  std::string steps() const {
    return first == last ? fmt::format("{}", last) : fmt::format("{}-{}", first, last);
  }
};

}  // namespace

std::string head_of(const Schedule& schedule) {
  return fmt::format("{}  {} rank{}{}", title_of(schedule), schedule.ranks,
                     schedule.ranks == 1 ? "" : "s",
                     is_rooted(schedule.collective) ? fmt::format("  root {}", schedule.root) : "");
}

std::string phase_of(const Schedule& schedule, int step) {
  std::string name;
  for (const Phase& phase : schedule.phases) {
    if (phase.first_step <= step) {
      name = phase.name;
    }
  }
  return name;
}

std::string draw_summary(const Schedule& schedule, const ShowOptions& options,
                         const Console& console) {
  if (options.step >= 0) {
    return one_step(schedule, options.step);
  }
  std::size_t phases = 5;
  for (const Phase& phase : schedule.phases) {
    phases = std::max(phases, phase.name.size());
  }
  const std::size_t steps =
      std::max<std::size_t>(5, 2 * fmt::format("{}", schedule.steps).size() + 1);
  std::string text = fmt::format(
      "{}  {}  {} in {}\n{}\n{:>{}}  {:<{}}  {:>8}  {:>8}  {:>9}  {}\n",
      console.paint(Paint::strong, head_of(schedule)),
      times(static_cast<std::size_t>(schedule.chunks), "chunk"),
      times(schedule.moves.size(), "move"), times(static_cast<std::size_t>(schedule.steps), "step"),
      schedule.counts.empty() ? "" : draw_counts(schedule.counts, options.width, console), "step",
      steps, "phase", phases, "moves", unit_of(schedule), "most/rank", "results whole after");
  const std::uint64_t bytes = Provenance::cost_bytes(schedule);
  const bool follow =
      bytes <= kMostShownBytes && bytes * static_cast<std::uint64_t>(schedule.steps) <= kMostWork;
  std::vector<Provenance> state;  // none or one
  if (follow) {
    state.emplace_back(schedule);
  }
  const std::int64_t needed = follow ? state.front().needed() : 0;
  std::vector<SummaryLine> lines;
  for (int step = 0; step < schedule.steps; ++step) {
    const auto moves = Provenance::moves_of(schedule, step);
    std::int64_t chunks = 0;  // or elements
    for (const Move& move : moves) {
      chunks += length_of(schedule, move);
    }
    std::string whole = "-";
    if (follow) {
      state.front().advance();
      whole = fmt::format("{}/{}", state.front().whole(), needed);
    }
    SummaryLine line{
        .first = step + 1,
        .last = step + 1,
        .counts = fmt::format("{:<{}}  {:>8}  {:>8}  {:>9}", phase_of(schedule, step), phases,
                              moves.size(), chunks, most_sent(schedule, moves)),
        .whole = whole};
    if (!lines.empty() && lines.back().counts == line.counts) {
      line.first = lines.back().first;
      lines.back() = line;
    } else {
      lines.push_back(line);
    }
  }
  for (const SummaryLine& line : lines) {
    text += fmt::format("{:>{}}  {}  {}\n", line.steps(), steps, line.counts, line.whole);
  }
  if (!console.quiet()) {
    text += console.paint(
        Paint::dim,
        fmt::format("strips need more than {} columns; --step K lists the moves of one step",
                    options.width));
    text += "\n";
  }
  return text;
}

}  // namespace unisono::cli
