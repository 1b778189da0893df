// `unisono reshard sim`: the messages of the runner on the links of a topology.
//
// A rank has messages of several slots in flight, as in the runner. It begins its messages of slot
// s when its own messages of slot s - kSlotsInFlight have ended. A message of slot s that passes
// elements on also waits for the rank's own messages of all slots up to s - kLead, because one of
// these messages brings the elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "network_model/simulator/report.h"
#include "network_model/simulator/simulate.h"
#include "parallel/reshard_messages.h"
#include "parallel/reshard_order.h"
#include "plan/plan.h"
#include "reshards/reshards.h"

namespace unisono::cli {
namespace {

// The simulated messages of a large reshard are longer than the runner's, so that there are about
// so many.
constexpr std::size_t kMostMessages = 20'000;
// Messages that a rank sends, and that it receives, at once.
constexpr int kPorts = 16;
// The simulation plays this many slots at once. The runner keeps 16 messages in flight, which are
// those of at least as many slots.
constexpr std::size_t kSlotsInFlight = 2;

network_model::Workload workload_of(const parallel::ReshardPlan& plan, int ranks,
                                    std::size_t message_bytes) {
  // Each slot has messages from the source, and messages that pass elements on.
  std::map<std::size_t, std::array<std::vector<network_model::Transfer>, 2>> slots;
  for (const parallel::ReshardMessage& message : all_messages_of(plan, message_bytes)) {
    slots[message.turn.slot][message.turn.hop > 0 ? 1 : 0].push_back(
        {.from = message.turn.from, .to = message.to, .bytes = static_cast<double>(message.bytes)});
  }
  network_model::Workload workload{.ranks = ranks};
  std::deque<std::pair<std::size_t, int>> latest;  // slots, and their first items
  std::size_t stream = 0;
  for (const auto& [slot, kinds] : slots) {
    latest.emplace_back(slot, static_cast<int>(workload.items.size()));
    std::vector<int> before;
    for (std::size_t i = 0; i + 1 < latest.size(); ++i) {
      for (int item = latest[i].second;
           item < latest[i + 1].second && latest[i].first + parallel::kLead <= slot; ++item) {
        before.push_back(item);
      }
    }
    for (const bool passes_on : {false, true}) {
      if (kinds[passes_on ? 1 : 0].empty()) {
        continue;
      }
      network_model::WorkItem item = network_model::transfers(kinds[passes_on ? 1 : 0]);
      item.name = fmt::format("slot {}", slot);
      item.stream = static_cast<int>(stream + (passes_on ? kSlotsInFlight : 0));
      if (passes_on) {
        item.after_own = before;
      }
      workload.items.push_back(std::move(item));
    }
    if (latest.size() > parallel::kLead + kSlotsInFlight) {  // a stream's later items imply earlier
      latest.pop_front();
    }
    stream = (stream + 1) % kSlotsInFlight;
  }
  return workload;
}

struct WireBound {
  double us = 0;
  std::string what = {};
};

// The device that holds a rank and all others of its host; the rank's own if there is none.
bool is_inside(const Topology& topology, int device, int outer) {
  for (; device >= 0; device = topology.devices[static_cast<std::size_t>(device)].inside) {
    if (device == outer) {
      return true;
    }
  }
  return false;
}

// The time that bytes need to enter or leave a device at the full bandwidth of all its links.
void raise(WireBound& bound, const Topology& topology, int device, bool in, double bytes,
           const std::string& what) {
  double bytes_per_us = 0;
  for (const Link& link : topology.links) {
    const bool from = is_inside(topology, link.from, device);
    const bool to = is_inside(topology, link.to, device);
    bytes_per_us += from != to && to == in ? link.bytes_per_us : 0;
  }
  if (bytes_per_us > 0 && bytes / bytes_per_us > bound.us) {
    bound = {.us = bytes / bytes_per_us, .what = what};
  }
}

// Every plan needs this time: each rank receives what it lacks, and each host receives it once.
// REQUIRES: a plan with the fewest bytes.
WireBound wire_bound(const parallel::ReshardPlan& plan, const Topology& topology) {
  std::map<int, double> into_rank;
  std::map<int, double> into_host;
  for (const parallel::ReshardMove& move : plan.moves) {
    const auto bytes = static_cast<double>(move.bytes);
    if (move.from == move.to || move.summand) {
      continue;
    }
    into_rank[move.to] += bytes;
    const int host = plan.hosts[static_cast<std::size_t>(move.to)];
    if (plan.hosts[static_cast<std::size_t>(move.from)] != host) {
      into_host[host] += bytes;
    }
  }
  WireBound bound;
  for (const auto& [rank, bytes] : into_rank) {
    raise(bound, topology, topology.ranks[static_cast<std::size_t>(rank)], true, bytes,
          fmt::format("rank {} receives {}", rank, format_bytes(bytes)));
  }
  for (const auto& [host, bytes] : into_host) {
    raise(bound, topology, host, true, bytes,
          fmt::format("{} receives {}", topology.devices[static_cast<std::size_t>(host)].name,
                      format_bytes(bytes)));
  }
  return bound;
}

}  // namespace

int simulate_reshard(const ReshardQuestion& question, const Console& console) {
  if (!question.topology) {
    throw UsageError("the machine is missing: give --on", "--on dgx_h100:nodes=2",
                     "unisono topo --presets");
  }
  // Protocols are for collectives.
  Topology topology = *question.topology;
  topology.protocols.clear();
  const std::size_t message_bytes =
      std::max(parallel::kMessageBytes, question.plan.bytes_sent() / kMostMessages);
  const network_model::Workload workload =
      workload_of(question.plan, topology.rank_count(), message_bytes);
  network_model::SimulationResult result{};
  if (!workload.items.empty()) {
    result = network_model::simulate(workload, topology, {.ports = kPorts});
  }
  const WireBound bound = wire_bound(question.plan, topology);
  std::size_t busiest = 0;
  for (std::size_t link = 0; link < result.links.size(); ++link) {
    busiest = result.links[link].full_us > result.links[busiest].full_us ? link : busiest;
  }
  const BusiestRank busiest_sender =
      busiest_rank(question.plan, parallel::reshard_bound(question.plan));
  const double factor = bound.us > 0 ? result.total_us / bound.us : 1;
  if (console.json()) {
    fmt::print(
        "{}\n",
        nlohmann::ordered_json(
            {{"schema", "unisono.reshard_sim/1"},
             {"what", question.what},
             {"from", question.from},
             {"to", question.to},
             {"topology", topology.name},
             {"notes", question.notes},
             {"time_us", result.total_us},
             {"least_us", bound.us},
             {"least_because", bound.what},
             {"messages", static_cast<std::uint64_t>(result.messages)},
             {"message_bytes_max", message_bytes},
             {"bytes_sent", question.plan.bytes_sent()},
             {"bytes_between_hosts", question.plan.bytes_between_hosts()},
             {"busiest_rank", busiest_sender.rank},
             {"busiest_rank_bytes_sent", busiest_sender.sent},
             {"least_busiest_rank_bytes_sent", busiest_sender.least},
             {"busiest_link_us", result.links.empty() ? 0.0 : result.links[busiest].full_us}})
            .dump(2));
    return kDone;
  }
  fmt::print("{}  on   {}\n", reshard_heading(question, console), topology.name);
  if (workload.items.empty()) {
    fmt::print("time           0: every rank has its elements\n");
    return kDone;
  }
  fmt::print("time           {}\n", time_text(result.total_us * 1e-6));
  if (bound.us > 0) {
    fmt::print("at least       {}: {}; {:.2f}x\n", time_text(bound.us * 1e-6), bound.what, factor);
  }
  fmt::print("busiest link   {}, {} at its full bandwidth\n",
             network_model::link_name(topology, busiest),
             time_text(result.links[busiest].full_us * 1e-6));
  fmt::print("sends most     {}\n", busiest_sender.text());
  fmt::print("messages       {:.0f}, {} at most\n", result.messages, format_bytes(message_bytes));
  return kDone;
}

}  // namespace unisono::cli
