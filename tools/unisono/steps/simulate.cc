// `unisono step sim`.
#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/wrap.h"
#include "models/models.h"
#include "network_model/simulator/report.h"
#include "sim/sim.h"
#include "step/calls.h"
#include "step/workload.h"
#include "steps/steps.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

constexpr int kMostPlayed = 4096;

planner::Precision precision_of(const step::Step& step) {
  double bytes = 0;
  for (const step::Tensor& tensor : step.tensors) {
    bytes = tensor.kind == step::Tensor::Kind::weight ? tensor.element_bytes : bytes;
  }
  return bytes == 1 ? planner::Precision::f8 : planner::Precision::bf16;
}

// Returns the computed FLOPs divided by the devices' peak in that time.
double utilisation(const step::Step& step, double total_us, double flops_per_s) {
  double flops = 0;
  const auto calls = step::calls_of(step);
  for (const auto& of_rank : calls) {
    for (const step::Call& call : of_rank) {
      flops += call.flops;
    }
  }
  return flops / (flops_per_s * total_us * 1e-6 * static_cast<double>(calls.size()));
}

}  // namespace

int simulate_step(const step::Step& step, const Arguments& arguments, const Console& console) {
  refuse_wrong(step);
  if (!arguments.has("on")) {
    throw UsageError("the machine is missing: give --on", "--on dgx_h100:nodes=2",
                     "unisono topo --presets");
  }
  const Topology topology = load_topology(arguments.text("on"));
  const int ranks = parallel::MeshShape::parse(step.mesh).ranks();
  if (ranks > topology.rank_count() || ranks > kMostPlayed) {
    throw UsageError(fmt::format("{} has {} ranks, but the step {}",
                                 ranks > kMostPlayed ? "the simulator" : topology.name,
                                 ranks > kMostPlayed ? kMostPlayed : topology.rank_count(), ranks),
                     {}, "unisono help step");
  }
  const planner::DeviceModel device = read_device(arguments, topology, "unisono help step");
  const std::string text = to_workload_json(step, device, precision_of(step));
  if (arguments.has("workload")) {
    write_output(arguments.text("workload"), text);
  }
  const network_model::Workload workload = *network_model::parse_workload_json(text).value;
  constexpr std::size_t kRecords = 200'000;
  network_model::SimulationResult result = network_model::simulate(
      workload, topology, {.records = arguments.has("trace") ? kRecords : 0});
  // A trace contains all steps if there is room for their messages.
  if (arguments.has("trace") && result.simulated < result.messages &&
      result.messages <= static_cast<double>(kRecords)) {
    result =
        network_model::simulate(workload, topology, {.extrapolate = false, .records = kRecords});
  }
  print_simulation(result, workload, &topology, console);
  if (!console.json()) {
    fmt::print("utilisation     {:.1f} % of the {} of {}\n",
               100 * utilisation(step, result.total_us, device.flops(precision_of(step))),
               planner::to_string(precision_of(step)), device.name);
  }
  if (arguments.has("train") && !console.json()) {
    const step::TrainingTask task = training_task(arguments);
    const double tokens_per_s = static_cast<double>(task.sequences) *
                                static_cast<double>(task.length) / result.total_us * 1e6;
    fmt::print("tokens          {:.0f} a second, {:.0f} of each rank\n", tokens_per_s,
               tokens_per_s / ranks);
  }
  if (arguments.has("trace")) {
    write_output(arguments.text("trace"), network_model::chrome_trace(result, workload));
    console.note(fmt::format("{} and {} in {}: unisono view {}",
                             times(result.records.size(), "message"),
                             times(result.computes.size(), "compute step"), arguments.text("trace"),
                             arguments.text("trace")));
  }
  return kDone;
}

}  // namespace unisono::cli
