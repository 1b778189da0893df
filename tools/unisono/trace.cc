// `unisono trace`: diagnoses jobs, and converts and examines recordings.
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
#include "trace/dumps.h"
#include "trace/replay.h"
#include "trace/skew.h"
#include "trace/what_if.h"
#include "trace/why.h"

namespace unisono::cli {
namespace {

// `is_free`: nothing else is written to standard output. `account`: the account of its source.
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

// `account`: nullptr if a recording is written too, which reports it.
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
    console.note(
        fmt::format("{} without a size: the profiler records sizes with record_shapes=True",
                    times(workload.without_size, "call")));
  }
}

// Reports the ranks that are behind, because calls without times make no recording.
void import_order(std::vector<ImportedRank>& ranks, const Account& account,
                  const Arguments& arguments, const Console& console) {
  if (arguments.has("output") || !arguments.has("workload")) {
    throw UsageError("logs of NCCL have no times: there is no recording to make of them",
                     "give --workload FILE: the collectives in their order, without what was "
                     "computed between them",
                     "unisono help trace");
  }
  if (const std::int64_t stuck = order(ranks); stuck > 0) {
    console.note(fmt::format("{} are in different orders on different ranks",
                             times(static_cast<std::size_t>(stuck), "call")));
  }
  for (const std::string& behind : who_is_behind(ranks)) {
    console.note(behind);
  }
  write_workload(ranks, arguments, &account, console);
  note_account(account, console);
}

// Reports ranks without a file: the recording does not show how others waited for them.
void note_missing(const std::vector<ImportedRank>& ranks, const Console& console) {
  const std::vector<int> missing = missing_ranks(ranks);
  if (!missing.empty()) {
    console.note(fmt::format("{} of the job {} missing: no file is of {}", ranks_text(missing),
                             missing.size() == 1 ? "is" : "are",
                             missing.size() == 1 ? "it" : "them"));
  }
}

int run_import(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  if (operands.size() < 2) {
    throw UsageError("trace import what?", "unisono trace import rank0.json rank1.json",
                     "unisono help trace");
  }
  auto [ranks, account] = read_dumps({operands.begin() + 1, operands.end()});
  std::size_t calls = 0;
  for (ImportedRank& rank : ranks) {
    calls += rank.calls.size();
    account.leave_out(static_cast<std::int64_t>(rank.messages.size()), kSendsAndReceives);
    rank.messages.clear();
  }
  account.used = static_cast<std::int64_t>(calls);
  if (calls == 0) {
    throw UsageError("the files have no collectives",
                     account_text(account) +
                         "\ntraces of the profiler have the collectives of CPU backends, "
                         "and of NCCL if they have its kernels",
                     "unisono help trace");
  }
  const std::string summary =
      fmt::format("{} of {}", times(calls, "collective"), times(ranks.size(), "rank"));
  note_missing(ranks, console);
  if (!ranks.front().has_times && !ranks.front().has_sizes) {
    throw UsageError("the files count calls, but contain neither times nor sizes",
                     account_text(account) + "\ntry unisono trace why with them",
                     "unisono help trace");
  }
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
  if (what == "whatif") {
    return run_what_if(arguments, console);
  }
  for (const char* option : {"without", "faster", "with"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} goes with unisono trace whatif", option), {},
                       "unisono help trace");
    }
  }
  if (what == "why" && operands.size() > 1 && are_dumps({operands.begin() + 1, operands.end()})) {
    return why_dumps({operands.begin() + 1, operands.end()}, console);
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
     .help = "The file that export, merge and import write; - is standard output. Without it: a "
             "file in this folder."},
    {.name = "without",
     .value = "rank=RANKS",
     .help = "For whatif: before each call, these ranks compute no longer than the other ranks do "
             "before the same call."},
    {.name = "faster",
     .value = "compute=FACTOR[,rank=RANKS]",
     .help = "For whatif: all ranks, or these ranks, compute FACTOR times as fast."},
    {.name = "with",
     .value = "link=FACTOR",
     .help = "For whatif: data moves FACTOR times as fast."},
    {.name = "workload",
     .value = "FILE",
     .help = "For import: also write the run as a workload, for unisono sim on another network."}};

}  // namespace

