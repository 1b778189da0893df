// `unisono sim`: simulates the time of a schedule or a workload on a topology, and shows its parts.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "cli/wrap.h"
#include "cost/encoded.h"
#include "engine/verify_sizes.h"
#include "network_model/hosts_on.h"
#include "network_model/simulator/report.h"
#include "plan/plan.h"
#include "planner/device.h"
#include "sim/sim.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

constexpr std::int64_t kMostSimulatedRanks = kMostTopologyRanks;

// Returns true if the file's format is a workload.
bool is_workload(const std::string& text) {
  const Parsed<JsonValue> document = parse_json(text);
  if (!document || document.value->kind != JsonValue::Kind::object) {
    return false;
  }
  const auto format = JsonNode(*document.value, "").find("format");
  return format && format->is(JsonValue::Kind::text) &&
         format->text() == network_model::kWorkloadFormat;
}

// Files named in a workload are relative to the folder of the workload.
network_model::WorkloadSources sources_beside(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return {
      .schedule =
          [folder](const std::string& name) {
            return load_verified_schedule((folder / name).string());
          },
      .counts = [folder](const std::string& name) { return load_counts((folder / name).string()); },
      .device = planner::find_rates};
}

// Returns the exchange of counts, from --counts or from the schedule's file.
network_model::Workload workload_of_counts(Schedule schedule, const Arguments& arguments) {
  if (arguments.has("bytes")) {
    throw UsageError("--bytes cannot be used with counts",
                     "the counts define how much is sent, and --element the size of an element",
                     "unisono help sim");
  }
  if (arguments.has("element")) {
    const std::uint64_t bytes = arguments.bytes("element");
    const bool is_length = bytes >= 1 && bytes <= std::uint64_t{kMostElementBytes};
    schedule.counts.element_bytes = is_length ? static_cast<std::int64_t>(bytes) : 1;
    const CountProblem problem = check_counts(schedule.counts);
    if (!is_length || !problem.message.empty()) {
      throw UsageError(fmt::format("--element cannot be '{}'", arguments.text("element")),
                       is_length ? problem.message : "give 1 byte to 1 GiB", "unisono help sim");
    }
  }
  // An algorithm of the catalogue with equal counts at both ends cannot be wrong.
  const bool is_trusted =
      !is_schedule_file(arguments.operands().front()) && schedule.counts.receive.empty();
  const std::vector<unisono::Finding> findings =
      is_trusted ? std::vector<unisono::Finding>() : engine::verify_with_sizes(schedule);
  if (!findings.empty()) {
    throw UsageError(fmt::format("{} is not a valid exchange of these counts", title_of(schedule)),
                     to_text(findings.front()),
                     fmt::format("unisono verify {}{}", arguments.operands().front(),
                                 arguments.has("counts") ? " --counts " + arguments.text("counts")
                                                         : std::string()));
  }
  network_model::Workload workload{.ranks = schedule.ranks};
  workload.items.push_back(network_model::exchange(std::move(schedule)));
  return workload;
}

void refuse_element(const Arguments& arguments) {
  if (arguments.has("element")) {
    throw UsageError("--element needs --counts", "--bytes defines how much is sent in all",
                     "unisono help sim");
  }
}

network_model::Workload workload_of_file(const std::string& path, const Arguments& arguments,
                                         bool written_out, std::uint64_t bytes) {
  const std::string text = read_text_file(path);
  const bool workload_file = is_workload(text);
  for (const std::string_view option : {"ranks", "root", "bytes", "counts", "element"}) {
    const bool is_size = option == "bytes" || option == "counts" || option == "element";
    if (arguments.has(option) && (workload_file || !is_size)) {
      throw UsageError(fmt::format("--{} cannot be used with a {}", option,
                                   workload_file ? "workload" : "schedule file"),
                       fmt::format("{} defines it", path), "unisono help sim");
    }
  }
  if (workload_file) {
    Parsed<network_model::Workload> parsed =
        network_model::parse_workload_json(text, written_out, sources_beside(path));
    if (!parsed) {
      throw UsageError(
          fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message), {},
          "docs/formats/workload.md describes the format");
    }
    return std::move(*parsed.value);
  }
  if (arguments.has("counts")) {
    return workload_of_counts(asked_schedule(arguments, "sim", asked_counts(arguments)), arguments);
  }
  Schedule schedule = load_verified_schedule(path);
  if (!schedule.counts.empty()) {
    return workload_of_counts(std::move(schedule), arguments);
  }
  refuse_element(arguments);
  network_model::Workload workload{.ranks = schedule.ranks};
  workload.items.push_back({.name = title_of(schedule),
                            .bytes = static_cast<double>(bytes),
                            .schedule = std::make_shared<const Schedule>(std::move(schedule))});
  return workload;
}

