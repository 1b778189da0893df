// `unisono plan`: what would run, and why.
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
    throw UsageError(fmt::format("{} has counts, and a plan compares calls of so many bytes", path),
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

// An algorithm that cannot serve is an error, never replaced by another.
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
          "there every algorithm is simulated; sim plays one, or the file of a schedule",
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
    console.note(
        spoken({"without --link, --on or --machine the network is a common one, no measured one",
                "没有 --link、--on 或 --machine：网络是常见的，不是测得的"}));
  }
  print_plan(plan_for(arguments, call), console);
  return kDone;
}

constexpr Option kPlanOptions[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .help = "How many ranks. With --fit: of a log that does not say it.",
     .fallback = "4"},
    {.name = "bytes",
     .letter = 'b',
     .value = "SIZE",
     .help = "The larger of what a rank sends and receives in all, as benchmarks count.",
     .fallback = "1MiB"},
    {.name = "link",
     .value = "LINK",
     .help = "The network: alpha=TIME a message, beta=BANDWIDTH each way; also gamma=BANDWIDTH of "
             "reducing, floor=TIME.",
     .fallback = "alpha=5us,beta=12.5GB/s"},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "Simulate every algorithm on a topology, a preset or a file as `unisono topo` takes "
             "them, with all of its ranks unless -n says how many. With --fit: fit the topology."},
    {.name = "max-error",
     .value = "E",
     .help = "With --on: vectors of f32 that bear this error, such as 0.01; also algorithms whose "
             "moves between nodes are encoded, with what coding takes."},
    {.name = "tokens", .value = "N", .help = "With moe: tokens of each rank.", .fallback = "128"},
    {.name = "hidden",
     .value = "N",
     .help = "With moe: elements of a token's row.",
     .fallback = "7168"},
    {.name = "experts", .value = "N", .help = "With moe: experts of all ranks.", .fallback = "256"},
    {.name = "choices",
     .letter = 'k',
     .value = "K",
     .help = "With moe: experts that a token goes to.",
     .fallback = "8"},
    {.name = "hosts",
     .value = "N",
     .help =
         "With moe --fit: on so many hosts; else on the fewest that a machine was measured on."},
    {.name = "processors",
     .value = "N",
     .help = "With moe --fit: the normal mode may use so many; else the most that were measured."},
    {.name = "routing",
     .value = "FILE",
     .help = "With moe: what the tokens chose, a line each, dealt to the -n ranks in equal parts. "
             "Shows what --call sends."},
    {.name = "call",
     .value = "CALL",
     .help = "With --routing: which exchange; combine sends the rows back.",
     .fallback = "dispatch",
     .choices = "dispatch|combine"},
    {.name = "floor", .value = "TIME", .help = "What starting a call costs, however small."},
    {.name = "algorithm",
     .value = "NAME",
     .help = "The algorithm to run, with its parameters, or the file of a schedule; an error if it "
             "cannot serve so many ranks."},
    {.name = "machine",
     .value = "FILE",
     .help = "Ask a machine that --fit has saved or unisono tune has measured "
             "(unisono.machine/1)."},
    {.name = "fit",
     .value = "TABLE",
     .help = "Fit machines to a table of measured times (CSV) or to what nccl-tests, OSU and other "
             "benchmarks printed, and say how far off they are on rows they have not seen. With "
             "moe: times of exchanges."},
    {.name = "test", .value = "TABLE", .help = "With --fit: also predict the rows of this table."},
    {.name = "only", .value = "NAME", .help = "With --fit: only this machine of the table."},
    {.name = "save",
     .value = "FILE",
     .help =
         "With --fit: write the machine for --machine, or with --on the topology for --on of any "
         "command. With --routing: the counts for --counts of show, verify, sim and view."}};

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
        "Times are those of the schedule on a network where every rank has one sending and one "
        "receiving port: computed from the schedule itself, up to 512 ranks, and from closed "
        "formulas above.\n\n"
        "moe stands for dispatch and combine with k experts chosen evenly: rows in f8 with a "
        "scale for each 128 elements go there, and in bf16 back. low_latency sends a row for each "
        "choice, normal one for each host and there one for each rank. The bound is that of the "
        "busiest link, the time has the latencies too; what kernels cost is not in it. With "
        "--routing, what a router chose is counted instead: a token goes once to each rank that "
        "has one of its experts, and one row comes back from each with --call combine, the sum "
        "over its experts.\n\n"
        "A table for --fit names its columns in the first line: collective, ranks, bytes and "
        "time_us are needed, machine and algorithm are known, others are left alone. Rows without "
        "an algorithm are of a library that chose itself; those of `unisono tune` with a way of "
        "waiting or a number of threads are left out.\n\n"
        "What benchmarks print is read as it is: nccl-tests, rccl-tests and mscclpp-test (as text, "
        "or as JSON with -J), OSU micro-benchmarks, ucc_perftest, and the benchmarks of oneCCL and "
        "Intel MPI; several tests in one file, and with what mpirun, srun and others write before "
        "each line. Tests of other operations, rows of 0 bytes, rows with wrong results and rows "
        "that contradict themselves are left out, and the last lines say how many. The number of "
        "ranks must agree with busbw / algbw. A log that does not say its collective or its ranks, "
        "as OSU's: unisono plan all_reduce -n 8 --fit LOG.\n\n"
        "--fit TABLE --on TOPOLOGY fits what starting, messages and links of the topology cost, so "
        "that other rank counts, nodes and collectives follow from its structure; --save writes it "
        "for --on.",
    .options = kPlanOptions,
    .run = run_plan};

}  // namespace unisono::cli
