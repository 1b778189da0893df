// The launcher's messages when a job has failed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/failure.h"
#include "run/launcher.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

constexpr const char* kStopped = "stopped by the launcher";

struct Line {
  std::string ranks;
  std::string end;
};

// Adds the other ranks; ranks that ended in the same way share a line.
void add_others(const JobResult& result, const std::vector<int>& told, std::vector<Line>& lines) {
  std::map<std::string, std::vector<int>> by_end;
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    const ProcessEnd& end = result.ends[rank];
    if (std::find(told.begin(), told.end(), static_cast<int>(rank)) == told.end()) {
      by_end[end.by_launcher ? kStopped : end_text(end).english].push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [how, ranks] : by_end) {
    lines.push_back({.ranks = ranks_text(ranks), .end = how});
  }
}

std::string table_of(const std::vector<Line>& lines) {
  std::size_t width = 0;
  for (const Line& line : lines) {
    width = std::max(width, line.ranks.size());
  }
  std::string text;
  for (const Line& line : lines) {
    text += fmt::format("{:<{}}  {}\n", line.ranks, width, line.end);
  }
  return text;
}

// Returns true for a hang; a short wait of ranks for each other does not count.
bool is_hang(const Finding& finding) {
  constexpr double kMomentS = 0.1;
  return finding.kind == "mismatch" || finding.waited_s >= kMomentS;
}

std::string logs_hint(const JobResult& result, const LaunchOptions& options) {
  if (options.log_dir.empty()) {
    return "--log-dir DIR keeps everything that each rank printed";
  }
  if (::access(options.log_dir.c_str(), F_OK) != 0) {
    return fmt::format("--log-dir DIR keeps everything that each rank printed; {} was removed",
                       options.log_dir);
  }
  return result.lost_logs
             ? fmt::format("the rest of all that each rank printed is in {}", options.log_dir)
             : fmt::format("everything that each rank printed is in {}", options.log_dir);
}

std::string hint(const JobResult& result, int rank, const LaunchOptions& options) {
  const ProcessEnd& end = result.ends[static_cast<std::size_t>(rank)];
  if (!options.replay.empty()) {
    return options.replay;
  }
  if (end.signal != 0) {
    return signal_hint(end.signal, options).english;
  }
  // ssh exits with 255 if it could not start anything on the host.
  const auto place = static_cast<std::size_t>(rank);
  if (end.exit_code == 255 && place < options.remote.size()) {
    std::vector<std::string> words = options.remote[place].program;
    words.back() = "true";  // in place of the shell
    return fmt::format("can the host be reached? try: {}", fmt::join(words, " "));
  }
  return logs_hint(result, options);
}

std::string tail_of(const JobResult& result, const OutputMerger& output, int rank) {
  if (output.tail(rank).empty()) {
    if (const auto failure = result.failures.find(rank); failure != result.failures.end()) {
      return fmt::format("rank {}: {}\n", rank, failure->second.why);
    }
    return fmt::format("rank {} wrote nothing to stderr\n", rank);
  }
  if (output.shows_tail(rank)) {
    return {};
  }
  std::string text = fmt::format("rank {}'s last lines on stderr\n", rank);
  for (const std::string& line : output.tail(rank)) {
    text += fmt::format("  | {}\n", line);
  }
  return text;
}

Line line_of(const JobResult& result, const LaunchOptions& options, int rank,
             std::string_view mark) {
  const ProcessEnd& end = result.ends[static_cast<std::size_t>(rank)];
  const double after = std::chrono::duration<double>(end.when - result.start).count();
  return {.ranks = fmt::format("rank {}", rank),
          .end = fmt::format("{} after {:.1f} s ({}{})  <- {}",
                             end.by_launcher ? kStopped : end_text(end).english, after,
                             options.output.hosts[static_cast<std::size_t>(rank)],
                             // The process number on another host is unknown here.
                             options.remote.empty() ? fmt::format(" pid {}", end.pid) : "", mark)};
}

// Returns true if the rank exited with code 0 and the others could not start.
bool is_to_blame(const JobResult& result, int rank) {
  return rank >= 0 && !result.ends[static_cast<std::size_t>(rank)].failed();
}

