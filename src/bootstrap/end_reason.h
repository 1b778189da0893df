// The reasons that `unisono run` gives for ranks that it ends itself, so that other ranks do not
// mistake the launcher's signal for the first cause.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/job_log.h"

namespace unisono::comm {

// The first words of such a reason in the launcher's log.
inline constexpr std::string_view kEndedByLauncher = "ended by the launcher";

// Returns "ended by the launcher after process 2 of the job ". The text does not say "rank 2",
// because shrunk worlds renumber their ranks and show the same text.
inline std::string ended_after(int process) {
  return std::string(kEndedByLauncher) + " after process " + std::to_string(process) +
         " of the job ";
}

struct EndReason {
  int process = -1;             // its rank in the first world
  std::string how = {};         // "killed by SIGKILL"
  bool by_its_closing = false;  // only known: it closed its connection
};

// If the launcher is about to end this process with a signal, waits for the signal. Otherwise an
// uncaught error would end the process by abort(), with a core dump. The launcher announces the end
// in its log before it sends the signal. `reason` is the reason why the world has ended.
void await_signal_of_launcher(std::string_view reason);

class EndReasonReader {
 public:
  // Reads the environment, so no other thread may change the environment meanwhile.
  EndReasonReader() = default;
  // Returns a text such as "killed by SIGKILL\nlook at its last output". If the launcher has begun
  // to end the job, it may have ended this rank too. In this case, returns the launcher's reason,
  // such as "ended by the launcher after process 2 of the job exited with code 1\nlook ...". Waits
  // briefly if the launcher has not written yet. Any thread may call.
  std::string end_and_advice(const EndReason& end, std::string_view advice) const;

 private:
  JobLog await_verdict(const EndReason& end) const;

  SharedJobLog log_;
};

}  // namespace unisono::comm
