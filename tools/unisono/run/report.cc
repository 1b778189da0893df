// What the launcher says when a job did not end well.
#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/failure.h"
#include "run/launcher.h"
#include "show/show.h"

namespace unisono::cli {
namespace {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_list(ranks));
}

struct Line {
  std::string ranks;
  std::string end;
};

// The other ranks, those that ended alike in one line.
void add_others(const JobResult& result, int first, std::vector<Line>& lines) {
  std::map<std::string, std::vector<int>> by_end;
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    const RankEnd& end = result.ends[rank];
    if (static_cast<int>(rank) != first) {
      by_end[end.by_launcher ? "stopped by the launcher" : end_text(end)].push_back(
          static_cast<int>(rank));
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

std::string hint(const RankEnd& end, const LaunchOptions& options) {
  if (!options.replay.empty()) {
    return options.replay;
  }
  if (end.signal == SIGKILL) {
    return "out of memory? try: dmesg | tail";
  }
  if (end.signal == SIGABRT) {
    return "it ended itself: its last lines say why";
  }
  if (end.signal != 0) {
    return fmt::format("ulimit -c unlimited, run again, then: gdb {} core",
                       options.program.front());
  }
  return options.log_dir.empty()
             ? "--log-dir DIR keeps everything that each rank printed"
             : fmt::format("everything that each rank printed is in {}", options.log_dir);
}

std::string tail_of(const OutputMerger& output, int rank) {
  if (output.tail(rank).empty()) {
    return fmt::format("rank {} wrote nothing to stderr\n", rank);
  }
  std::string text = fmt::format("rank {}'s last lines on stderr\n", rank);
  for (const std::string& line : output.tail(rank)) {
    text += fmt::format("  | {}\n", line);
  }
  return text;
}

void report_rank(const JobResult& result, const LaunchOptions& options, const OutputMerger& output,
                 const Console& console) {
  const int rank = result.first_failure;
  const RankEnd& end = result.ends[static_cast<std::size_t>(rank)];
  const double after = std::chrono::duration<double>(end.when - result.start).count();
  const std::string message = end.signal != 0
                                  ? fmt::format("the job cannot finish: rank {} is gone", rank)
                                  : fmt::format("the job cannot finish: rank {} gave up", rank);
  std::vector<Line> lines = {
      {.ranks = fmt::format("rank {}", rank),
       .end = fmt::format("{}, {:.1f} s after the start ({} pid {})   <- first failure",
                          end_text(end), after, options.output.host, end.pid)}};
  add_others(result, rank, lines);
  std::string detail = table_of(lines) + tail_of(output, rank);
  detail.pop_back();
  print_error(console, end.signal != 0 ? "peer_lost" : "rank_failed", message, detail,
              hint(end, options));
}

void report_timeout(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console) {
  std::vector<Line> lines;
  if (result.unfinished.size() < result.ends.size()) {
    lines.push_back({.ranks = ranks_text(result.unfinished), .end = "had not ended"});
  }
  add_others(result, -1, lines);
  std::string detail = table_of(lines) + tail_of(output, result.unfinished.front());
  detail.pop_back();
  print_error(console, "timeout",
              fmt::format("{} of {} ranks still ran after {:g} s", result.unfinished.size(),
                          result.ends.size(), options.timeout_s),
              detail,
              options.replay.empty()
                  ? "a longer --timeout, or --log-dir DIR to see what each rank did last"
                  : options.replay);
}

}  // namespace

std::string end_text(const RankEnd& end) {
  if (end.by_chaos && end.failed()) {
    return "killed by --chaos";
  }
  if (end.signal != 0) {
    return fmt::format("killed by {}", signal_name(end.signal));
  }
  return end.exit_code == 0 ? "done" : fmt::format("exited with code {}", end.exit_code);
}

void report_failure(const JobResult& result, const LaunchOptions& options,
                    const OutputMerger& output, const Console& console) {
  if (result.timed_out) {
    report_timeout(result, options, output, console);
  } else if (result.launcher_signal != 0) {
    console.note(fmt::format("unisono run: stopped by {}", signal_name(result.launcher_signal)));
  } else if (result.went_on) {
    std::vector<Line> lines;
    add_others(result, -1, lines);
    std::string table = table_of(lines);
    table.pop_back();
    console.note("unisono run: ranks were lost, and the others went on\n" + table);
  } else if (result.first_failure >= 0) {
    report_rank(result, options, output, console);
  }
}

int job_exit_code(const JobResult& result) {
  if (result.timed_out) {
    return kTimedOut;
  }
  if (result.launcher_signal != 0) {
    return kSignalBase + result.launcher_signal;
  }
  if (result.first_failure < 0 || result.went_on) {
    return kDone;
  }
  const RankEnd& end = result.ends[static_cast<std::size_t>(result.first_failure)];
  return end.signal != 0 ? kCouldNotRun : end.exit_code;
}

}  // namespace unisono::cli