void report_never_joined(const JobResult& result, const LaunchOptions& options,
                         const OutputMerger& output, const Console& console) {
  const int rank = result.never_joined;
  std::vector<Line> lines = {
      line_of(result, options, rank, "the others waited for it in connect()")};
  add_others(result, {rank}, lines);
  std::string detail = table_of(lines) + tail_of(result, output, rank);
  detail.pop_back();
  print_error(console, "rank_failed",
              fmt::format("the job cannot start: rank {} ended before it joined", rank), detail,
              hint(result, rank, options));
}

void report_swallowed(const JobResult& result, const Console& console) {
  std::map<std::string, std::vector<int>> by_reason;
  for (const auto& [rank, failure] : result.failures) {
    by_reason[failure.why].push_back(rank);
  }
  std::vector<Line> lines;
  for (const auto& [why, ranks] : by_reason) {
    lines.push_back({.ranks = ranks_text(ranks), .end = why});
  }
  std::string detail = table_of(lines);
  detail.pop_back();
  print_error(console, "rank_failed", "the job failed, although its ranks exited with code 0",
              detail,
              "exit with another code after an error from which the program cannot recover");
}

// Returns the cause if it did not fail itself: it exited with code 0 while others waited for it, or
// delayed them until the launcher ended it. -1: there is none.
int silent_cause(const JobResult& result) {
  const int cause = result.cause;
  if (cause < 0 || cause == result.first_failure) {
    return -1;
  }
  return result.ends[static_cast<std::size_t>(cause)].killed_by_chaos() ? -1 : cause;
}

void report_rank(const JobResult& result, const LaunchOptions& options, const OutputMerger& output,
                 const Console& console) {
  const int rank = result.first_failure;
  const ProcessEnd& end = result.ends[static_cast<std::size_t>(rank)];
  std::vector<int> told = killed_before(result);
  const int cause = silent_cause(result);
  std::string message = fmt::format("rank {} {}", rank, end.signal != 0 ? "is gone" : "gave up");
  if (cause >= 0) {
    message = fmt::format("rank {} {}", cause,
                          result.ends[static_cast<std::size_t>(cause)].by_launcher
                              ? "held the others up"
                              : "left while others waited for it");
  }
  if (!told.empty()) {
    message = fmt::format("--chaos killed {}, and {}", ranks_text(told), message);
  }
  std::vector<Line> lines;
  for (const int killed : told) {
    lines.push_back(line_of(result, options, killed, "what --chaos did"));
  }
  if (cause >= 0) {
    lines.push_back(line_of(result, options, cause, fmt::format("the cause, says rank {}", rank)));
    told.push_back(cause);
  } else {
    lines.push_back(
        line_of(result, options, rank, told.empty() ? "first failure" : "first to give up"));
    told.push_back(rank);
  }
  add_others(result, told, lines);
  std::string detail = table_of(lines) + tail_of(result, output, rank);
  detail.pop_back();
  print_error(console, end.signal != 0 ? "peer_lost" : "rank_failed",
              "the job cannot finish: " + message, detail, hint(result, rank, options));
}

std::string text_of(const Finding& finding) {
  std::string text = finding.text.english + "\n";
  for (const Text& detail : finding.details) {
    text += "  " + detail.english + "\n";
  }
  if (!finding.waiting.empty()) {
    text += fmt::format("  {} waited for it, the longest {:.1f} s\n", ranks_text(finding.waiting),
                        finding.waited_s);
  }
  return text;
}