const Command kTraceCommand = {
    .name = "trace",
    .summary = "say why a job does not go on, who is late, and what that costs; convert recordings",
    .operands =
        "why [JOB | PID | FILE...] | whatif FILE... | skew FILE | export FILE | merge FOLDER | "
        "replay FILE | import FILE...",
    .max_operands = -1,
    .runs_program = false,
    .examples = {{{"unisono trace why", "Diagnose all jobs of this host."},
                  {"unisono trace why run.json",
                   "Diagnose a job that unisono run --record recorded."},
                  {"unisono trace whatif run.json --without rank=3",
                   "Compute how much time a slow rank costs."}}},
    .description =
        "why follows which rank waits for which, over all groups of a job, to the ranks that cause "
        "the waiting: a rank that has not called the operation that the others wait in, is "
        "stopped, has died, has left or is late. It also finds ranks that wait for each other in a "
        "ring, are in different operations, or wait for a message that nobody sends. The cause "
        "that most ranks wait for comes first.\n\n"
        "The job is read from outside, as by `unisono top`, and needs no special start. For a FILE "
        "of `unisono run --record`, why reports what ended or blocked the job, first in the words "
        "of its ranks. For the files that import reads, or an answer of NCCL's RAS (ncclras -f "
        "json), it names the rank to blame. Exit code 1: a rank waits, or waited.\n\n"
        "whatif simulates a recording, or the files that import reads, again with one change: a "
        "rank that computes as fast as the others, faster computing or faster links. The first "
        "sentence says what the change saves. The table shows the cost of the slowest ranks, of "
        "the slowest link and of communication that no computation hides. In the simulation each "
        "rank computes between its calls as long as in the recording. An operation takes as long "
        "as in the recording, counted from the arrival of its last rank. The line below the table "
        "compares the recording with "
        "a simulation without the change.\n\n"
        "skew names the rank that most often comes last to the operations of a recording, what "
        "this costs the others, and since when. A rank counts as last only if it began later than "
        "the rank before it by more than the uncertainty of their clocks.\n\n"
        "export converts a recording of `unisono run --record`: a track for each rank, slices for "
        "operations and for what a rank did at each step, arrows for messages. merge makes one "
        "recording from the files that ranks left in the folder UNISONO_RECORD, if another "
        "launcher than `unisono run` started them.\n\n"
        "import makes a recording from files of PyTorch, one per rank: traces that its profiler "
        "exported (.json or .json.gz, with the collectives of CPU backends, or NCCL's kernels), or "
        "dumps of its flight recorder, as JSON or pickled (read as plain data: nothing in them is "
        "run); or from the files of NCCL Inspector, one per process. NCCL logs (NCCL_DEBUG=INFO, "
        "NCCL_DEBUG_SUBSYS=INIT,COLL) contain no times: from them, import makes only a workload, "
        "and reports which rank is behind. import aligns the clocks of different hosts by the ends "
        "of collectives that no rank leaves before all have arrived. The last lines report how "
        "much was read and used, what was left out and why, and what was assumed.\n\n"
        "replay runs the collectives of a recording again, with the engines of all ranks in this "
        "one process and on a simulated network. Each rank repeats its operations in the same "
        "order. A rank that was killed stops at the same point, and the ranks that waited then "
        "wait again. send and recv keep their order, too. Inputs are made up, so the hash of the "
        "results is the same each time. Exit code 1: the run cannot have happened as it is "
        "recorded, or no part of it can be replayed.",
    .options = kTraceOptions,
    .run = run_trace};

}  // namespace unisono::cli