// Encodes the moves between the nodes of the topology, as far as the proof allows.
network_model::WorkItem encoded_operation(const Algorithm& algorithm, const Shape& shape,
                                          double bytes, MoveCode code, const Topology& topology) {
  if (!can_serve(algorithm, shape)) {
    return network_model::operation(algorithm, shape, bytes);  // which reports it
  }
  const cost::EncodedAlgorithm encoded =
      cost::encode_proved(build_schedule(algorithm, shape), full_name(algorithm, shape),
                          network_model::hosts_on(topology, shape.ranks), code);
  if (encoded.schedule == nullptr) {
    throw UsageError(
        fmt::format("{} cannot be encoded between hosts: {}", encoded.name, encoded.why_not),
        "unisono plan --on --max-error shows which algorithms can be encoded", "unisono help plan");
  }
  return {.name = fmt::format("{}/{}", to_string(algorithm.collective), encoded.title),
          .bytes = bytes,
          .schedule = encoded.schedule};
}

network_model::Workload workload_of(const Arguments& arguments, const Topology* topology,
                                    bool written_out, std::uint64_t bytes) {
  constexpr int kUsualRanks = 4;
  const int most_ranks = topology != nullptr ? topology->rank_count() : kUsualRanks;
  const std::string& target = arguments.operands().front();
  if (arguments.has("max-error") && (is_schedule_file(target) || arguments.has("counts"))) {
    throw UsageError("--max-error needs an algorithm", {}, "unisono help sim");
  }
  if (is_schedule_file(target)) {
    return workload_of_file(target, arguments, written_out, bytes);
  }
  if (arguments.has("counts")) {
    return workload_of_counts(
        asked_schedule(arguments, "sim", asked_counts(arguments), kMostCountedRanks), arguments);
  }
  refuse_element(arguments);
  const Algorithm& algorithm = algorithm_of(target);
  const int ranks = arguments.has("ranks")
                        ? static_cast<int>(arguments.number("ranks", 1, kMostSimulatedRanks))
                        : most_ranks;
  const Shape shape{.ranks = ranks,
                    .root = static_cast<int>(arguments.number("root", 0, ranks - 1)),
                    .parameters = parameters_of(algorithm, target)};
  network_model::Workload workload{.ranks = ranks};
  const auto size = static_cast<double>(bytes);
  const MoveCode code = code_of(arguments, algorithm.collective);
  workload.items.push_back(code == MoveCode::none
                               ? network_model::operation(algorithm, shape, size, written_out)
                               : encoded_operation(algorithm, shape, size, code, *topology));
  return workload;
}

void write_trace(const std::string& path, const network_model::SimulationResult& result,
                 const network_model::Workload& workload, const Console& console) {
  write_output(path, network_model::chrome_trace(result, workload));
  console.note(fmt::format("{}{} and {} in {}: unisono view {}, or ui.perfetto.dev",
                           times(result.records.size(), "message"),
                           static_cast<double>(result.records.size()) < result.messages
                               ? fmt::format(" of {:.0f}", result.messages)
                               : std::string(),
                           times(result.computes.size(), "compute step"), path, path));
}

// Shows the progress of a long simulation on a terminal.
class Clock {
 public:
  Clock(const Console& console, const network_model::SimulationProgress& progress)
      : console_(console),
        progress_(progress),
        started_(std::chrono::steady_clock::now()),
        thread_([this](const std::stop_token& stop) { tick(stop); }) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() {
    thread_.request_stop();
    thread_.join();
    if (shown_) {
      console_.end_progress();
    }
  }

