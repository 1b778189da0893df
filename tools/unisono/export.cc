// `unisono export`: writes a schedule for another executor.
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
    throw UsageError("--in-place needs --to msccl++",
                     "an MSCCL program declares itself whether it runs in place or out of place",
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
    throw UsageError(fmt::format("{} has counts, but MSCCL supports only blocks of equal size",
                                 arguments.operands().front()),
                     "remove the counts from the file", "unisono help export");
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
     .help = "msccl-xml: the XML for MSCCL's executors in NCCL and RCCL. msccl++: the JSON plan "
             "for the executor of MSCCL++.",
     .fallback = "msccl-xml",
     .choices = "msccl-xml|msccl++"},
    {.name = "in-place",
     .help = "For msccl++: write the plan for calls in place, whose input and output are one "
             "buffer. Without it: for calls out of place."},
    {.name = "ranks", .letter = 'n', .value = "N", .help = "The number of ranks.", .fallback = "4"},
    {.name = "root", .value = "R", .help = "The root of broadcast and reduce.", .fallback = "0"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "The file to write. Without it: standard output."}};

}  // namespace

const Command kExportCommand = {
    .name = "export",
    .summary = "write a schedule for another executor",
    .operands = "COLLECTIVE/ALGORITHM | FILE.json",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono export all_reduce/ring -n 8 -o ring.xml",
                   "Write a program for MSCCL on eight GPUs."},
                  {"unisono verify ring.xml", "Prove this program, or one from elsewhere."},
                  {"unisono export all_gather/ring -n 8 --to msccl++ -o ring.json",
                   "Write a plan for MSCCL++; verify reads it too."}}},
    .description =
        "Writes a schedule that unisono has proved as a program for GPUs under MSCCL or MSCCL++. "
        "Each rank gets one thread block per peer and direction, and one for copies within the "
        "GPU. Dependencies between thread blocks are explicit.\n\n"
        "For MSCCL++, data is put into the memory of the other GPU: at its final place if that is "
        "free, otherwise into scratch. The plan is proved before it is written; no executor of "
        "MSCCL++ has run one yet.\n\n"
        "Both formats support all_reduce, all_gather, reduce_scatter, all_to_all, broadcast and "
        "reduce. `verify`, `show`, `sim`, `plan` and `view` also read such files, including those "
        "of other tools.",
    .options = kExportOptions,
    .run = run_export};

}  // namespace unisono::cli
