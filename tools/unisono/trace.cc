// `unisono trace`: who keeps a job from going on, and what became of recordings.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes_text.h"
#include "cli/account.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/text_file.h"
#include "cli/wrap.h"
#include "imports/imports.h"
#include "plan/plan.h"
#include "record/files.h"
#include "record/merge.h"
#include "record/views.h"
#include "show/show.h"
#include "top/why.h"
#include "trace/replay.h"
#include "trace/skew.h"

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
    fmt::print("{}\n", console.paint(Paint::bad, "ended: " + job.world.abort));
  }
  if (findings.empty()) {
    fmt::print("nobody waits\n");
  }
  print_findings(findings, console);
}

void print_json(nlohmann::ordered_json jobs) {
  const nlohmann::ordered_json result{{"schema", "unisono.why/1"}, {"jobs", std::move(jobs)}};
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// And no job, nor a process: a job may be named slurm/4711/0, as no file is here, and what is all
// digits is a process.
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
    print_json({{{"job", path}, {"ended", ended}, {"findings", findings_json(findings)}}});
  } else {
    const std::size_t operations =
        trace.contains("ops") && trace["ops"].contains("rank") ? trace["ops"]["rank"].size() : 0;
    const std::string ranks = trace.value("ranks", nlohmann::ordered_json()).dump();
    fmt::print("{}  a recording of {} rank{}, {}\n", console.paint(Paint::strong, path), ranks,
               ranks == "1" ? "" : "s", times(operations, "call"));
    if (!ended.empty()) {
      fmt::print("{}\n", console.paint(Paint::bad, "ended: " + ended));
    }
    if (std::all_of(findings.begin(), findings.end(), is_about_the_recording)) {
      fmt::print("all that was begun was ended\n");
    }
    print_findings(findings, console);
  }
  return std::all_of(findings.begin(), findings.end(), is_about_the_recording) ? kDone
                                                                               : kAnswerIsNo;
}

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
    print_json(std::move(jobs));
  } else if (!found) {
    fmt::print("{}\n", kNoJobs);
    console.note(kSeenJobs);
  }
  return somebody_waits ? kAnswerIsNo : kDone;
}

