// `unisono plan`: predicts which algorithm would run, and explains why.
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/language.h"
#include "cli/target.h"
#include "cli/wrap.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

constexpr int kMostPlannedRanks = 1'000'000;

network_model::Call call_of(const Arguments& arguments) {
  if (arguments.operands().empty()) {
    throw UsageError("which collective?",
                     "unisono plan all_reduce -n 8 --bytes 64MiB --link alpha=5us,beta=12.5GB/s",
                     "unisono list");
  }
  return {.collective = collective_of(arguments.operands().front()),
          .ranks = static_cast<int>(arguments.number("ranks", 1, kMostPlannedRanks)),
          .bytes = static_cast<double>(arguments.bytes("bytes"))};
}

void check_options(const Arguments& arguments, std::string_view chosen,
                   std::initializer_list<std::string_view> others) {
  for (const std::string_view other : others) {
    if (arguments.has(other)) {
      throw UsageError(fmt::format("--{} does not go with {}", other, chosen), {},
                       "unisono help plan");
    }
  }
}

cost::Parameters network_of(const Arguments& arguments) {
  cost::Parameters parameters = parse_link(arguments.text("link"));
  if (arguments.has("floor")) {
    parameters.floor_s = arguments.seconds("floor");
  }
  return parameters;
}

Schedule schedule_of_file(const std::string& path, const network_model::Call& call) {
  Schedule schedule = load_verified_schedule(path);
  if (!schedule.counts.empty()) {
    throw UsageError(fmt::format("{} has counts, but a plan compares calls of one size", path),
                     "unisono sim says how long it takes",
                     fmt::format("unisono sim {} --on dgx_h100", path));
  }
  if (schedule.collective != call.collective || schedule.ranks != call.ranks) {
    throw UsageError(fmt::format("{} is a schedule for {} of {} ranks, not for {} of {}", path,
                                 to_string(schedule.collective), schedule.ranks,
                                 to_string(call.collective), call.ranks),
                     {}, fmt::format("unisono show {}", path));
  }
  return schedule;
}

// An algorithm that does not support the call is an error; it is never replaced by another one.
network_model::Plan plan_for(const Arguments& arguments, const network_model::Call& call) {
  const cost::Parameters parameters = network_of(arguments);
  if (!arguments.has("algorithm")) {
    return make_plan(call, parameters);
  }
  const std::string& name = arguments.text("algorithm");
  if (is_schedule_file(name)) {
    const Schedule schedule = schedule_of_file(name, call);
    const network_model::Asked asked{.own = &schedule, .name = name};
    return make_plan(call, parameters, &asked);
  }
  const std::string target = fmt::format("{}/{}", to_string(call.collective), name);
  const Algorithm& algorithm = algorithm_of(target);
  const network_model::Asked asked{.algorithm = &algorithm,
                                   .parameters = parameters_of(algorithm, target)};
  network_model::Plan plan = make_plan(call, parameters, &asked);
  if (std::none_of(plan.candidates.begin(), plan.candidates.end(),
                   [](const network_model::Candidate& candidate) { return candidate.is_asked; })) {
    throw UsageError(fmt::format("{} does not support {}", target,
                                 times(static_cast<std::size_t>(call.ranks), "rank")),
                     fmt::format("it takes only {}", algorithm.limits),
                     fmt::format("unisono list {}", to_string(call.collective)));
  }
  return plan;
}

void check_moe_fit(const Arguments& arguments) {
  for (const std::string_view option : {"hosts", "processors"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} goes with unisono plan moe --fit", option), {},
                       "unisono help plan");
    }
  }
}

