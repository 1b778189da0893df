// `unisono step`: a model's step on a mesh of ranks, shown, proved, simulated.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "steps/steps.h"

namespace unisono::cli {
namespace {

int run_step(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  const std::string what = operands.empty() ? "" : operands.front();
  if (what != "show" && what != "verify" && what != "sim") {
    throw UsageError(what.empty() ? std::string("step needs a subcommand")
                                  : fmt::format("step has no subcommand '{}'", what),
                     "use show, verify or sim, such as unisono step show llama3-8b --layout tp=8",
                     "unisono help step");
  }
  if (operands.size() < 2) {
    throw UsageError(fmt::format("step {} needs a model or a file", what),
                     fmt::format("such as unisono step {} llama3-8b --layout tp=8", what),
                     "unisono help step");
  }
  const step::Step step = step_of(operands[1], arguments, console);
  if (what == "verify") {
    return verify_step(step, console);
  }
  return what == "sim" ? simulate_step(step, arguments, console)
                       : show_step(step, arguments, console);
}

constexpr Option kStepOptions[] = {
    {.name = "layout",
     .value = "AXES",
     .help = "For a model: the axes of the mesh, slowest first, such as pp=2,tp=4. Axes are pp "
             "(stages), cp (the sequence), ep (experts) and tp (heads, inner width, vocabulary).",
     .fallback = "tp=1"},
    {.name = "prompt", .value = "N", .help = "For a model: process a prompt of N tokens."},
    {.name = "behind",
     .value = "N",
     .help = "For a model: process one token after N others.",
     .fallback = "1024"},
    {.name = "train",
     .value = "SEQxTOK",
     .help = "For a model: a training step on this many sequences of this many tokens, such as "
             "8x2048. Axes are rep and dp (sequences), ep (sequences and experts), cp and uly "
             "(places), "
             "tp, and pp (stages), which needs a schedule in --with."},
    {.name = "with",
     .value = "WORDS",
     .help = "With --train: zero=0 to zero=3 (ZeRO over dp, ep, cp and uly), sp (rows cut over "
             "tp), vocab (vocabulary cut over tp), all_gather (for keys and values of cp, instead "
             "of a ring), contiguous or striped (order of positions over cp, instead of zigzag). "
             "With pp: a schedule of `unisono pipeline list`, m=N microbatches (default 8) and v=N "
             "stages per rank."},
    {.name = "precision",
     .value = "TYPE",
     .help = "For a model: the type of its weights, activations and cache.",
     .fallback = "bf16",
     .choices = "f32|bf16|f8"},
    {.name = "upcycled",
     .value = "E",
     .help = "For a dense model: replace its inner part by E experts, which are copies of it; each "
             "token goes to two."},
    {.name = "rank", .value = "R", .help = "For show: list the calls of this rank, one per line."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "For sim: the machine: a preset or a file, as for `unisono topo`."},
    {.name = "device",
     .value = "NAME",
     .help = "For sim: the device of each rank, if the topology does not state it: a100, h100, "
             "h200, b200, b300, gb200, gb300."},
    {.name = "trace",
     .value = "FILE",
     .help = "For sim: write messages and compute steps for unisono view and chrome://tracing."},
    {.name = "workload",
     .value = "FILE",
     .help = "For sim: also write the simulated workload (unisono.workload/1)."},
    {.name = "format",
     .value = "WHICH",
     .help = "For show. text: the computations and moves; step: unisono.step/1.",
     .fallback = "text",
     .choices = "text|step"}};

}  // namespace

const Command kStepCommand = {
    .name = "step",
    .summary = "show, verify and simulate what the ranks of a model compute and move",
    .operands = "show WHICH | verify WHICH | sim WHICH",
    .max_operands = 2,
    .runs_program = false,
    .examples =
        {{{"unisono step show llama3-8b --layout tp=8 --prompt 512",
           "Show what each layer computes, and what each collective moves."},
          {"unisono step verify mine.json",
           "Prove that your own step computes the same as one process."},
          {"unisono step sim llama3-8b --layout pp=4,tp=2 --train 16x2048 --with \"zbv m=16\" "
           "--on dgx_h100",
           "Simulate a training step under a pipeline schedule."}}},
    .description =
        "WHICH is a model, by name as for unisono plan-model or by its config.json, or a file of "
        "unisono.step/1. For a model, --layout gives the mesh, and one option selects the step: a "
        "prompt (--prompt), one token after others (--behind, the default) or a training step "
        "(--train).\n\n"
        "A step defines the placement of each tensor along each axis of the mesh (replicate, shard "
        "of a dimension, partial), the computations with their inputs, and the redistributions "
        "that move data.\n\n"
        "verify proves that the step computes the same as one process: no partial sum is read as a "
        "whole tensor, no whole tensor is summed once per rank, shards are used only where shards "
        "suffice, every tensor that is read exists on its stage, and memory stays below the limit "
        "in the file. Exit code 1: the step is wrong.\n\n"
        "sim simulates the step on a topology. The time of a computation is the longer of its "
        "arithmetic and its memory traffic, with the device constants that plan-model has fitted.",
    .options = kStepOptions,
    .run = run_step};

}  // namespace unisono::cli
