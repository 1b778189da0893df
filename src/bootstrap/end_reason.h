// What `unisono run` says of ranks that it ends itself, so that the others do not take the signal
// that ended them for the first cause.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/job_log.h"

namespace unisono::comm {

// How the reason in the launcher's log begins.
inline constexpr std::string_view kEndedByLauncher = "ended by the launcher";

// "ended by the launcher after process 2 of the job ". Not "rank 2": worlds that have shrunk count
// their ranks anew, and this reason is read in them too.
inline std::string ended_after(int process) {
  return std::string(kEndedByLauncher) + " after process " + std::to_string(process) +
         " of the job ";
}

struct EndReason {
  int process = -1;             // its rank in the first world
  std::string how = {};         // "killed by SIGKILL"
  bool by_its_closing = false;  // nothing is known but that it closed its connection
};

// A launcher that ends the job has said so before its signal comes, and this process gets the same
// signal in a moment. So if the signal is to end this process, this waits for it: an error that
// nobody catches would end the process by abort() meanwhile, with a core dump. `reason`: why the
// world has ended.
void await_signal_of_launcher(std::string_view reason);

class EndReasonReader {
 public:
  // Reads the environment, which other threads may not while the program changes it.
  EndReasonReader() = default;
  // "killed by SIGKILL\nlook at its last output". Where the launcher has begun to end the job, and
  // may have ended this rank too, its own reason stands in place of both: "ended by the launcher
  // after process 2 of the job exited with code 1\nlook ...". Waits a little for a launcher that
  // has not said yet whether it did so. Any thread.
  std::string end_and_advice(const EndReason& end, std::string_view advice) const;

 private:
  JobLog await_verdict(const EndReason& end) const;

  SharedJobLog log_;
};

}  // namespace unisono::comm
