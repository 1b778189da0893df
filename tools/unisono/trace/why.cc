#include "trace/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/account.h"
#include "cli/failure.h"
#include "cli/wrap.h"
#include "record/files.h"
#include "record/verdict.h"
#include "record/views.h"
#include "show/show.h"
#include "top/why.h"
#include "trace/dumps.h"

namespace unisono::cli {
namespace {

// A shorter wait is not noticeable.
constexpr double kMomentS = 0.05;

void print_findings(const std::vector<Finding>& findings, const Console& console) {
  int number = 0;
  for (const Finding& finding : findings) {
    // A rank's report begins with its kind.
    std::string_view text = finding.text.english;
    text.remove_prefix(text.starts_with(finding.kind + ": ") ? finding.kind.size() + 2 : 0);
    fmt::print("{}  {}  {}\n", ++number, console.paint(Paint::bad, finding.kind), text);
    for (const Text& detail : finding.details) {
      fmt::print("   {}\n", detail.english);
    }
    if (!finding.waiting.empty() && finding.waited_s >= kMomentS) {
      fmt::print("   waiting for it: {}, the longest for {:.1f} s\n", ranks_text(finding.waiting),
                 finding.waited_s);
    }
    std::string_view head = "next";
    for (std::string_view rest = finding.next.english; !rest.empty();) {
      const std::size_t line = std::min(rest.find('\n'), rest.size());
      fmt::print("   {:<4}   {}\n", std::exchange(head, ""), rest.substr(0, line));
      rest.remove_prefix(std::min(line + 1, rest.size()));
    }
  }
}

void print_text(const Job& job, const std::vector<Finding>& findings, const Console& console) {
  fmt::print("{}  {}\n",
             console.paint(Paint::strong, job.world.job.empty() ? "job" : job.world.job),
             size_text(job));
  if (!job.world.abort.empty()) {
    fmt::print("{}", console.paint(Paint::bad, ended_text(job.world.abort, console.width())));
  }
  if (findings.empty()) {
    fmt::print("nobody waits\n");
  }
  print_findings(findings, console);
}

void print_why(nlohmann::ordered_json jobs) {
  const nlohmann::ordered_json result{{"schema", "unisono.why/1"}, {"jobs", std::move(jobs)}};
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Returns true if the word names a file, not a job or a process: a job may be named slurm/4711/0,
// and a word of digits is a process.
bool is_file(const std::string& which) {
  std::error_code ignored;
  return which.ends_with(".json") || (std::filesystem::exists(which, ignored) &&
                                      which.find_first_not_of("0123456789") != std::string::npos);
}

int why_recording(const std::string& path, const Console& console) {
  const nlohmann::ordered_json trace = read_trace(path);
  const std::vector<Finding> findings = explain_recording(trace);
  const std::string ended = begins(trace, "ended", "") ? trace["ended"].get<std::string>() : "";
  if (console.json()) {
    print_why({{{"job", path}, {"ended", ended}, {"findings", findings_json(findings)}}});
  } else {
    const std::size_t operations =
        trace.contains("ops") && trace["ops"].contains("rank") ? trace["ops"]["rank"].size() : 0;
    const std::string ranks = trace.value("ranks", nlohmann::ordered_json()).dump();
    fmt::print("{}  a recording of {} rank{}, {}\n", console.paint(Paint::strong, path), ranks,
               ranks == "1" ? "" : "s", times(operations, "call"));
    if (!ended.empty()) {
      fmt::print("{}", console.paint(Paint::bad, ended_text(ended, console.width())));
    }
    if (std::all_of(findings.begin(), findings.end(), is_about_the_recording)) {
      fmt::print("all that was begun was ended\n");
    }
    print_findings(findings, console);
  }
  return std::all_of(findings.begin(), findings.end(), is_about_the_recording) ? kDone
                                                                               : kAnswerIsNo;
}

}  // namespace

int run_why(const std::string& which, const Console& console) {
  if (is_file(which)) {
    return why_recording(which, console);
  }
  if (which.find('/') != std::string::npos && matching_jobs(which).empty()) {
    throw UsageError(fmt::format("there is no file '{}', and no job here has that name", which),
                     kSeenJobs, "unisono help trace");
  }
  bool found = false;
  bool somebody_waits = false;
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  for (const Job& job : find_jobs(which)) {
    const std::vector<Finding> findings = explain_hang(job, comm::flight_clock_ns());
    found = true;
    somebody_waits |= !findings.empty();
    if (console.json()) {
      jobs.push_back({{"job", job.world.job},
                      {"ended", job.world.abort},
                      {"findings", findings_json(findings)}});
    } else {
      print_text(job, findings, console);
    }
  }
  if (console.json()) {
    print_why(std::move(jobs));
  } else if (!found) {
    fmt::print("{}\n", kNoJobs);
    console.note(kSeenJobs);
  }
  return somebody_waits ? kAnswerIsNo : kDone;
}

int why_dumps(const std::vector<std::string>& paths, const Console& console) {
  auto [ranks, account] = read_dumps(paths);
  const std::size_t files = ranks.size();
  const std::vector<int> missing = missing_ranks(ranks);
  const JobCalls job = job_calls_of(ranks);
  for (const std::vector<JobCall>& calls : job.calls) {
    account.used += static_cast<std::int64_t>(calls.size());
  }
  const std::vector<Finding> findings = verdict_of(job);
  if (console.json()) {
    nlohmann::ordered_json result{{"job", paths.front()},
                                  {"ended", ""},
                                  {"findings", findings_json(findings)},
                                  {"missing", missing},
                                  {"account", account_json(account)}};
    print_why({std::move(result)});
    return findings.empty() ? kDone : kAnswerIsNo;
  }
  print_findings(findings, console);
  if (findings.empty()) {
    fmt::print("all that was begun was ended, and nothing stands out\n");
  }
  console.note(fmt::format("{} of {} of {}{}",
                           times(static_cast<std::size_t>(account.used), "call"),
                           times(files, "rank"), job.ranks,
                           missing.empty() ? "" : "; no file is of " + ranks_text(missing)));
  note_account(account, console);
  return findings.empty() ? kDone : kAnswerIsNo;
}

}  // namespace unisono::cli
