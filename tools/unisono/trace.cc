// `unisono trace`: who keeps a job from going on, and what became of recordings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "record/chrome.h"
#include "record/files.h"
#include "record/merge.h"
#include "top/why.h"

namespace unisono::cli {
namespace {

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
  int number = 0;
  for (const Finding& finding : findings) {
    fmt::print("{}  {}  {}\n", ++number, console.paint(Paint::bad, finding.kind), finding.text);
    for (const std::string& detail : finding.details) {
      fmt::print("   {}\n", detail);
    }
    if (!finding.waiting.empty() && finding.waited_s > 0) {
      fmt::print("   waiting for it: {} {}, the longest for {:.1f} s\n",
                 finding.waiting.size() == 1 ? "rank" : "ranks", fmt::join(finding.waiting, " "),
                 finding.waited_s);
    }
    fmt::print("   next   {}\n", finding.next);
  }
}

int run_why(const std::string& which, const Console& console) {
  bool somebody_waits = false;
  nlohmann::ordered_json result{{"schema", "unisono.why/1"}, {"jobs", nlohmann::json::array()}};
  for (const Job& job : find_jobs(which)) {
    const std::vector<Finding> findings = explain_hang(job, comm::board_clock_ns());
    somebody_waits |= !findings.empty();
    if (console.json()) {
      result["jobs"].push_back({{"job", job.world.job},
                                {"ended", job.world.abort},
                                {"findings", findings_json(findings)}});
    } else {
      print_text(job, findings, console);
    }
  }
  if (console.json()) {
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return somebody_waits ? kAnswerIsNo : kDone;
}

void write(const Arguments& arguments, const std::string& text, const std::string& name,
           const Console& console) {
  const std::string path = arguments.has("output") ? arguments.text("output") : name;
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_text(path, text);
  console.note(fmt::format("{}  {} KiB", path, text.size() / 1024));
}

// "job.json" -> "job.chrome.json"
int run_export(const std::string& path, const Arguments& arguments, const Console& console) {
  const std::string name = path.substr(path.rfind('/') + 1);
  write(arguments, dump(chrome_trace_of(read_trace(path))),
        name.substr(0, name.rfind('.')) + ".chrome.json", console);
  return kDone;
}

int run_merge(const std::string& path, const Arguments& arguments, const Console& console) {
  std::vector<RankRecord> records;
  for (const auto& file : read_recordings(path)) {
    auto more = read_records(file);
    std::move(more.begin(), more.end(), std::back_inserter(records));
  }
  if (records.empty()) {
    throw UsageError(fmt::format("{} has no recordings", path), "of ranks that had connected",
                     "UNISONO_RECORD=DIR for each rank, then unisono trace merge DIR");
  }
  write(arguments, dump(merge_records(records, {})), "recording.json", console);
  return kDone;
}

int run_trace(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  const std::string what = operands.empty() ? "" : operands.front();
  if (what != "why" && what != "export" && what != "merge") {
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
                     what == "export" ? "unisono trace export FILE" : "unisono trace merge FOLDER",
                     "unisono help trace");
  }
  return what == "export" ? run_export(which, arguments, console)
                          : run_merge(which, arguments, console);
}

constexpr Option kOptions[] = {
    {.name = "format",
     .value = "WHICH",
     .help = "Of export. chrome: the trace event format of chrome://tracing and Perfetto.",
     .fallback = "chrome",
     .choices = "chrome"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "Where export and merge write; - is standard output. Without it: a file of this "
             "folder."}};

}  // namespace

const Command kTraceCommand = {
    .name = "trace",
    .summary = "say why a job does not go on; convert recordings",
    .operands = "why [JOB | PID] | export FILE | merge FOLDER",
    .max_operands = 2,
    .runs_program = false,
    .examples = {{{"unisono trace why", "All jobs of this host."},
                  {"unisono trace why 4711", "The job of one process."},
                  {"unisono trace export run.json -o run.chrome.json",
                   "A recording for ui.perfetto.dev or chrome://tracing."}}},
    .description =
        "why follows who waits for whom, over all groups of a job, to the ranks that wait for "
        "nobody: "
        "one that has not called what the others wait in, is stopped, gone, has left or is late; "
        "and finds ranks that wait for each other in a ring, are in different operations, or wait "
        "for a message that nobody sends. What most ranks wait for comes first.\n\n"
        "The job is read from outside, as by `unisono top`, and need not have been started in "
        "any special way. Exit code 1: somebody waits.\n\n"
        "export converts what unisono run --record wrote: a track for each rank, slices for "
        "operations and for what a rank did at each step, arrows for messages. merge makes one "
        "recording of what ranks left in the folder UNISONO_RECORD, where something else than "
        "unisono run had started them.",
    .options = kOptions,
    .run = run_trace};

}  // namespace unisono::cli
