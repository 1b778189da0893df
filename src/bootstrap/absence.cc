#include "bootstrap/absence.h"

#include "base/asking.h"

namespace unisono::comm {

AbsenceCheck::AbsenceCheck(const std::string& job, int size) {
  const JobLog log = log_.read();
  has_log_ = log.ranks == size && log.job == job;
}

Absence AbsenceCheck::find(const std::function<bool(int)>& is_missing) {
  const auto now = std::chrono::steady_clock::now();
  if (!has_log_ || now < next_) {
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
