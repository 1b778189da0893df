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
    throw UsageError(fmt::format("pipeline knows no '{}'", what),
                     "list, show, verify, sim or make, such as unisono pipeline show zbv",
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
     .help = "Ranks of a schedule by name.",
     .fallback = "4"},
    {.name = "microbatches",
     .letter = 'm',
     .value = "M",
     .help = "Microbatches of a schedule by name.",
     .fallback = "8"},
    {.name = "chunks",
     .value = "V",
     .help = "Stages on each rank, where a schedule leaves the choice (interleaved).",
     .fallback = "2"},
    {.name = "forward",
     .value = "TIME",
     .help = "What F of a microbatch takes on a rank, over all its stages, such as 2ms; also of a "
             "CSV file. Numbers without a unit are microseconds with --on or beside a time that "
             "has one.",
     .fallback = "1"},
    {.name = "input",
     .value = "TIME",
     .help = "What I, the input gradient, takes; otherwise as long as F. B takes I + W."},
    {.name = "weight",
     .value = "TIME",
     .help = "What W, the weight gradient, takes; otherwise as long as F."},
    {.name = "transfer",
     .value = "TIME",
     .help = "What a message between two ranks takes.",
     .fallback = "0"},
    {.name = "factors",
     .value = "LIST",
     .help = "How long each stage takes against the others: 1,1.2,0.9 for three stages."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "Messages take what the links between two ranks of a topology take. sim lets those "
             "that travel at once share their links. A preset "
             "or a file, as for unisono topo."},
    {.name = "message",
     .value = "BYTES",
     .help = "With --on: how long a message is.",
     .fallback = "32MiB"},
    {.name = "lanes",
     .value = "N",
     .help = "Messages between two ranks keep their order in one lane, or in two: forward and "
             "backward.",
     .fallback = "2",
     .choices = "1|2"},
    {.name = "capacity",
     .value = "N",
     .help = "How many messages a lane holds that no receive waits for yet; 0: a send ends when "
             "its receive has begun.",
     .fallback = "1"},
    {.name = "jitter",
     .value = "SHARE",
     .help = "For sim: each computation takes up to this share longer or shorter.",
     .fallback = "0"},
    {.name = "seed",
     .value = "N",
     .help = "For sim: which jitter. For make: which moves are tried.",
     .fallback = "0"},
    {.name = "slow",
     .value = "STAGE=FACTOR",
     .help = "For sim: a stage that takes FACTOR times as long, such as 2=1.5."},
    {.name = "limit",
     .value = "AMOUNT",
     .help = "For make: what a rank may hold at most: so many microbatches of a stage, or bytes, "
             "such as 4GiB, where a file says how many each holds. Otherwise: what WHICH holds."},
    {.name = "work",
     .value = "MILLIONS",
     .help = "For make: how many computations may be timed while it searches; 1000 take some "
             "seconds.",
     .fallback = "500"},
    {.name = "format",
     .value = "WHICH",
     .help = "For show and make. text: the diagram, or what was found; csv: as "
             "torch.distributed.pipelining reads it; pipeline: "
             "unisono.pipeline/1.",
     .fallback = "text",
     .choices = "text|csv|pipeline"}};

}  // namespace

const Command kPipelineCommand = {
    .name = "pipeline",
    .summary = "list, show, verify, simulate and make schedules of pipeline parallelism",
    .operands = "list | show WHICH | verify WHICH | sim WHICH | make WHICH",
    .max_operands = 2,
    .runs_program = false,
    .examples = {{{"unisono pipeline show zbv -n 4 -m 8", "The bubble diagram of ZBV."},
                  {"unisono pipeline verify theirs.csv",
                   "A schedule of torch.distributed.pipelining."},
                  {"unisono pipeline make zb-h1 -n 4 --factors 1,1,1.2,1",
                   "A better order for stages that differ."}}},
    .description =
        "WHICH is a schedule by name (see unisono pipeline list), the CSV that "
        "torch.distributed.pipelining writes, or a file of unisono.pipeline/1.\n\n"
        "verify proves, across the ranks: every computation is done once, where its stage is, and "
        "has its input; every message is sent and received once, and in the same order at both "
        "ends of a lane; gradients are reduced after the last W; and no ranks wait for each "
        "other with the capacity that the lanes have. It says the least capacity that works, "
        "and the activations that each rank holds at most. Exit code 1: it is not right.\n\n"
        "A file without sends and receives gets those that follow from its order.\n\n"
        "make searches for a quicker order of the same stages that needs no more memory than "
        "WHICH, or than --limit: from the best schedule of the catalogue and from orders that are "
        "made on the fly, by moving what the longest path of waiting goes through. What it gives "
        "is "
        "proved, and never slower than WHICH where that keeps the limit.\n\n"
        "show draws time from left to right, one row for each rank: the letter "
        "and the number are the action and its microbatch, and dots are waiting.",
    .options = kPipelineOptions,
    .run = run_pipeline};

}  // namespace unisono::cli
