#include "bootstrap/absence.h"

#include "base/asking.h"

namespace unisono::comm {

namespace {

bool is_of(const JobLog& log, const std::string& job, int size) {
  return log.ranks == size && log.job == job && !log.have_met;
}

}  // namespace

void note_meeting(const std::string& job, int size) {
  const SharedJobLog log;
  if (is_of(log.read(), job, size)) {
    log.add(met_line());
  }
}

AbsenceCheck::AbsenceCheck(const std::string& job, int size)
    : has_log_(is_of(log_.read(), job, size)) {}

Absence AbsenceCheck::find(const std::function<bool(int)>& is_missing) {
  const auto now = std::chrono::steady_clock::now();
  if (!has_log_ || now < next_) {
    return {};
  }
  next_ = now + std::chrono::milliseconds(kAskMs);
  Absence absence;
  bool ended_well = true;
  for (const auto& [rank, how] : log_.read().ends) {
    if (!is_missing(rank)) {
      continue;
    }
    absence.ranks.push_back(rank);
    // A process that failed is a likelier cause than one that ended normally.
    if (absence.rank < 0 || (ended_well && how != kEndedWell)) {
      ended_well = how == kEndedWell;
      absence.rank = rank;
      absence.message = "rank " + std::to_string(rank) + " " + how +
                        " before it joined the others\nlook at its last output: all ranks of a job "
                        "must call connect()";
    }
  }
  if (absence.rank >= 0) {
    log_.add(missed_line(absence.rank));
  }
  return absence;
}

}  // namespace unisono::comm
