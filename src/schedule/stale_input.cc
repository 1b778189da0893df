// In place, an output shares memory with its rank's input, and writing the output destroys the
// input. So the result can differ from the result out of place only if a move reads an input that
// an earlier step has overwritten.
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
    findings_.add({.kind = Finding::Kind::in_place,
                   .mistake = Finding::Mistake::stale_input,
                   .step = move.step,
                   .rank = cell.rank,
                   .chunk = cell.chunk,
                   .line = move.line,
                   .arguments = {taken_by, taken_in}});
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
