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
  std::vector<RemoteRank> remote;             // by rank, where they are on several hosts
  std::vector<pid_t> spared = {};             // children that outlive the job
  bool bind = true;         // rank i to `threads` allowed CPUs from floor(i * CPUs / ranks) on
  int threads = 1;          // of a rank that move data
  bool keep_going = false;  // the ranks that are left go on when one fails
  double timeout_s = 0;     // 0: none
  std::string log_dir;      // rank-<i>.out and rank-<i>.err; empty: none
  Chaos* chaos = nullptr;   // what goes wrong; may be absent
  std::string replay;       // with chaos: the command that does the same again
  OutputOptions output;
  std::function<void()> on_stop;  // before ranks that have not failed are stopped; may be empty
  std::function<void()> on_tick;  // some times a second while the ranks run; may be empty
};

// The end of one rank.
struct ProcessEnd {
  using Time = std::chrono::steady_clock::time_point;
  pid_t pid = 0;
  bool ended = false;
  int signal = 0;            // that killed it; 0: it exited
  int exit_code = 0;         // if it exited
  bool by_launcher = false;  // after the launcher had begun to stop the job
  bool by_chaos = false;     // --chaos sent it what kills: the others may go on
  Time when;
  Time struck;  // by chaos: others may be seen to end before it is, whose death they die of
  bool failed() const { return ended && (signal != 0 || exit_code != 0); }
  // The shell of a rank on another host says by its code that a signal killed it.
  bool killed_by_chaos() const {
    constexpr int kKilled = 9;
    return by_chaos && ended && (signal == kKilled || exit_code == 128 + kKilled);
  }
};

struct JobResult {
  std::vector<ProcessEnd> ends;
  ProcessEnd::Time start;
  int first_failure = -1;  // rank; -1: none
  // The rank to which the errors of the ranks lead, first_failure if that one failed by itself. It
  // may have ended well while others waited for it, or been ended by the launcher or --chaos.
  int cause = -1;
  // Why the world of each rank ended, as these ranks have said, if they have no other since.
  std::map<int, comm::JobFailure> failures = {};
  int never_joined = -1;  // a rank that had ended while others waited for it in connect()
  bool went_on = false;   // without ranks that failed, and to a good end
  bool timed_out = false;
  std::vector<int> unfinished;         // ranks that still ran at the timeout
  int launcher_signal = 0;             // that told the launcher to stop
  std::vector<Finding> findings = {};  // why it did not go on, when it was stopped
  double seconds = 0;
  std::vector<Chaos::ScheduledFault> missed_blows = {};  // of ranks that had ended before
  bool lost_logs = false;  // some of what ranks printed; the launcher has said so
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
  void tell_of_failure();  // if that is what ends the job
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
  std::vector<RemoteInput> inputs_;  // of remote ranks: their end tells them of ours
  std::vector<RemoteLog> remote_logs_;
  int signal_fd_ = -1;
  JobLogFile log_;
  std::optional<ChildGuard> guardian_;  // while the ranks run
  Stage stage_ = Stage::running;
  Time stage_end_;
};

// The block that says who failed first and how; and the exit code of the job.
void report_failure(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console);
int job_exit_code(const JobResult& result);
// Returns true if some rank ended with code 0, in a world that had not failed.
bool any_ended_well(const JobResult& result);
// A rank that ended with code 0 although its world had failed; -1: there is none.
int find_swallowed(const JobResult& result);
std::string signal_name(int signal);                         // "SIGKILL"
Text signal_hint(int signal, const LaunchOptions& options);  // what to do about it
Text end_text(const ProcessEnd& end);                // "killed by SIGKILL", "exited with code 3"
std::string end_phrase(const ProcessEnd& end);       // "was killed by SIGKILL"
Text end_sentence(int rank, const ProcessEnd& end);  // "rank 2 was killed by SIGKILL"
// Ranks that --chaos had killed before the first of the others failed.
std::vector<int> killed_before(const JobResult& result);

}  // namespace unisono::cli
