#include "bootstrap/roll_call.h"

#include "base/asking.h"

namespace unisono::comm {

RollCall::RollCall(const std::string& job, int size) {
  const JobLog log = log_.read();
  held_ = log.ranks == size && log.job == job;
}

Absence RollCall::find(const std::function<bool(int)>& is_missing) {
  const auto now = std::chrono::steady_clock::now();
  if (!held_ || now < next_) {
    return {};
  }
  next_ = now + std::chrono::milliseconds(kAskMs);
  Absence absence;
  for (const auto& [rank, how] : log_.read().ends) {
    if (!is_missing(rank)) {
      continue;
    }
    ++absence.ranks;
    if (absence.rank < 0) {
      absence.rank = rank;
      absence.message = "rank " + std::to_string(rank) + " " + how +
                        " before it joined the others\nlook at its last output: all ranks of a job "
                        "have to connect()";
    }
  }
  if (absence.rank >= 0) {
    log_.add(missed_line(absence.rank));
  }
  return absence;
}

}  // namespace unisono::comm
