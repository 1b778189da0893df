// `unisono export`: a schedule in the words of another executor.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "msccl/export.h"
#include "msccl/xml.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

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
  std::string text;
  try {
    text = msccl::to_xml(msccl::to_program(schedule));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) {
      throw;
    }
    throw UsageError(std::string(error.summary()), std::string(error.hint()),
                     "unisono help export");
  }
  if (!arguments.has("output")) {
    std::fputs(text.c_str(), stdout);
    return kDone;
  }
  const std::string path = arguments.text("output");
  write_output(path, text);
  if (!console.quiet()) {
    fmt::print("{}: {} for {} GPUs\n", path, title_of(schedule), schedule.ranks);
  }
  return kDone;
}

constexpr Option kOptions[] = {
    {.name = "to",
     .value = "FORM",
     .help = "msccl-xml: the XML that MSCCL's executors inside NCCL and RCCL read.",
     .fallback = "msccl-xml",
     .choices = "msccl-xml"},
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
                  {"unisono sim ring.xml --on dgx_h100 --bytes 64MiB", "And predict it."}}},
    .description =
        "A schedule that unisono has proved, as a program that runs on GPUs under MSCCL. Each rank "
        "gets one thread block for each peer and direction, and one for what stays on the GPU; "
        "what must come first is told from block to block.\n\n"
        "The form has words for all_reduce, all_gather, reduce_scatter, all_to_all, broadcast and "
        "reduce. `verify`, `show`, `sim`, `plan` and `view` read such files as well, whoever made "
        "them.",
    .options = kOptions,
    .run = run_export};

}  // namespace unisono::cli
