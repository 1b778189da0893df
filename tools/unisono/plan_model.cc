// `unisono plan-model`: ranks the layouts for training or serving a model, and explains the
// ranking.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/wrap.h"
#include "models/models.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

constexpr std::int64_t kMostLayouts = 1000;

void refuse_together(const Arguments& arguments, std::string_view chosen,
                     std::initializer_list<std::string_view> others) {
  for (const std::string_view other : others) {
    if (arguments.has(other)) {
      throw UsageError(fmt::format("--{} does not go with --{}", other, chosen), {},
                       "unisono help plan-model");
    }
  }
}

planner::SearchOptions search_options(const Arguments& arguments, const Console& console) {
  return {.most = static_cast<std::size_t>(arguments.number("top", 1, kMostLayouts)),
          // The program has no option for these axes.
          .tries_uly = !arguments.has("flags") || arguments.text("flags") != "torchtitan",
          .tries_offload = arguments.has("offload"),
          .progress = [&console](const std::string& text) { console.progress(text); }};
}

void print(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2));
}

void save_plan(const Arguments& arguments, nlohmann::ordered_json plan,
               nlohmann::ordered_json what_if) {
  plan["what_if"] = std::move(what_if);
  write_output(arguments.text("save"), plan.dump() + "\n");
}

// Refuses a program that has no options for such a layout before anything is searched.
template <typename Layout>
void check_flags(const Arguments& arguments, const Layout& any) {
  if (arguments.has("flags")) {
    launch_flags(arguments.text("flags"), any);
  }
}

void refuse_explained(const std::string& problem) {
  if (!problem.empty()) {
    throw UsageError("--explain: " + problem, {}, "unisono help plan-model");
  }
}

// Returns the layout of --explain, which `parse` makes of its text.
template <typename Parse>
auto explained(const Arguments& arguments, const Parse& parse) {
  try {
    return parse(arguments.text("explain"));
  } catch (const Error& error) {
    throw UsageError(fmt::format("--explain: {}", error.summary()), std::string(error.hint()),
                     "unisono help plan-model");
  }
}

// Returns 1 if nothing fits, so that a script can detect it.
template <typename Estimate>
int exit_of(const planner::Ranking<Estimate>& ranking) {
  return ranking.best.empty() ? kAnswerIsNo : kDone;
}

int train(const Arguments& arguments, const Console& console) {
  refuse_together(arguments, "train",
                  {"input", "output", "concurrency", "ttft", "tpot", "rate", "imbalance",
                   "prefix-hits", "speculate", "pools"});
  check_flags(arguments, planner::Layout());
  ModelQuestion question = read_model_question(arguments);
  if (question.shape.stored) {
    question.account.left_out.push_back("quantization_config (training holds weights in bf16)");
  }
  const planner::TrainingTask task = read_training_task(arguments, question);
  note_length(question, task.sequence);
  const planner::Levels levels = question.levels(task);
  if (arguments.has("explain")) {
    refuse_together(arguments, "explain", {"save", "mtbf"});
    planner::Layout layout = explained(arguments, [&](const std::string& text) {
      return planner::parse_layout(text, question.cluster.devices);
    });
    layout.sequence_parallel = !task.materialised_attention;
    refuse_explained(problem_of(question.shape, layout, task));
    if (arguments.has("step")) {
      write_step(question, task, layout, arguments.text("step"));
    }
    const auto estimate =
        at_level(estimate_training(question.shape, layout, task, question.cluster), levels);
    if (console.json()) {
      print(explanation_json(question, task, estimate));
    } else {
      fmt::print("{}", wrap(evidence_text(question, task), 0, console.width()));
      print_explanation(question, task, estimate);
    }
    return kDone;
  }
  planner::SearchOptions options = search_options(arguments, console);
  options.levels = &levels;
  auto ranking = search_training(question.shape, task, question.cluster, options);
  if (arguments.has("simulate")) {
    const auto count = static_cast<int>(arguments.number("simulate", 1, kMostLayouts));
    simulate_best(question, task, count, console, ranking);
  }
  console.end_progress();
  if (arguments.has("step") && !ranking.best.empty()) {
    write_step(question, task, ranking.best.front().layout, arguments.text("step"));
  }
  if (arguments.has("save")) {
    save_plan(arguments, plan_json(question, task, ranking), what_if_json(question, task, options));
  }
  if (console.json()) {
    auto plan = plan_json(question, task, ranking);
    plan["goodput"] = goodput_json(read_goodput(arguments, question, task));
    print(plan);
  } else {
    print_training(question, task, ranking, arguments, console);
  }
  return exit_of(ranking);
}

