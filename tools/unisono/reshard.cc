// `unisono reshard`: shows, verifies and simulates tensors that move from one mesh to another.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "plan/plan.h"
#include "reshards/reshards.h"

namespace unisono::cli {
namespace {

int run_reshard(const Arguments& arguments, const Console& console) {
  const auto& operands = arguments.operands();
  const std::string what = operands.empty() ? "" : operands.front();
  if (what != "show" && what != "verify" && what != "sim") {
    throw UsageError(what.empty() ? std::string("reshard what?")
                                  : fmt::format("reshard has no subcommand '{}'", what),
                     "use show, verify or sim, such as "
                     "unisono reshard show llama3-8b \"tp=4 -> tp=2,dp=2\"",
                     "unisono help reshard");
  }
  if (what != "show" && arguments.has("tensor")) {
    throw UsageError("--tensor goes with show", {}, "unisono help reshard");
  }
  if (what != "verify" && arguments.has("names")) {
    throw UsageError("--names goes with verify", {}, "unisono help reshard");
  }
  const ReshardQuestion question = read_reshard_question(arguments);
  for (const std::string& note : question.notes) {
    console.note(note);
  }
  if (console.verbose()) {
    console.note(fmt::format("planned in {}", time_text(question.planned_s)));
  }
  if (what == "sim") {
    return simulate_reshard(question, console);
  }
  return what == "verify" ? verify_reshard(question, console)
                          : show_reshard(question, arguments, console);
}

constexpr Option kReshardOptions[] = {
    {.name = "shape",
     .value = "LENGTHS",
     .help = "Without a model: the shape of one tensor, such as 4096,1024."},
    {.name = "dtype", .value = "TYPE", .help = "The type of all elements.", .fallback = "bf16"},
    {.name = "tensor",
     .value = "NAME",
     .help = "For show: draw this tensor of the model, by its name in the checkpoint."},
    {.name = "names",
     .value = "FILE",
     .help = "For verify: also apply a name map (unisono.names/1) from the tensors of the "
             "checkpoint to the tensors of an engine that fuses some of them. All names that do "
             "not match are listed."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "The machine: a preset or a file, as for unisono topo. sim requires it; show and "
             "verify use it to assign ranks to hosts."},
    {.name = "ranks-per-host",
     .value = "N",
     .help = "Without --on: the number of ranks on each host.",
     .fallback = "8"}};

}  // namespace

const Command kReshardCommand = {
    .name = "reshard",
    .summary = "show, verify and simulate how tensors move to another mesh",
    .operands = "show|verify|sim [MODEL|CONFIG.JSON] \"FROM -> TO\"",
    .max_operands = 3,
    .runs_program = false,
    .examples = {{{"unisono reshard show --shape 8,8 \"tp=2: tp=shard(0) -> tp=2: tp=shard(1)\"",
                   "Draw where each block of a tensor comes from."},
                  {"unisono reshard verify llama3-70b \"tp=8,pp=4,dp=2 -> tp=4,dp=4 on 64-79\"",
                   "Prove the plan of a whole model, from a trainer to an engine."},
                  {"unisono reshard sim llama3-70b \"tp=8,pp=4,dp=2 -> tp=4,dp=4\" "
                   "--on dgx_h100:nodes=8",
                   "Predict its time on a machine."}}},
    .description =
        "With a model, FROM and TO are layouts of the model: axes in any order, such as "
        "tp=8,pp=4,dp=2, and the ranks, such as \"on 64-79\" (without them, from rank 0). Ranks "
        "are assigned as in training frameworks: pp varies slowest, then dp, fsdp and cp, and tp "
        "varies fastest. tp cuts heads, inner widths and the vocabulary; if tp is larger than the "
        "number of key and value heads, these heads are copied. pp gives each stage some of the "
        "layers, fsdp cuts dimension 0 again, and each rank of dp and cp has a copy. ep "
        "distributes experts over the ranks of a stage, and etp cuts each expert. Tensors have the "
        "names of Llama, Qwen3-MoE and DeepSeek-V3 in a Hugging Face checkpoint.\n\n"
        "With --shape, FROM and TO are layouts of one tensor, as MeshLayout::parse() reads them: "
        "\"dp=2,tp=4 on 0-7: tp=shard(0)\".\n\n"
        "show prints the bytes per host, or with --tensor two grids of blocks. The first grid "
        "shows the ranks that hold each block before the move; the second shows which ranks "
        "receive each block, and from which ranks.\n\n"
        "verify proves that each element of each target is written once, from the right source "
        "element, after its data has arrived. It also computes the fewest bytes that any plan must "
        "move, from the layouts alone. Exit code 1: the plan is wrong.\n\n"
        "sim plays the messages on the links of a topology and compares the time with a lower "
        "bound: the time that the bytes need into each rank, and once into each host.\n\n"
        "All three print the bytes of the rank that sends most. \"at least\" is the smallest "
        "possible value for it among the plans that move the fewest bytes.",
    .options = kReshardOptions,
    .run = run_reshard};

}  // namespace unisono::cli
