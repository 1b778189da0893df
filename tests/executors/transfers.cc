#include "transfers.h"

namespace unisono::executors::testing {

Transfers transfers(const Schedule& schedule) {
  Transfers result;
  for (const Move& move : schedule.moves) {
    for (int chunk = move.chunk; move.from != move.to && chunk < move.chunk + move.chunks;
         ++chunk) {
      ++result[{move.from, move.to, chunk, move.combine}];
    }
  }
  return result;
}

}  // namespace unisono::executors::testing