// `is_free`: nothing else is written to standard output. `account`: of what it was made of.
void tell_written(const std::string& path, std::size_t bytes, bool is_free, const Console& console,
                  const Account* account = nullptr) {
  if (console.json() && is_free) {
    nlohmann::ordered_json told{{"schema", "unisono.written/1"}, {"file", path}, {"bytes", bytes}};
    if (account != nullptr) {
      told["account"] = account_json(*account);
    }
    fmt::print("{}\n", told.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    console.note(fmt::format("{}  {}", path, format_bytes(bytes)));
  }
}

void write(const Arguments& arguments, const std::string& text, const std::string& name,
           const Console& console, const Account* account = nullptr) {
  const std::string path = arguments.has("output") ? arguments.text("output") : name;
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_output(path, text);
  tell_written(path, text.size(), true, console, account);
}

// "job.json" -> "job.chrome.json"
int run_export(const std::string& path, const Arguments& arguments, const Console& console) {
  const std::string name = path.substr(path.rfind('/') + 1);
  write(arguments, dump(chrome_trace_of(read_trace(path))),
        name.substr(0, name.rfind('.')) + ".chrome.json", console);
  return kDone;
}

int run_merge(const std::string& path, const Arguments& arguments, const Console& console) {
  std::vector<trace::RankRecord> records;
  bool is_of_others = false;
  for (const auto& file : read_recordings(path)) {
    auto more = trace::read_records(file);
    is_of_others |= more.empty() && trace::is_of_other_version(file);
    std::move(more.begin(), more.end(), std::back_inserter(records));
  }
  if (records.empty() && is_of_others) {
    throw UsageError(fmt::format("{} was recorded by another version of unisono", path), {},
                     "merge it with the unisono that the ranks ran with");
  }
  if (records.empty()) {
    throw UsageError(fmt::format("{} has no recordings", path), "of ranks that had connected",
                     "UNISONO_RECORD=DIR for each rank, then unisono trace merge DIR");
  }
  write(arguments, dump(merge_records(records, {})), "recording.json", console);
  return kDone;
}

// Ranks that left nothing are missing in the recording.
std::vector<ImportedRank> read_ranks(const Arguments& arguments) {
  std::vector<ImportFile> files;
  for (std::size_t i = 1; i < arguments.operands().size(); ++i) {
    const std::string& path = arguments.operands()[i];
    files.push_back({.path = path, .text = read_text_file(path, kMostOfRecording)});
  }
  if (files.empty()) {
    throw UsageError("trace import what?", "unisono trace import rank0.json rank1.json",
                     "unisono help trace");
  }
  std::vector<ImportedRank> ranks = read_imports(files);
  std::ranges::sort(ranks, {}, &ImportedRank::rank);
  const auto same = std::ranges::adjacent_find(ranks, {}, &ImportedRank::rank);
  if (same != ranks.end()) {
    throw UsageError(
        fmt::format("{} and {} are both of rank {}", same->path, (same + 1)->path, same->rank),
        "give one file of each rank", "unisono help trace");
  }
  return ranks;
}

// `account`: nullptr where a recording is written as well, which tells it.
void write_workload(const std::vector<ImportedRank>& ranks, const Arguments& arguments,
                    const Account* account, const Console& console) {
  const ImportedWorkload workload = workload_of(ranks);
  const std::string text = workload.document.dump(1) + "\n";
  write_output(arguments.text("workload"), text);
  tell_written(arguments.text("workload"), text.size(), account != nullptr, console, account);
  if (workload.left_out > 0) {
    console.note(
        fmt::format("{} left out that not all ranks have", times(workload.left_out, "call")));
  }
  if (workload.without_size > 0) {
    console.note(fmt::format("{} of no bytes: the profiler tells sizes with record_shapes=True",
                             times(workload.without_size, "call")));
  }
}

// Calls without times make no recording, but who is behind can be told.
void import_order(std::vector<ImportedRank>& ranks, const Account& account,
                  const Arguments& arguments, const Console& console) {
  if (arguments.has("output") || !arguments.has("workload")) {
    throw UsageError("logs of NCCL have no times: there is no recording to make of them",
                     "give --workload FILE: the collectives in their order, without what was "
                     "computed between them",
                     "unisono help trace");
  }
  if (const std::int64_t stuck = order(ranks); stuck > 0) {
    console.note(fmt::format("{} come in another order on some ranks than on others",
                             times(static_cast<std::size_t>(stuck), "call")));
  }
  for (const std::string& behind : who_is_behind(ranks)) {
    console.note(behind);
  }
  write_workload(ranks, arguments, &account, console);
  note_account(account, console);
}

// A recording without them says nothing of what the others waited for.
void note_missing(const std::vector<ImportedRank>& ranks, const Console& console) {
  const std::vector<int> missing = missing_ranks(ranks);
  if (!missing.empty()) {
    console.note(fmt::format("{} of the job {} missing: no file is of {}", ranks_text(missing),
                             missing.size() == 1 ? "is" : "are",
                             missing.size() == 1 ? "it" : "them"));
  }
}

int run_import(const Arguments& arguments, const Console& console) {
  std::vector<ImportedRank> ranks = read_ranks(arguments);
  const std::int64_t before_all = leave_out_before_all(ranks);
  std::size_t calls = 0;
  Account account;
  for (const ImportedRank& rank : ranks) {
    calls += rank.calls.size();
    account.add(rank.account);
  }
  account.used = static_cast<std::int64_t>(calls);
  account.leave_out(before_all, "from before the first ones that other ranks have");
  if (std::ranges::any_of(ranks, [](const ImportedRank& rank) { return !rank.has_groups; })) {
    account.assume("all calls are of all ranks: their groups are not told");
  }
  if (calls == 0) {
    throw UsageError("the files have no collectives",
                     account_text(account) +
                         "\ntraces of the profiler have them from CPU backends, "
                         "and of NCCL with its kernels",
                     "unisono help trace");
  }
  const std::string summary =
      fmt::format("{} of {}", times(calls, "collective"), times(ranks.size(), "rank"));
  note_missing(ranks, console);
  if (!ranks.front().has_times) {
    console.note(summary + "; their order is known, not their times");
    import_order(ranks, account, arguments, console);
    return kDone;
  }
  const std::vector<double> uncertainty = align(ranks);
  write(arguments, dump(recording_of(ranks, uncertainty)), "imported.json", console, &account);
  console.note(summary);
  note_account(account, console);
  if (arguments.has("workload")) {
    write_workload(ranks, arguments, nullptr, console);
  }
  return kDone;
}

int run_trace(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  const std::string what = operands.empty() ? "" : operands.front();
  if (what == "import") {
    return run_import(arguments, console);
  }
  if (operands.size() > 2) {
    throw UsageError(fmt::format("trace {} takes one name, not {}", what, operands.size() - 1), {},
                     "unisono help trace");
  }
  if (arguments.has("workload")) {
    throw UsageError("--workload goes with unisono trace import", {}, "unisono help trace");
  }
  if (what != "why" && what != "export" && what != "merge" && what != "replay" && what != "skew") {
    throw UsageError(
        operands.empty() ? "what about the job?" : fmt::format("trace knows no '{}'", what),
        "such as unisono trace why", "unisono help trace");
  }
  const std::string which = operands.size() > 1 ? operands[1] : "";
  if (what == "why") {
    return run_why(which, console);
  }
  if (which.empty()) {
    throw UsageError(fmt::format("trace {} what?", what),
                     fmt::format("unisono trace {} {}", what, what == "merge" ? "FOLDER" : "FILE"),
                     "unisono help trace");
  }
  if (what == "skew") {
    show_skew(which, skew_of(read_trace(which)), console);
    return kDone;
  }
  if (what == "replay") {
    return run_replay(which, console);
  }
  return what == "export" ? run_export(which, arguments, console)
                          : run_merge(which, arguments, console);
}

constexpr Option kTraceOptions[] = {
    {.name = "format",
     .value = "WHICH",
     .help = "For export. chrome: the trace event format of chrome://tracing and Perfetto.",
     .fallback = "chrome",
     .choices = "chrome"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "Where export, merge and import write; - is standard output. Without it: a file of "
             "this folder."},
    {.name = "workload",
     .value = "FILE",
     .help = "For import: also write what the ranks did as a workload, for unisono sim on another "
             "network."}};

}  // namespace

