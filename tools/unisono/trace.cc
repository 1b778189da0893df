// `unisono trace why`: who keeps a job from going on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
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

nlohmann::ordered_json to_json(const Job& job, const std::vector<Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"kind", finding.kind},
                    {"ranks", finding.ranks},
                    {"waiting", finding.waiting},
                    {"waited_s", finding.waited_s},
                    {"text", finding.text},
                    {"details", finding.details},
                    {"next", finding.next}});
  }
  return {{"job", job.world.job}, {"ended", job.world.abort}, {"findings", rows}};
}

int run_trace(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  if (operands.empty() || operands.front() != "why") {
    throw UsageError(operands.empty() ? "what about the job?"
                                      : fmt::format("trace knows no '{}'", operands.front()),
                     "such as unisono trace why", "unisono help trace");
  }
  bool somebody_waits = false;
  nlohmann::ordered_json result{{"schema", "unisono.why/1"}, {"jobs", nlohmann::json::array()}};
  for (const Job& job : find_jobs(operands.size() > 1 ? operands[1] : "")) {
    const std::vector<Finding> findings = explain_hang(job, comm::board_clock_ns());
    somebody_waits |= !findings.empty();
    if (console.json()) {
      result["jobs"].push_back(to_json(job, findings));
    } else {
      print_text(job, findings, console);
    }
  }
  if (console.json()) {
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return somebody_waits ? kAnswerIsNo : kDone;
}

}  // namespace

const Command kTraceCommand = {
    .name = "trace",
    .summary = "say why a job does not go on",
    .operands = "why [JOB | PID]",
    .max_operands = 2,
    .runs_program = false,
    .examples = {{{"unisono trace why", "All jobs of this host."},
                  {"unisono trace why 4711", "The job of one process."},
                  {"unisono trace why --json", "For programs."}}},
    .description =
        "Follows who waits for whom, over all groups of a job, to the ranks that wait for nobody: "
        "one that has not called what the others wait in, is stopped, gone, has left or is late; "
        "and finds ranks that wait for each other in a ring, are in different operations, or wait "
        "for a message that nobody sends. What most ranks wait for comes first.\n\n"
        "The job is read from outside, as by `unisono top`, and need not have been started in "
        "any special way. Exit code 1: somebody waits.",
    .options = {},
    .run = run_trace};

}  // namespace unisono::cli
