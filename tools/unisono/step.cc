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
    throw UsageError(
        what.empty() ? std::string("step does what?") : fmt::format("step knows no '{}'", what),
        "show, verify or sim, such as unisono step show llama3-8b --layout tp=8",
        "unisono help step");
  }
  if (operands.size() < 2) {
    throw UsageError(fmt::format("step {} what?", what),
                     fmt::format("unisono step {} llama3-8b --layout tp=8, or a file", what),
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
     .help = "For a model: the axes of the mesh, the slowest first, such as pp=2,tp=4. Axes are pp "
             "(stages), cp (the sequence), ep (experts) and tp (heads, inner width, vocabulary).",
     .fallback = "tp=1"},
    {.name = "prompt", .value = "N", .help = "For a model: a prompt of N tokens."},
    {.name = "behind",
     .value = "N",
     .help = "For a model: one token behind N others.",
     .fallback = "1024"},
    {.name = "train",
     .value = "SEQxTOK",
     .help = "For a model: a step of training on so many sequences of so many tokens, such as "
             "8x2048. Axes are rep and dp (sequences), ep (sequences and experts), cp and uly "
             "(places), "
             "tp, and pp (stages), which goes with a schedule in --with."},
    {.name = "with",
     .value = "WORDS",
     .help =
         "With --train: zero=0 to zero=3 (ZeRO over dp, ep, cp and uly), sp (rows cut over tp), "
         "vocab (the vocabulary cut over tp), all_gather (keys and values of cp, not a ring), "
         "contiguous or striped (places of cp, not zigzag). With pp: a schedule of `unisono "
         "pipeline list`, m=N microbatches (8 unless given) and v=N stages on a rank."},
    {.name = "precision",
     .value = "TYPE",
     .help = "For a model: its weights, activations and cache.",
     .fallback = "bf16",
     .choices = "f32|bf16|f8"},
    {.name = "upcycled",
     .value = "E",
     .help =
         "For a dense model: E experts, copies of its inner part that all ranks have; each token "
         "goes to two."},
    {.name = "rank", .value = "R", .help = "For show: what that rank calls, one line a call."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "For sim: the machine, a preset or a file as `unisono topo` takes them."},
    {.name = "device",
     .value = "NAME",
     .help = "For sim: what sits on its ranks, where the topology does not say it: a100, h100, "
             "h200, b200, b300, gb200, gb300."},
    {.name = "trace",
     .value = "FILE",
     .help = "For sim: write messages and compute steps, for unisono view and chrome://tracing."},
    {.name = "workload",
     .value = "FILE",
     .help = "For sim: also write what is played (unisono.workload/1)."},
    {.name = "format",
     .value = "WHICH",
     .help = "For show. text: what is computed and what moves; step: unisono.step/1.",
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
           "What each layer computes, and which collective moves what."},
          {"unisono step verify mine.json",
           "Whether a step of your own gives what one process would."},
          {"unisono step sim llama3-8b --layout pp=4,tp=2 --train 16x2048 --with \"zbv m=16\" "
           "--on dgx_h100",
           "How long a step of training takes under a pipeline's schedule."}}},
    .description =
        "WHICH is a model, by name as for unisono plan-model or as its config.json, under "
        "--layout: a "
        "prompt (--prompt), one token behind others (--behind) or a step of training (--train). Or "
        "a file of unisono.step/1.\n\n"
        "A step says how each tensor lies along each axis of the mesh (replicate, shard of a "
        "dimension, partial), what is computed from what, and which redistribution moves what.\n\n"
        "verify proves that it gives what one process would: no summand is read as if it were "
        "whole, nothing whole is summed once for each rank, parts are used only where parts are "
        "enough, what is read is there on its stage, and memory stays below what the file states. "
        "Exit code 1: it is not right.\n\n"
        "sim plays it on a topology. What a rank computes takes the longer of its products and its "
        "bytes, with the constants that plan-model has fitted for the device.",
    .options = kStepOptions,
    .run = run_step};

}  // namespace unisono::cli
