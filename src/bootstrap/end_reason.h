// The reasons that `unisono run` gives for ranks that it ends itself, so that other ranks do not
// take the launcher's signal for the first cause.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/job_log.h"

namespace unisono::comm {

// The beginning of such a reason in the launcher's log.
inline constexpr std::string_view kEndedByLauncher = "ended by the launcher";

// Returns "ended by the launcher after process 2 of the job ". It does not say "rank 2", because
// shrunk worlds renumber their ranks and show this reason too.
inline std::string ended_after(int process) {
  return std::string(kEndedByLauncher) + " after process " + std::to_string(process) +
         " of the job ";
}

struct EndReason {
  int process = -1;             // its rank in the first world
  std::string how = {};         // "killed by SIGKILL"
  bool by_its_closing = false;  // only known: it closed its connection
};

// If the launcher is about to end this process by a signal, waits for the signal: an uncaught error
// would otherwise end the process by abort(), with a core dump. The launcher announces the end in
// its log before the signal. `reason`: why the world has ended.
void await_signal_of_launcher(std::string_view reason);

class EndReasonReader {
 public:
  // Reads the environment, so no other thread may change it meanwhile.
  EndReasonReader() = default;
  // Returns "killed by SIGKILL\nlook at its last output". If the launcher has begun to end the job,
  // and so may have ended this rank too, returns the launcher's reason instead: "ended by the
  // launcher after process 2 of the job exited with code 1\nlook ...". Waits briefly for a launcher
  // that has not written yet. Any thread.
  std::string end_and_advice(const EndReason& end, std::string_view advice) const;

 private:
  JobLog await_verdict(const EndReason& end) const;

  SharedJobLog log_;
};

}  // namespace unisono::comm