int run_plan(const Arguments& arguments, const Console& console) {
  const bool is_moe = !arguments.operands().empty() && arguments.operands().front() == "moe";
  if (arguments.has("fit")) {
    check_options(arguments, "--fit",
                  {"link", "floor", "algorithm", "machine", "bytes", "max-error"});
    if (is_moe) {
      check_options(arguments, "moe with --fit",
                    {"on", "ranks", "routing", "call", "test", "save"});
      plan_experts(arguments, console);
      return kDone;
    }
    check_moe_fit(arguments);
    return arguments.has("on") ? run_fit_on(arguments, console) : run_fit(arguments, console);
  }
  check_moe_fit(arguments);
  const bool is_routing = is_moe && arguments.has("routing");
  if (is_moe && !is_routing && arguments.has("call")) {
    throw UsageError("--call goes with --routing", {}, "unisono help plan");
  }
  for (const std::string_view option : {"test", "save", "only"}) {
    if (arguments.has(option) && !(is_routing && option == "save")) {
      throw UsageError(fmt::format("--{} goes with --fit", option),
                       option == "save" && is_moe ? "or with moe and --routing" : "",
                       "unisono help plan");
    }
  }
  if (is_moe) {
    check_options(arguments, "moe",
                  {"link", "floor", "algorithm", "machine", "bytes", "max-error"});
    if (!is_routing || arguments.has("on")) {
      check_options(arguments, is_routing ? "--on" : "moe without --routing", {"ranks"});
    }
    plan_experts(arguments, console);
    return kDone;
  }
  for (const std::string_view option :
       {"tokens", "hidden", "experts", "choices", "routing", "call"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} goes with unisono plan moe", option), {},
                       "unisono help plan");
    }
  }
  const network_model::Call call = call_of(arguments);
  const MoveCode code = code_of(arguments, call.collective);
  if (arguments.has("on")) {
    if (arguments.has("algorithm")) {
      const std::string& name = arguments.text("algorithm");
      throw UsageError(
          "--algorithm does not go with --on",
          "--on simulates every algorithm; unisono sim simulates one, or a schedule file",
          fmt::format("unisono sim {} --on {}",
                      is_schedule_file(name)
                          ? name
                          : fmt::format("{}/{}", to_string(call.collective), name),
                      arguments.text("on")));
    }
    check_options(arguments, "--on", {"link", "floor", "machine"});
    const Topology topology = load_topology(arguments.text("on"));
    network_model::Call here = call;
    here.ranks = arguments.has("ranks") ? call.ranks : topology.rank_count();
    plan_on(here, topology, code, console);
    return kDone;
  }
  if (arguments.has("machine")) {
    check_options(arguments, "--machine", {"link", "floor", "algorithm"});
    print_prediction(load_machine(arguments.text("machine")), call, console);
    return kDone;
  }
  if (!arguments.has("link")) {
    console.note(spoken({"without --link, --on or --machine, the plan assumes a common network",
                         "没有 --link、--on 或 --machine：网络是常见的，不是测得的"}));
  }
  print_plan(plan_for(arguments, call), console);
  return kDone;
}

constexpr Option kPlanOptions[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .help =
         "The number of ranks. With --fit: the number of ranks of a log that does not state it.",
     .fallback = "4"},
    {.name = "bytes",
     .letter = 'b',
     .value = "SIZE",
     .help = "The larger of the bytes that a rank sends and receives in all, as benchmarks count.",
     .fallback = "1MiB"},
    {.name = "link",
     .value = "LINK",
     .help = "The network: alpha=TIME per message, beta=BANDWIDTH in each direction; also "
             "gamma=BANDWIDTH of reductions, floor=TIME per call.",
     .fallback = "alpha=5us,beta=12.5GB/s"},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "Simulate every algorithm on a topology: a preset or a file, as for `unisono topo`. "
             "Without -n: on all of its ranks. With --fit: fit the topology."},
    {.name = "max-error",
     .value = "E",
     .help = "With --on: plan for f32 data that may have this error, such as 0.01. Then algorithms "
             "that encode moves between nodes are candidates too; their times include the coding."},
    {.name = "tokens", .value = "N", .help = "With moe: tokens per rank.", .fallback = "128"},
    {.name = "hidden", .value = "N", .help = "With moe: elements per token.", .fallback = "7168"},
    {.name = "experts",
     .value = "N",
     .help = "With moe: experts on all ranks together.",
     .fallback = "256"},
    {.name = "choices",
     .letter = 'k',
     .value = "K",
     .help = "With moe: experts per token.",
     .fallback = "8"},
    {.name = "hosts",
     .value = "N",
     .help = "With moe --fit: the number of hosts. Without it: the fewest on which a machine was "
             "measured."},
    {.name = "processors",
     .value = "N",
     .help = "With moe --fit: the number of processors that the normal mode may use. Without it: "
             "the most that were measured."},
    {.name = "routing",
     .value = "FILE",
     .help = "With moe: a file with the experts of each token, one token per line. Each of the -n "
             "ranks gets an equal part of the tokens. Shows what --call sends."},
    {.name = "call",
     .value = "CALL",
     .help = "With --routing: the exchange. combine sends the rows back.",
     .fallback = "dispatch",
     .choices = "dispatch|combine"},
    {.name = "floor", .value = "TIME", .help = "The time to start a call of any size."},
    {.name = "algorithm",
     .value = "NAME",
     .help = "The algorithm to use, with its parameters, or a schedule file. It must support this "
             "number of ranks."},
    {.name = "machine",
     .value = "FILE",
     .help = "Predict for a machine that --fit has saved or unisono tune has measured "
             "(unisono.machine/1)."},
    {.name = "fit",
     .value = "TABLE",
     .help = "Fit machines to a table of measured times (CSV) or to the output of nccl-tests, OSU "
             "and other benchmarks, and report their error on rows that the fit has not seen. With "
             "moe: fit times of dispatch and combine."},
    {.name = "test", .value = "TABLE", .help = "With --fit: also predict the rows of this table."},
    {.name = "only", .value = "NAME", .help = "With --fit: fit only this machine of the table."},
    {.name = "save",
     .value = "FILE",
     .help = "With --fit: write the machine, for --machine; with --fit and --on: write the "
             "topology, for --on of any command. With --routing: write the counts, for --counts of "
             "show, verify, sim and view."}};

}  // namespace

