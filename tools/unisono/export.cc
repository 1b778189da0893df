// `unisono export`: a schedule in the words of another executor.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "msccl/export.h"
#include "msccl/xml.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

std::string plan_text(const Schedule& schedule, Aliasing aliasing) {
  const mscclpp::ExecutionPlan plan = mscclpp::to_plan(schedule, aliasing);
  if (const mscclpp::PlanProof proof = mscclpp::check(plan); !proof.flaws.empty()) {
    throw Error(ErrorCode::internal, fmt::format("the plan of {} is wrong: {}", title_of(schedule),
                                                 to_text(proof.flaws.front())));
  }
  return mscclpp::to_json(plan);
}

std::string exported_text(const Schedule& schedule, const Arguments& arguments) {
  const bool is_plan = arguments.has("to") && arguments.text("to") == "msccl++";
  if (arguments.has("in-place") && !is_plan) {
    throw UsageError("--in-place goes with --to msccl++",
                     "a program of MSCCL says itself in which ways it may be called",
                     "unisono help export");
  }
  try {
    return is_plan ? plan_text(schedule,
                               arguments.has("in-place") ? Aliasing::in_place : Aliasing::none)
                   : msccl::to_xml(msccl::to_program(schedule));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) {
      throw;
    }
    throw UsageError(std::string(error.summary()), std::string(error.hint()),
                     "unisono help export");
  }
}

int run_export(const Arguments& arguments, const Console& console) {
  const Schedule schedule = asked_schedule(arguments, "export");
  if (const std::vector<Finding> findings = verify(schedule); !findings.empty()) {
    throw UsageError(fmt::format("{} is not a valid schedule", title_of(schedule)),
                     to_text(findings.front()),
                     fmt::format("unisono verify {}", arguments.operands().front()));
  }
  if (!schedule.counts.empty()) {
    throw UsageError(fmt::format("{} has counts, and MSCCL has blocks of equal size only",
                                 arguments.operands().front()),
                     "leave the counts out of the file", "unisono help export");
  }
  const std::string text = exported_text(schedule, arguments);
  if (!arguments.has("output")) {
    std::fputs(text.c_str(), stdout);
    return kDone;
  }
  const std::string path = arguments.text("output");
  write_output(path, text);
  if (console.json()) {
    const nlohmann::ordered_json told{{"schema", "unisono.export/1"},
                                      {"file", path},
                                      {"bytes", text.size()},
                                      {"schedule", title_of(schedule)},
                                      {"gpus", schedule.ranks}};
    fmt::print("{}\n", told.dump());
  } else if (!console.quiet()) {
    fmt::print("{}: {} for {} GPUs\n", path, title_of(schedule), schedule.ranks);
  }
  return kDone;
}

constexpr Option kExportOptions[] = {
    {.name = "to",
     .value = "FORM",
     .help = "msccl-xml: the XML that MSCCL's executors inside NCCL and RCCL read. msccl++: the "
             "JSON plan that the executor of MSCCL++ reads.",
     .fallback = "msccl-xml",
     .choices = "msccl-xml|msccl++"},
    {.name = "in-place",
     .help = "For msccl++, where a plan is for one of the two: of calls whose input and output "
             "are one buffer."},
    {.name = "ranks", .letter = 'n', .value = "N", .help = "How many ranks.", .fallback = "4"},
    {.name = "root", .value = "R", .help = "The root of broadcast and reduce.", .fallback = "0"},
    {.name = "output", .letter = 'o', .value = "FILE", .help = "Without it: the terminal."}};

}  // namespace

const Command kExportCommand = {
    .name = "export",
    .summary = "write a schedule for another executor",
    .operands = "COLLECTIVE/ALGORITHM | FILE.json",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono export all_reduce/ring -n 8 -o ring.xml", "For MSCCL on eight GPUs."},
                  {"unisono verify ring.xml", "Prove what was written, or what others wrote."},
                  {"unisono export all_gather/ring -n 8 --to msccl++ -o ring.json",
                   "For MSCCL++; verify reads it too."}}},
    .description =
        "A schedule that unisono has proved, as a program that runs on GPUs under MSCCL or "
        "MSCCL++. Each rank "
        "gets one thread block for each peer and direction, and one for what stays on the GPU; "
        "what must come first is told from block to block.\n\n"
        "For MSCCL++, what is sent is put into the memory of the other GPU: where it is to be, if "
        "that is free, else into scratch. The plan is proved before it is written; no executor of "
        "MSCCL++ has run one yet.\n\n"
        "The forms have words for all_reduce, all_gather, reduce_scatter, all_to_all, broadcast "
        "and reduce. `verify`, `show`, `sim`, `plan` and `view` read such files as well, whoever "
        "made them.",
    .options = kExportOptions,
    .run = run_export};

}  // namespace unisono::cli