 private:
  // Assumes that the remaining messages take as long as the previous ones.
  std::string how_far() const {
    const double all = progress_.all;
    const double part = all > 0 ? progress_.played / all : 0;
    if (!(part > 0)) {
      return {};
    }
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - started_;
    return fmt::format(", {:.0f} % of {:.0f} messages, about {:.0f} s more", 100 * part, all,
                       so_far.count() * (1 - part) / part);
  }

  void tick(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    for (int seconds = 1;; ++seconds) {
      if (ends_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; }) ||
          stop.stop_requested()) {
        return;
      }
      shown_ = true;
      console_.progress(fmt::format("simulating for {} s{}", seconds, how_far()));
    }
  }

  const Console& console_;
  const network_model::SimulationProgress& progress_;
  std::chrono::steady_clock::time_point started_;
  std::mutex mutex_;
  std::condition_variable_any ends_;
  bool shown_ = false;
  std::jthread thread_;
};

// The network of --on or --link.
struct Network {
  std::optional<Topology> topology = {};
  cost::Parameters flat = {};
};

Network simulated_network(const Arguments& arguments) {
  if (arguments.has("on") && arguments.has("link")) {
    throw UsageError("--on and --link are two networks", "give a topology, or equal links",
                     "remove one of the two");
  }
  if (!arguments.has("on") && !arguments.has("link")) {
    throw UsageError("the network is missing: give --on or --link",
                     "such as --on dgx_h100:nodes=2, or --link alpha=5us,beta=12.5GB/s",
                     "unisono topo --presets");
  }
  if (arguments.has("link")) {
    return {.flat = parse_link(arguments.text("link"))};
  }
  return {.topology = load_topology(arguments.text("on"))};
}

Simulation simulate_size(const Arguments& arguments, const Network& network,
                         network_model::SimulationOptions options, std::uint64_t bytes,
                         const Console& console) {
  const Topology* const topology = network.topology ? &*network.topology : nullptr;
  Simulation made{.workload = workload_of(arguments, topology, options.segment_bytes > 0, bytes),
                  .result = {}};
  options.coding_us_per_byte = cost::kCodingUsPerByte;
  network_model::SimulationProgress progress;
  options.progress = &progress;
  const Clock clock(console, progress);
  made.result = network.topology
                    ? network_model::simulate(made.workload, *network.topology, options)
                    : network_model::simulate(made.workload, network.flat, options);
  return made;
}

// Prints a table for several --bytes.
int run_sweep(const Arguments& arguments, const Network& network,
              const network_model::SimulationOptions& options, const Console& console) {
  if (arguments.has("trace")) {
    throw UsageError("--trace cannot be used with several sizes", "a trace contains one simulation",
                     "give --bytes once");
  }
  std::vector<SweepRow> rows;
  for (const std::string& text : arguments.texts("bytes")) {
    const std::uint64_t bytes = arguments.bytes_in("bytes", text);
    rows.push_back(
        {.bytes = bytes, .made = simulate_size(arguments, network, options, bytes, console)});
  }
  print_sweep(rows, network.topology ? &*network.topology : nullptr, console);
  return kDone;
}

int run_sim(const Arguments& arguments, const Console& console) {
  if (arguments.operands().empty()) {
    throw UsageError("there is nothing to simulate: give an algorithm or a file",
                     "unisono sim all_reduce/ring --on dgx_h100:nodes=2 --bytes 1GiB",
                     "unisono list");
  }
  const Network network = simulated_network(arguments);
  const network_model::SimulationOptions options = simulation_options(arguments);
  if (arguments.texts("bytes").size() > 1) {
    return run_sweep(arguments, network, options, console);
  }
  const std::uint64_t bytes = arguments.bytes("bytes");
  Simulation made = simulate_size(arguments, network, options, bytes, console);
  // A trace contains all steps if there is room for their messages.
  if (arguments.has("trace") && made.result.simulated < made.result.messages &&
      made.result.messages <= static_cast<double>(options.records)) {
    network_model::SimulationOptions all = options;
    all.extrapolate = false;
    made = simulate_size(arguments, network, all, bytes, console);
  }
  print_simulation(made.result, made.workload, network.topology ? &*network.topology : nullptr,
                   console);
  if (arguments.has("trace")) {
    write_trace(arguments.text("trace"), made.result, made.workload, console);
  }
  return kDone;
}

