// Structure: the numbers of a schedule, before anything is followed through it.
#include <algorithm>
#include <cstdint>
#include <string>

#include "schedule/cells.h"
#include "schedule/proofs.h"

namespace unisono {
namespace {

// Above this the proofs would take minutes and gigabytes.
constexpr std::int64_t kMostCells = std::int64_t{1} << 28;

void wrong(Findings& findings, std::string text) {
  Finding finding;
  finding.text = std::move(text);
  findings.add(std::move(finding));
}

void wrong_move(Findings& findings, const Move& move, int rank, const std::string& what) {
  Finding finding;
  finding.step = move.step;
  finding.rank = rank;
  finding.chunk = move.chunk;
  finding.line = move.line;
  finding.text = "step " + std::to_string(move.step) + ": " + what;
  findings.add(std::move(finding));
}

std::string move_text(const Move& move) {
  return "move " + std::to_string(move.from) + "->" + std::to_string(move.to);
}

void check_shape(const Schedule& schedule, Findings& findings) {
  if (schedule.ranks < 1 || schedule.chunks < 1 || schedule.steps < 0) {
    wrong(findings, "shape: " + std::to_string(schedule.ranks) + " ranks, " +
                        std::to_string(schedule.chunks) + " chunks, " +
                        std::to_string(schedule.steps) + " steps");
    return;
  }
  if (schedule.root < 0 || schedule.root >= schedule.ranks ||
      (!is_rooted(schedule.collective) && schedule.root != 0)) {
    wrong(findings, "shape: root " + std::to_string(schedule.root) + " of " +
                        std::to_string(schedule.ranks) + " ranks");
  }
  const std::int64_t ranks = schedule.ranks;
  const Cut cut = cut_of(schedule.collective);
  const std::int64_t unit = cut == Cut::none ? 1 : cut == Cut::parts ? ranks : ranks * ranks;
  if (schedule.chunks % unit != 0) {
    wrong(findings, "shape: " + std::to_string(schedule.chunks) + " chunks are no multiple of " +
                        std::to_string(unit));
  }
  if (schedule.collective == Collective::barrier && schedule.chunks != 1) {
    wrong(findings, "shape: a barrier has 1 chunk, not " + std::to_string(schedule.chunks));
  }
}

void check_phases(const Schedule& schedule, Findings& findings) {
  int after = 0;
  for (const Phase& phase : schedule.phases) {
    if (phase.first_step < after || phase.first_step >= schedule.steps) {
      wrong(findings, "phase " + phase.name + ": first step " + std::to_string(phase.first_step) +
                          " is out of order or beyond the " + std::to_string(schedule.steps) +
                          " steps");
    }
    after = phase.first_step;
  }
}

bool check_numbers(const Schedule& schedule, const Move& move, int least_step, Findings& findings) {
  const auto is_rank = [&schedule](int rank) { return rank >= 0 && rank < schedule.ranks; };
  if (!is_rank(move.from) || !is_rank(move.to)) {
    wrong_move(findings, move, -1,
               move_text(move) + ": there are " + std::to_string(schedule.ranks) + " ranks");
    return false;
  }
  if (move.chunk < 0 || move.chunks < 1 || move.chunks > schedule.chunks - move.chunk) {
    wrong_move(findings, move, move.from,
               move_text(move) + ": chunks " + std::to_string(move.chunk) + "+" +
                   std::to_string(move.chunks) + " of " + std::to_string(schedule.chunks));
    return false;
  }
  if (move.step < least_step || move.step >= schedule.steps) {
    wrong_move(findings, move, move.from,
               move_text(move) + ": step is out of order or beyond the " +
                   std::to_string(schedule.steps) + " steps");
    return false;
  }
  return true;
}

void check_buffers(const Schedule& schedule, const Move& move, Findings& findings) {
  if (move.target == Buffer::input) {
    wrong_move(findings, move, move.to, move_text(move) + " writes the input");
    return;
  }
  if (move.combine == Combine::reduce && !reduces(schedule.collective) &&
      schedule.collective != Collective::barrier) {
    wrong_move(findings, move, move.to,
               move_text(move) + " reduces, but " + std::string(to_string(schedule.collective)) +
                   " does not");
  }
  if (move.from == move.to && move.source == move.target) {
    wrong_move(findings, move, move.to, move_text(move) + " moves cells onto themselves");
  }
  const auto check_output = [&](Buffer buffer, int rank, int chunk) {
    if (buffer == Buffer::output && !needs_output(schedule, rank, chunk)) {
      wrong_move(findings, move, rank,
                 "rank " + std::to_string(rank) + " has no output chunk " + std::to_string(chunk));
      return false;
    }
    return true;
  };
  for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
    if (!check_output(move.source, move.from, chunk) ||
        !check_output(move.target, move.to, chunk)) {
      return;
    }
  }
}

}  // namespace

void check_structure(const Schedule& schedule, Findings& findings) {
  check_shape(schedule, findings);
  if (!findings.empty()) {
    return;
  }
  std::int64_t cells = 0;
  for (const Move& move : schedule.moves) {
    cells += std::max(0, std::min(move.chunks, schedule.chunks));
  }
  if (cells > kMostCells) {
    wrong(findings, "shape: more than 2^28 chunks are moved: too large to verify");
    return;
  }
  check_phases(schedule, findings);
  int step = 0;
  for (const Move& move : schedule.moves) {
    if (findings.full()) {
      return;
    }
    if (!check_numbers(schedule, move, step, findings)) {
      continue;
    }
    step = move.step;
    check_buffers(schedule, move, findings);
  }
}

}  // namespace unisono