const Command kPlanCommand = {
    .name = "plan",
    .summary = "say which algorithm is fastest on a network, and why",
    .operands = "[COLLECTIVE|moe]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono plan all_reduce -n 8 --bytes 64MiB --link alpha=5us,beta=12.5GB/s",
                   "Every algorithm on a flat network."},
                  {"unisono plan --fit measured.csv --only dgx-a100 --save a100.json",
                   "Fit a machine to its measurements."},
                  {"unisono plan moe --tokens 128 --experts 256 -k 8 --on dgx_h100:nodes=2",
                   "Dispatch and combine of a mixture of experts."}}},
    .description =
        "Predicts the time of each algorithm on a network where every rank has one sending and one "
        "receiving port. Up to 512 ranks, the time is computed from the schedule itself; for more "
        "ranks, from closed formulas.\n\n"
        "moe predicts dispatch and combine with k experts chosen evenly. Dispatch sends rows in f8 "
        "with a scale per 128 elements; combine sends rows in bf16. The mode low_latency sends one "
        "row per choice; the mode normal sends one row to each host, and from there one to each "
        "rank. The bound is the time of the busiest link; the time also includes latencies, but no "
        "kernels. With --routing, the choices of a router are counted instead: dispatch sends a "
        "token once to each rank that has one of its experts; with --call combine, each of these "
        "ranks returns one row, the sum over its experts.\n\n"
        "The first line of a table for --fit names its columns: collective, ranks, bytes and "
        "time_us are required, machine and algorithm are optional, others are ignored. In a row "
        "without an algorithm, the measured library chose the algorithm itself. Rows in which "
        "`unisono tune` measured a wait policy or a number of threads are left out.\n\n"
        "--fit also reads the output of benchmarks as it is: nccl-tests, rccl-tests and "
        "mscclpp-test (as text, or as JSON with -J), OSU micro-benchmarks, ucc_perftest, and the "
        "benchmarks of oneCCL and Intel MPI. A file may contain several tests, and the prefixes "
        "that mpirun, srun and other launchers write before each line. Tests of other operations, "
        "rows of 0 bytes, rows with wrong results and rows that contradict themselves are left "
        "out; the last lines count them. The number of ranks must agree with busbw / algbw. If a "
        "log does not state its collective or its ranks, as with OSU, give them: unisono plan "
        "all_reduce -n 8 --fit LOG.\n\n"
        "--fit TABLE --on TOPOLOGY fits the costs of calls, messages and links of the topology. "
        "The topology's structure then gives times for other numbers of ranks and nodes and for "
        "other collectives. --save writes the topology, for --on.",
    .options = kPlanOptions,
    .run = run_plan};

}  // namespace unisono::cli
