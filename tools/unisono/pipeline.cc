// `unisono pipeline`: schedules of pipeline parallelism, listed, shown, verified, simulated, made.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "pipeline/pipeline.h"
#include "pipeline/transfers.h"
#include "pipelines/pipelines.h"

namespace unisono::cli {
namespace {

int run_pipeline(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  const std::string what = operands.empty() ? "list" : operands.front();
  if (what == "list") {
    return list_pipelines(console);
  }
  if (what != "show" && what != "verify" && what != "sim" && what != "make") {
    throw UsageError(fmt::format("pipeline has no subcommand '{}'", what),
                     "use list, show, verify, sim or make, such as unisono pipeline show zbv",
                     "unisono help pipeline");
  }
  if (operands.size() < 2) {
    throw UsageError(fmt::format("pipeline {} what?", what),
                     fmt::format("unisono pipeline {} zbv, or a file", what),
                     "unisono pipeline list");
  }
  pipeline::Pipeline pipeline = pipeline_of(operands[1], arguments);
  const bool is_bare = !has_transfers(pipeline);
  if (is_bare) {
    add_transfers(pipeline);
  }
  if (what == "verify") {
    return verify_pipeline(pipeline, is_bare && has_transfers(pipeline), console);
  }
  if (what == "make") {
    return make_pipeline(pipeline, arguments, console);
  }
  return what == "sim" ? simulate_pipeline(pipeline, arguments, console)
                       : show_pipeline(pipeline, arguments, console);
}

constexpr Option kPipelineOptions[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "P",
     .help = "The number of ranks, for a schedule given by name.",
     .fallback = "4"},
    {.name = "microbatches",
     .letter = 'm',
     .value = "M",
     .help = "The number of microbatches, for a schedule given by name.",
     .fallback = "8"},
    {.name = "chunks",
     .value = "V",
     .help = "Stages per rank, if the schedule leaves the choice (interleaved).",
     .fallback = "2"},
    {.name = "forward",
     .value = "TIME",
     .help = "Time of F (forward) per microbatch and rank, over all its stages, such as 2ms; also "
             "for a CSV file. Numbers without a unit are microseconds if --on or another time with "
             "a unit is given.",
     .fallback = "1"},
    {.name = "input",
     .value = "TIME",
     .help = "Time of I, the input gradient. Without it: as long as F. B takes I + W."},
    {.name = "weight",
     .value = "TIME",
     .help = "Time of W, the weight gradient. Without it: as long as F."},
    {.name = "transfer",
     .value = "TIME",
     .help = "Time of a message between two ranks.",
     .fallback = "0"},
    {.name = "factors",
     .value = "LIST",
     .help = "Relative duration of each stage: 1,1.2,0.9 for three stages."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "Compute message times from the links of a topology: a preset or a file, as for "
             "unisono topo. In sim, simultaneous messages share their links."},
    {.name = "message",
     .value = "BYTES",
     .help = "With --on: the size of a message.",
     .fallback = "32MiB"},
    {.name = "lanes",
     .value = "N",
     .help = "Lanes between two ranks: messages keep their order in one lane, or in one lane each "
             "for forward and backward.",
     .fallback = "2",
     .choices = "1|2"},
    {.name = "capacity",
     .value = "N",
     .help = "Messages that a lane holds before their receives begin; 0: a send ends when its "
             "receive has begun.",
     .fallback = "1"},
    {.name = "jitter",
     .value = "SHARE",
     .help = "For sim: vary each computation by up to this share, up or down.",
     .fallback = "0"},
    {.name = "seed",
     .value = "N",
     .help = "Seed: for sim of the jitter, for make of the moves that it tries.",
     .fallback = "0"},
    {.name = "slow",
     .value = "STAGE=FACTOR",
     .help = "For sim: make a stage take FACTOR times as long, such as 2=1.5."},
    {.name = "limit",
     .value = "AMOUNT",
     .help = "For make: the memory limit per rank, as microbatches of a stage, or as bytes, such "
             "as 4GiB, if a file states the bytes of each. Without it: what WHICH needs."},
    {.name = "work",
     .value = "MILLIONS",
     .help = "For make: the limit on orders that the search times, in computations; 1000 take some "
             "seconds.",
     .fallback = "500"},
    {.name = "format",
     .value = "WHICH",
     .help = "For show and make. text: the diagram, or the result; csv: the format of "
             "torch.distributed.pipelining; pipeline: unisono.pipeline/1.",
     .fallback = "text",
     .choices = "text|csv|pipeline"}};

}  // namespace

const Command kPipelineCommand = {
    .name = "pipeline",
    .summary = "list, show, verify, simulate and make schedules of pipeline parallelism",
    .operands = "list | show WHICH | verify WHICH | sim WHICH | make WHICH",
    .max_operands = 2,
    .runs_program = false,
    .examples = {{{"unisono pipeline show zbv -n 4 -m 8", "Draw the bubble diagram of ZBV."},
                  {"unisono pipeline verify theirs.csv",
                   "Prove a schedule of torch.distributed.pipelining."},
                  {"unisono pipeline make zb-h1 -n 4 --factors 1,1,1.2,1",
                   "Find a better order for stages that differ."}}},
    .description =
        "WHICH is a schedule by name (see unisono pipeline list), the CSV that "
        "torch.distributed.pipelining writes, or a file of unisono.pipeline/1.\n\n"
        "verify proves, across the ranks: every computation happens once, on the rank of its "
        "stage, and has its input; every message is sent and received once, in the same order at "
        "both ends of a lane; gradients are reduced after the last W; and the ranks do not "
        "deadlock with the lanes' capacity. It prints the least capacity that works, and the most "
        "activations that each rank holds. Exit code 1: the schedule is wrong.\n\n"
        "If a file has no sends and receives, they are derived from its order.\n\n"
        "make searches for a faster order of the same stages that needs no more memory than WHICH, "
        "or than --limit. It starts from the best schedule of the catalogue and from generated "
        "orders, and moves actions on the longest path of waiting. The result is proved, and never "
        "slower than WHICH if WHICH keeps the limit.\n\n"
        "show draws time from left to right, one row per rank: a letter and a number are an action "
        "and its microbatch; dots are waiting.",
    .options = kPipelineOptions,
    .run = run_pipeline};

}  // namespace unisono::cli
