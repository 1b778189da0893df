// Runs the ranks of one job on this host and watches over them until none is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "run/chaos.h"
#include "run/hosts.h"
#include "run/job_log_file.h"
#include "run/output.h"
#include "run/rank_logs.h"
#include "run/remote_input.h"
#include "run/spawn.h"
#include "top/why.h"

namespace unisono::cli {

struct LaunchOptions {
  int ranks = 1;
  std::string job = {};  // its name
  std::vector<std::string> program;
  std::vector<std::string> environment;       // for every rank, after the launcher's own variables
  std::vector<std::string> rank_environment;  // one more entry by rank; may be empty
  std::vector<RemoteRank> remote;             // by rank, if the ranks are on several hosts
  std::vector<pid_t> spared = {};             // children that outlive the job
  bool bind = true;  // bind rank i to `threads` allowed CPUs, from floor(i * CPUs / ranks) on
  int threads = 1;   // threads of a rank that move data
  bool keep_going = false;  // the other ranks continue when one fails
  double timeout_s = 0;     // 0: none
  std::string log_dir;      // rank-<i>.out and rank-<i>.err; empty: none
  Chaos* chaos = nullptr;   // the faults to inject; may be absent
  std::string replay;       // with chaos: the command that repeats the faults
  OutputOptions output;
  std::function<void()> on_stop;  // called before the other ranks are stopped; may be empty
  std::function<void()> on_tick;  // called several times a second while ranks run; may be empty
};

// The end of one rank.
struct ProcessEnd {
  using Time = std::chrono::steady_clock::time_point;
  pid_t pid = 0;
  bool ended = false;
  int signal = 0;            // the signal that killed it; 0: it exited
  int exit_code = 0;         // if it exited
  bool by_launcher = false;  // it ended after the launcher had begun to stop the job
  bool by_chaos = false;     // --chaos sent it a deadly signal: the others may continue
  Time when;
  Time struck;  // time of the --chaos signal: ranks that fail because of it may be reaped earlier
  bool failed() const { return ended && (signal != 0 || exit_code != 0); }
  // On another host, the exit code of the rank's shell shows that a signal killed the rank.
  bool killed_by_chaos() const {
    constexpr int kKilled = 9;
    return by_chaos && ended && (signal == kKilled || exit_code == 128 + kKilled);
  }
};

struct JobResult {
  std::vector<ProcessEnd> ends;
  ProcessEnd::Time start;
  int first_failure = -1;  // rank; -1: none
  // The rank that the errors of the ranks name as the cause; first_failure if that rank failed by
  // itself. The cause may have exited with code 0 while others waited for it, or the launcher or
  // --chaos may have ended it.
  int cause = -1;
  // The reason why the latest world of each rank failed, as the rank reported it.
  std::map<int, comm::JobFailure> failures = {};
  int never_joined = -1;  // a rank that had ended while others waited for it in connect()
  bool went_on = false;   // ranks failed, and the others continued and succeeded
  bool timed_out = false;
  std::vector<int> unfinished;         // ranks that still ran at the timeout
  int launcher_signal = 0;             // signal that told the launcher to stop
  std::vector<Finding> findings = {};  // why the job hung when it was stopped
  double seconds = 0;
  std::vector<Chaos::ScheduledFault> missed_blows = {};  // faults for ranks that had already ended
  bool lost_logs = false;  // some output of ranks was lost; the launcher has reported it
};

class Launcher {
 public:
  Launcher(LaunchOptions options, const Console& console);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  JobResult run();
  const OutputMerger& output() const { return output_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Lane {
    int rank = 0;
    Stream stream = Stream::out;
    int fd = -1;  // -1: ended
  };
  void start_ranks();
  int poll_timeout_ms(Time now) const;
  void read_lane(Lane& lane, Time now);
  void read_signals(Time now);
  void reap(Time now);
  void choose_first_failure();
  void check_clock(Time now);
  void strike(Time now);
  void note_end(int rank);
  void tell_of_stop();
  void tell_of_failure();  // if the failure ends the job
  void tell_why(const std::string& reason, const std::string& advice);
  void show(const Lane& lane, std::string_view bytes, Time now);
  void signal_ranks(int signal, bool from_terminal);
  bool all_ended() const;
  void drain();

  enum class Stage : unsigned char { running, grace, terminating, killing };

  LaunchOptions options_;
  const Console& console_;
  OutputMerger output_;
  JobResult result_;
  std::vector<Lane> lanes_;
  RankLogs logs_;
  std::vector<bool> own_group_;
  std::vector<RemoteInput> inputs_;  // of remote ranks: closing one reports our end
  std::vector<RemoteLog> remote_logs_;
  int signal_fd_ = -1;
  JobLogFile log_;
  std::optional<ChildGuard> guardian_;  // while the ranks run
  Stage stage_ = Stage::running;
  Time stage_end_;
};

// Prints which rank failed first and how, and returns the exit code of the job.
void report_failure(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console);
int job_exit_code(const JobResult& result);
// Returns true if some rank ended with code 0, in a world that had not failed.
bool any_ended_well(const JobResult& result);
// Returns a rank that exited with code 0 although its world had failed; -1: there is none.
int find_swallowed(const JobResult& result);
std::string signal_name(int signal);                         // "SIGKILL"
Text signal_hint(int signal, const LaunchOptions& options);  // what to do about it
Text end_text(const ProcessEnd& end);                // "killed by SIGKILL", "exited with code 3"
std::string end_phrase(const ProcessEnd& end);       // "was killed by SIGKILL"
Text end_sentence(int rank, const ProcessEnd& end);  // "rank 2 was killed by SIGKILL"
// Returns the ranks that --chaos had killed before the first other rank failed.
std::vector<int> killed_before(const JobResult& result);

}  // namespace unisono::cli