const Command kTraceCommand = {
    .name = "trace",
    .summary = "say why a job does not go on, or who is late; convert recordings, play them again",
    .operands =
        "why [JOB | PID | FILE] | skew FILE | export FILE | merge FOLDER | replay FILE | import "
        "FILE...",
    .max_operands = -1,
    .runs_program = false,
    .examples = {{{"unisono trace why", "All jobs of this host."},
                  {"unisono trace why run.json", "A job that unisono run --record recorded."},
                  {"unisono trace skew run.json", "Which rank the others wait for."}}},
    .description =
        "why follows who waits for whom, over all groups of a job, to the ranks that wait for "
        "nobody: "
        "one that has not called what the others wait in, is stopped, gone, has left or is late; "
        "and finds ranks that wait for each other in a ring, are in different operations, or wait "
        "for a message that nobody sends. What most ranks wait for comes first.\n\n"
        "The job is read from outside, as by `unisono top`, and needs no special way of being "
        "started. For a FILE that unisono run --record wrote, it says what ended the job or kept "
        "it from going on, first in the words of its ranks. Exit code 1: somebody waits, or "
        "waited.\n\n"
        "skew names the rank that comes last to the operations of a recording most, what that "
        "costs "
        "the others, and since when it is so. A rank counts as last where it began later than the "
        "one before it by more than their clocks are uncertain.\n\n"
        "export converts what unisono run --record wrote: a track for each rank, slices for "
        "operations and for what a rank did at each step, arrows for messages. merge makes one "
        "recording of what ranks left in the folder UNISONO_RECORD, where something else than "
        "unisono run had started them.\n\n"
        "import makes a recording of what PyTorch left, one file a rank: traces that its profiler "
        "exported (.json or .json.gz, with the collectives of CPU backends, or NCCL's kernels), or "
        "dumps of its flight recorder, as JSON or pickled (read as plain data: nothing in them is "
        "run). Logs of "
        "NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL) have no times: of them it makes a "
        "workload alone, and says which rank is behind. Clocks of different hosts are brought "
        "together by the ends of collectives that no rank leaves before all have come. The last "
        "lines say how much was read and used, what was left out and why, and what was assumed.\n\n"
        "replay runs the collectives of a recording again, on the engine of all ranks in this one "
        "process and on a simulated network: each rank does what it did in the same order, a rank "
        "that was killed stops where it stopped, and whoever waited then waits now; send and recv "
        "keep "
        "their order, too. Inputs are "
        "made up, so the hash of the results is the same each time. Exit code 1: it cannot have "
        "been as it is recorded, or nothing of it can be played.",
    .options = kTraceOptions,
    .run = run_trace};

}  // namespace unisono::cli