int serve(const Arguments& arguments, const Console& console) {
  refuse_together(arguments, "serve",
                  {"batch", "sequence", "measured", "stack", "step", "simulate", "mtbf"});
  if (arguments.has("rate")) {
    refuse_together(arguments, "rate", {"save"});
  }
  check_flags(arguments, planner::ServingLayout());
  ModelQuestion question = read_model_question(arguments);
  const planner::ServingTask task = read_serving_task(arguments, question);
  note_length(question, task.input + task.output);
  const planner::ServingLimits limits{
      .first_token_s = arguments.has("ttft") ? arguments.seconds("ttft") : 0,
      .token_s = arguments.seconds("tpot")};
  planner::Ranking<planner::ServingEstimate> ranking;
  if (arguments.has("explain")) {
    refuse_together(arguments, "explain", {"save", "pools"});
    const planner::ServingLayout layout = explained(arguments, [&](const std::string& text) {
      return parse_serving_layout(text, question.shape, question.cluster.devices);
    });
    refuse_explained(problem_of(question.shape, layout, asked_of(task, layout)));
    ranking = rank_layout(question.shape, layout, task, limits, question.cluster);
  } else {
    planner::SearchOptions options = search_options(arguments, console);
    options.tries_pools = arguments.has("pools");
    ranking = search_serving(question.shape, task, limits, question.cluster, options);
  }
  console.end_progress();
  if (arguments.has("save")) {
    save_plan(arguments, plan_json(question, task, ranking),
              what_if_json(question, task, limits,
                           static_cast<std::size_t>(arguments.number("top", 1, kMostLayouts))));
  }
  if (console.json()) {
    print(plan_json(question, task, ranking));
  } else {
    print_serving(question, task, ranking, arguments, console);
  }
  return exit_of(ranking);
}

int run_plan_model(const Arguments& arguments, const Console& console) {
  return arguments.has("serve") && !arguments.has("train") ? serve(arguments, console)
                                                           : train(arguments, console);
}

constexpr Option kPlanModelOptions[] = {
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "The machine: a preset or a file, as for `unisono topo`. Without --devices: all of "
             "its devices."},
    {.name = "device",
     .value = "NAME",
     .help = "The device of each rank, if the topology does not state it: a name or a device file. "
             "An unknown name prints the list of names."},
    {.name = "devices",
     .value = "N",
     .help = "Use only N of the machine's devices: from one node or rack, or equally many from "
             "each of the fewest nodes or racks that suffice."},
    {.name = "train", .help = "Rank layouts for a training step."},
    {.name = "serve", .help = "Rank layouts for answering requests."},
    {.name = "batch",
     .value = "N",
     .help = "With --train: sequences per step, over all devices.",
     .fallback = "256"},
    {.name = "sequence",
     .value = "N",
     .help = "With --train: tokens per sequence.",
     .fallback = "8192"},
    {.name = "precision",
     .value = "TYPE",
     .help =
         "The type in which matrices are multiplied; serving also keeps the weights in it. Without "
         "it, serving keeps the weights as the quantization_config of a config.json states.",
     .fallback = "bf16",
     .choices = "bf16|f8|f4"},
    {.name = "input", .value = "N", .help = "With --serve: tokens per prompt.", .fallback = "1024"},
    {.name = "output",
     .value = "N",
     .help = "With --serve: tokens per answer.",
     .fallback = "1024"},
    {.name = "concurrency",
     .value = "N",
     .help = "With --serve: requests that one instance answers at once; 0: as many as memory and "
             "limits allow.",
     .fallback = "0"},
    {.name = "ttft",
     .value = "TIME",
     .help = "With --serve: the longest time to the first token. Default: none."},
    {.name = "tpot",
     .value = "TIME",
     .help = "With --serve: the longest time per output token after the first.",
     .fallback = "50ms"},
    {.name = "rate",
     .value = "N",
     .help =
         "With --serve: requests per second, which arrive at random (Poisson). Each layout then "
         "gets the fewest instances with which nine of ten requests keep --ttft and --tpot."},
    {.name = "imbalance",
     .value = "X",
     .help = "With --serve: the tokens that the busiest device's experts get, divided by the mean "
             "over all devices.",
     .fallback = "1"},
    {.name = "prefix-hits",
     .value = "SHARE",
     .help = "With --serve: the share of each prompt whose keys and values are cached already.",
     .fallback = "0%"},
    {.name = "speculate",
     .value = "K,P",
     .help =
         "With --serve: speculative decoding. A step checks K drafted tokens, and each is accepted "
         "with probability P, such as 3,0.8. Drafting a token takes as long as one layer of the "
         "model; a third number, as in 3,0.8,0.05, sets the time as a share of a step instead."},
    {.name = "pools",
     .help = "With --serve: also try layouts that process prompts on separate devices "
             "(disaggregated serving)."},
    {.name = "top", .value = "N", .help = "The number of layouts to print.", .fallback = "10"},
    {.name = "explain",
     .value = "LAYOUT",
     .help =
         "Show only this layout, part by part. With --train: tp=4,pp=8,vp=2,cp=2,uly=2,mb=1,zero=1,"
         "recompute=none; dp follows. With --serve: tp=4,pp=2,dp=1; instances follow."},
    {.name = "simulate",
     .value = "N",
     .help =
         "With --train: also simulate the steps of the first N layouts on the topology, where "
         "groups share links, and rank these layouts by the simulated time; up to 1,024 devices."},
    {.name = "step",
     .value = "FILE",
     .help = "With --train: write the step of the first layout, or of the layout of --explain, as "
             "a workload for unisono sim: one round of the pipeline."},
    {.name = "save",
     .value = "FILE",
     .help = "Write the plan for `unisono view`. It also contains the rankings for links inside a "
             "node at half to twice their speed, and for links between nodes and for the batch at "
             "a quarter to four times their values."},
    {.name = "stack",
     .value = "NAME",
     .help = "With --train: the training program, with or without its release, such as "
             "megatron-bridge, nemo-24.09 or llm-foundry. Default: the newest one that has "
             "measured steps of such a model on this device."},
    {.name = "headroom",
     .value = "SHARE",
     .help = "The share of each device's memory that stays free, for example for fragmentation.",
     .fallback = "5%"},
    {.name = "gradients",
     .value = "TYPE",
     .help = "With --train: the type of stored gradients.",
     .fallback = "bf16",
     .choices = "bf16|f32"},
    {.name = "moments",
     .value = "TYPE",
     .help = "With --train: the type of the optimiser's two moments; its weights are f32.",
     .fallback = "f32",
     .choices = "bf16|f32"},
    {.name = "offload",
     .help = "With --train: if nothing else fits, also try layouts that keep activations or the "
             "optimiser in the host's memory."},
    {.name = "mtbf",
     .value = "TIME",
     .help = "With --train: the mean time between failures of one device, such as 50000h. Prints "
             "the share of the time that remains for training after failures and checkpoints."},
    {.name = "storage",
     .value = "BYTES",
     .help = "With --mtbf: the bytes of a checkpoint that all devices together write per second.",
     .fallback = "100G"},
    {.name = "restart",
     .value = "TIME",
     .help = "With --mtbf: the time from a failure until training continues.",
     .fallback = "10m"},
    {.name = "measured",
     .value = "TABLE",
     .help = "With --train: fit the constants to your own measured steps (CSV), and take the "
             "interval of the prediction from these steps instead of those of the stacks."},
    {.name = "flags",
     .value = "PROGRAM",
     .help = "Also print the first layout as the options of a program.",
     .choices = "megatron|torchtitan|vllm"}};

}  // namespace

