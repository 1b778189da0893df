// In place, an output lies on the input of its rank, and writing the one destroys the other.
// Contributions can then differ from those of the same schedule out of place only where a move
// reads an input whose place was taken in an earlier step.
#include <string>

#include "schedule/cells.h"
#include "schedule/proofs.h"

namespace unisono {
namespace {

class StaleInput {
 public:
  StaleInput(const Schedule& schedule, Findings& findings)
      : schedule_(schedule), first_writes_(schedule), findings_(findings) {}

  void check(const Move& move) {
    for (int chunk = move.chunk; chunk < move.chunk + move.chunks; ++chunk) {
      check_read({move.from, move.source, chunk}, move);
      if (move.combine == Combine::reduce) {
        check_read({move.to, move.target, chunk}, move);
      }
    }
  }

 private:
  void check_read(Cell cell, const Move& move) {
    cell = first_writes_.read_through(cell, move.step);
    if (cell.buffer != Buffer::input) {
      return;
    }
    const int taken_by = chunk_in_place(schedule_, cell.rank, cell.chunk);
    if (taken_by < 0) {
      return;
    }
    const int taken_in = first_writes_.step({cell.rank, Buffer::output, taken_by});
    if (taken_in < 0 || taken_in >= move.step) {
      return;
    }
    Finding finding;
    finding.kind = Finding::Kind::in_place;
    finding.step = move.step;
    finding.rank = cell.rank;
    finding.chunk = cell.chunk;
    finding.line = move.line;
    finding.text = "step " + std::to_string(move.step) + ": rank " + std::to_string(cell.rank) +
                   " reads its input chunk " + std::to_string(cell.chunk) +
                   ", whose place output chunk " + std::to_string(taken_by) + " took in step " +
                   std::to_string(taken_in);
    findings_.add(std::move(finding));
  }

  const Schedule& schedule_;
  FirstWrites first_writes_;
  Findings& findings_;
};

}  // namespace

void check_stale_input(const Schedule& schedule, Findings& findings) {
  StaleInput stale(schedule, findings);
  for (const Move& move : schedule.moves) {
    if (findings.full()) {
      return;
    }
    stale.check(move);
  }
}

}  // namespace unisono