constexpr Option kSimOptions[] = {
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "The topology: a preset or a file, as for `unisono topo`."},
    {.name = "link",
     .value = "LINK",
     .help = "A separate link for every pair of ranks, as for `unisono plan`."},
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .help = "The number of ranks. Without it: all ranks of the topology."},
    {.name = "bytes",
     .letter = 'b',
     .value = "SIZE",
     .help = "The larger of the bytes that a rank sends and receives in all. Several sizes make a "
             "table.",
     .fallback = "1MiB",
     .repeats = true},
    {.name = "counts",
     .value = "FILE",
     .help = "For all_to_all_v, instead of --bytes: how many elements each rank sends to every "
             "other rank, one row per sender."},
    {.name = "element",
     .value = "SIZE",
     .help = "With counts: the size of an element. Without it: the size in their file, or 1 byte."},
    {.name = "root",
     .value = "R",
     .help = "The root, for a collective that has one.",
     .fallback = "0"},
    {.name = "max-error",
     .value = "E",
     .help =
         "Encode f32 moves between nodes of the topology, as calls with this max_error do, such "
         "as 0.01."},
    {.name = "ports",
     .value = "N",
     .help = "The number of messages that a rank can send, and receive, at once.",
     .fallback = "1"},
    {.name = "gamma", .value = "SPEED", .help = "The reduction speed of a rank, such as 100GB/s."},
    {.name = "segment", .value = "SIZE", .help = "Cut chunks into segments of at most this size."},
    {.name = "contention",
     .value = "WHEN",
     .help = "Whether messages share links: auto if there may be sharing, on always, off never.",
     .fallback = "auto",
     .choices = "auto|on|off"},
    {.name = "routes",
     .value = "WHICH",
     .help = "The choice among equally short and wide routes: one by the destination (fixed), one "
             "by a hash of both ranks (hashed), or all at once (adaptive).",
     .fallback = "fixed",
     .choices = "fixed|hashed|adaptive"},
    {.name = "late",
     .value = "R=TIME",
     .help = "Start rank R later by this time.",
     .repeats = true},
    {.name = "slow",
     .value = "R=FACTOR",
     .help = "Multiply the overhead, reductions and compute steps of rank R by this factor.",
     .repeats = true},
    {.name = "degrade",
     .value = "LINK=PART",
     .help = "Multiply the bandwidth of a link (from->to), or of all links of a device and of the "
             "devices inside it, by this factor.",
     .repeats = true},
    {.name = "jitter",
     .value = "PART",
     .help = "Lengthen overhead and compute steps at random by up to this share.",
     .fallback = "0"},
    {.name = "seed", .value = "N", .help = "The seed of the jitter.", .fallback = "1"},
    {.name = "all-steps",
     .help = "Play repeating steps one by one, even when they have become steady."},
    {.name = "most-messages",
     .value = "N",
     .help = "The limit on messages that are played one by one.",
     .fallback = "300000000"},
    {.name = "trace",
     .value = "FILE",
     .help = "Write all messages and compute steps, including repeating steps, for unisono view "
             "and chrome://tracing: up to a million messages."}};

}  // namespace

const Command kSimCommand = {
    .name = "sim",
    .summary = "simulate a schedule or a workload on a topology, with faults",
    .operands = "COLLECTIVE/ALGORITHM | FILE.json",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono sim all_reduce/ring --on dgx_h100:nodes=2 --bytes 1GiB",
                   "Simulate an algorithm on a known machine."},
                  {"unisono sim all_reduce/ring --on fat_tree:hosts=64 --degrade host3=0.5",
                   "Give one host half of its bandwidth."},
                  {"unisono sim workload.json --on rail_optimised:nodes=4 --trace sim.json",
                   "Simulate a workload: operations of many groups, messages and compute steps."}}},
    .description =
        "A message starts when its data is ready and a port is free on either side. Its bytes flow "
        "at the max-min fair rate of the links on its route. Repeating steps are played until they "
        "are steady, so that a ring of 100,000 ranks takes a second.\n\n"
        "A file is a schedule (unisono.schedule/1) or a workload (unisono.workload/1). The same "
        "arguments and seed always give the same result.",
    .options = kSimOptions,
    .run = run_sim};

}  // namespace unisono::cli