const Command kPlanModelCommand = {
    .name = "plan-model",
    .summary = "rank the layouts to train or serve a model with",
    .operands = "MODEL|CONFIG.JSON",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train --batch 256",
                   "Tensor, pipeline, context and data parallelism, ranked."},
                  {"unisono plan-model deepseek-v3 --on dgx_h100:nodes=32 --serve --input 4096",
                   "Experts, cache and weights, by tokens a second and device."},
                  {"unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train --explain "
                   "tp=8,pp=4,vp=5,mb=1",
                   "One layout, part by part."}}},
    .description =
        "MODEL is a name (llama3-8b, llama3-70b, llama3-405b, mixtral-8x7b, qwen3-30b-a3b, "
        "qwen3-235b-a22b, deepseek-v3, kimi-k2, gpt-oss-120b, gpt3-175b) or the config.json of a "
        "model. Nothing is downloaded and no device is needed. The output lists the keys of a "
        "config.json that were used, assumed by default, left out or not understood.\n\n"
        "Every layout of all devices is tried: tp, pp, vp (parts per rank), cp, uly, ep, dp, the "
        "microbatch, ZeRO and recomputation. The time of a step is the sum of matrix products (by "
        "tiles and waves), memory traffic, exposed communication, the bubble and the optimiser, "
        "with constants fitted to published steps. Memory is that of the fullest rank. A layout "
        "that does not fit into memory gets no time.\n\n"
        "With --serve, layouts are ranked by tokens per second and device, within the limits "
        "--ttft and --tpot. Requests are batched continuously. The time of a token includes "
        "weights, cache, kernels, communication and the prompts that are processed in between.\n\n"
        "With --save plan.json, `unisono view plan.json` shows the layouts as bars to sort, with "
        "sliders for the links and the batch.\n\n"
        "Exit code 1: no layout fits.",
    .options = kPlanModelOptions,
    .run = run_plan_model};

}  // namespace unisono::cli