void report_timeout(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console) {
  std::vector<Line> lines;
  if (result.unfinished.size() < result.ends.size()) {
    lines.push_back({.ranks = ranks_text(result.unfinished), .end = "had not ended"});
  }
  add_others(result, {}, lines);
  std::string detail;
  int rank = result.unfinished.front();
  std::string next = options.log_dir.empty()
                         ? "use a longer --timeout, or --log-dir DIR to see what each rank did last"
                         : logs_hint(result, options);
  for (const Finding& finding : result.findings) {
    if (is_hang(finding)) {
      next = detail.empty() ? finding.next.english : next;
      rank = detail.empty() && !finding.ranks.empty() ? finding.ranks.front() : rank;
      detail += text_of(finding);
    }
  }
  detail += table_of(lines) + tail_of(result, output, rank);
  detail.pop_back();
  print_error(console, "timeout",
              fmt::format("{} of {} ranks still ran after {:g} s", result.unfinished.size(),
                          result.ends.size(), options.timeout_s),
              detail, options.replay.empty() ? next : options.replay);
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

Text signal_hint(int signal, const LaunchOptions& options) {
  if (signal == SIGKILL) {
    return say("out of memory? try: dmesg | tail", "是否内存不足？试试：dmesg | tail");
  }
  if (signal == SIGABRT) {
    return say("it aborted: its last lines say why", "它自行结束：其最后几行说明了原因");
  }
  return say("ulimit -c unlimited, run again, then: gdb {} core",
             "ulimit -c unlimited，再次运行，然后：gdb {} core", options.program.front());
}

std::vector<int> killed_before(const JobResult& result) {
  std::vector<int> killed;
  for (std::size_t rank = 0; rank < result.ends.size() && result.first_failure >= 0; ++rank) {
    const ProcessEnd& first = result.ends[static_cast<std::size_t>(result.first_failure)];
    if (result.ends[rank].killed_by_chaos() && result.ends[rank].struck <= first.when) {
      killed.push_back(static_cast<int>(rank));
    }
  }
  return killed;
}

Text end_sentence(int rank, const ProcessEnd& end) {
  return say("rank {} {}{}", "rank {0} {2}", rank, end.signal != 0 ? "was " : "", end_text(end));
}

std::string end_phrase(const ProcessEnd& end) {
  return (end.signal != 0 ? "was " : "") + end_text(end).english;
}

Text end_text(const ProcessEnd& end) {
  if (end.killed_by_chaos()) {
    return say("killed by --chaos", "被 --chaos 杀死");
  }
  if (end.signal != 0) {
    return say("killed by {}", "被 {} 杀死", signal_name(end.signal));
  }
  return end.exit_code == 0 ? say("done", "完成")
                            : say("exited with code {}", "以代码 {} 退出", end.exit_code);
}

void report_failure(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console) {
  if (result.timed_out) {
    report_timeout(result, options, output, console);
  } else if (result.launcher_signal != 0) {
    console.note(fmt::format("unisono run: stopped by {}", signal_name(result.launcher_signal)));
  } else if (result.went_on) {
    std::vector<Line> lines;
    add_others(result, {}, lines);
    std::string table = table_of(lines);
    table.pop_back();
    console.note("unisono run: ranks were lost, and the others continued\n" + table);
  } else if (result.first_failure >= 0 && is_to_blame(result, result.never_joined)) {
    report_never_joined(result, options, output, console);
  } else if (result.first_failure >= 0) {
    report_rank(result, options, output, console);
  } else if (find_swallowed(result) >= 0) {
    report_swallowed(result, console);
  }
}

bool any_ended_well(const JobResult& result) {
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    const ProcessEnd& end = result.ends[rank];
    if (end.ended && !end.failed() && !result.failures.contains(static_cast<int>(rank))) {
      return true;
    }
  }
  return false;
}

int find_swallowed(const JobResult& result) {
  for (const auto& [rank, failure] : result.failures) {
    const auto place = static_cast<std::size_t>(rank);
    if (place < result.ends.size() && !result.ends[place].failed()) {
      return rank;
    }
  }
  return -1;
}

int job_exit_code(const JobResult& result) {
  if (result.timed_out) {
    return kTimedOut;
  }
  if (result.launcher_signal != 0) {
    return kSignalBase + result.launcher_signal;
  }
  if (result.first_failure < 0 && find_swallowed(result) >= 0) {
    return kCouldNotRun;
  }
  if (result.first_failure < 0 || result.went_on) {
    return kDone;
  }
  const ProcessEnd& end = result.ends[static_cast<std::size_t>(result.first_failure)];
  return end.signal != 0 ? kCouldNotRun : end.exit_code;
}

}  // namespace unisono::cli
