// Structure: checks the numbers of a schedule before other proofs follow data through it.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedule/cells.h"
#include "schedule/proofs.h"

namespace unisono {
namespace {

// With more cells, the proofs would take minutes and gigabytes.
constexpr std::int64_t kMostCells = std::int64_t{1} << 28;

using Mistake = Finding::Mistake;
using Arguments = std::vector<Finding::Argument>;

void wrong(Findings& findings, Mistake mistake, Arguments arguments = {}) {
  Finding finding;
  finding.mistake = mistake;
  finding.arguments = std::move(arguments);
  findings.add(std::move(finding));
}

void wrong_move(Findings& findings, const Move& move, int rank, Mistake mistake,
                Arguments arguments) {
  findings.add({.kind = Finding::Kind::structure,
                .mistake = mistake,
                .step = move.step,
                .rank = rank,
                .chunk = move.chunk,
                .line = move.line,
                .arguments = std::move(arguments)});
}

void check_shape(const Schedule& schedule, Findings& findings) {
  if (schedule.ranks < 1 || schedule.chunks < 1 || schedule.steps < 0) {
    wrong(findings, Mistake::shape, {schedule.ranks, schedule.chunks, schedule.steps});
    return;
  }
  if (schedule.root < 0 || schedule.root >= schedule.ranks ||
      (!is_rooted(schedule.collective) && schedule.root != 0)) {
    wrong(findings, Mistake::root, {schedule.root, schedule.ranks});
  }
  const std::int64_t ranks = schedule.ranks;
  const VectorCut cut = cut_of(schedule.collective);
  const std::int64_t unit = cut == VectorCut::none    ? 1
                            : cut == VectorCut::parts ? ranks
                                                      : ranks * ranks;
  if (schedule.chunks % unit != 0) {
    wrong(findings, Mistake::chunk_unit, {schedule.chunks, unit});
  }
  if (schedule.collective == Collective::barrier && schedule.chunks != 1) {
    wrong(findings, Mistake::barrier_chunks, {schedule.chunks});
  }
}

void check_phases(const Schedule& schedule, Findings& findings) {
  int after = 0;
  for (const Phase& phase : schedule.phases) {
    if (phase.first_step < after || phase.first_step >= schedule.steps) {
      wrong(findings, Mistake::phase_order, {phase.name, phase.first_step, schedule.steps});
    }
    after = phase.first_step;
  }
}

bool check_numbers(const Schedule& schedule, const Move& move, int least_step, Findings& findings) {
  const auto is_rank = [&schedule](int rank) { return rank >= 0 && rank < schedule.ranks; };
  if (!is_rank(move.from) || !is_rank(move.to)) {
    wrong_move(findings, move, -1, Mistake::move_ranks, {move.from, move.to, schedule.ranks});
    return false;
  }
  if (move.chunk < 0 || move.chunks < 1 || move.chunks > schedule.chunks - move.chunk) {
    wrong_move(findings, move, move.from, Mistake::move_chunks,
               {move.from, move.to, move.chunk, move.chunks, schedule.chunks});
    return false;
  }
  if (move.step < least_step || move.step >= schedule.steps) {
    wrong_move(findings, move, move.from, Mistake::move_step, {move.from, move.to, schedule.steps});
    return false;
  }
  return true;
}

void check_buffers(const Schedule& schedule, const Move& move, Findings& findings) {
  if (move.target == Buffer::input) {
    wrong_move(findings, move, move.to, Mistake::writes_input, {move.from, move.to});
    return;
  }
  if (move.combine == Combine::reduce && !reduces(schedule.collective) &&
      schedule.collective != Collective::barrier) {
    wrong_move(findings, move, move.to, Mistake::cannot_reduce,
               {move.from, move.to, std::string(to_string(schedule.collective))});
  }
  const bool rounds = move.code != MoveCode::none && move.combine == Combine::replace;
  if (move.from == move.to && move.source == move.target && !rounds) {
    wrong_move(findings, move, move.to, Mistake::onto_itself, {move.from, move.to});
  }
  const auto check_output = [&](Buffer buffer, int rank, int chunk) {
    if (buffer == Buffer::output && !needs_output(schedule, rank, chunk)) {
      wrong_move(findings, move, rank, Mistake::no_output, {chunk});
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
    wrong(findings, Mistake::too_large);
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
