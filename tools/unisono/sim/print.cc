// The result of a simulation, for people.
#include <fmt/format.h>

#include <algorithm>

#include "model/simulator/report.h"
#include "plan/plan.h"
#include "sim/sim.h"

namespace unisono::cli {
namespace {

constexpr double kUsPerSecond = 1e6;

std::string us_text(double us) {
  return time_text(us / kUsPerSecond);
}

void print_heading(const model::Workload& workload, const Topology* topology,
                   const Console& console) {
  std::string what = fmt::format("{} items", workload.items.size());
  if (workload.items.size() == 1) {
    const model::WorkItem& item = workload.items.front();
    what = item.name + (item.compute_us > 0 ? "" : "  " + size_text(item.bytes));
  }
  fmt::print("{}  {} rank{}  on {}\n", console.paint(Paint::strong, what), workload.ranks,
             workload.ranks == 1 ? "" : "s",
             topology == nullptr      ? "a flat network"
             : topology->name.empty() ? "a topology"
                                      : topology->name);
}

void print_ranks(const model::SimulationResult& result) {
  if (result.ranks.empty()) {
    return;
  }
  const auto [least, most] =
      std::minmax_element(result.ranks.begin(), result.ranks.end(),
                          [](const model::RankTimes& a, const model::RankTimes& b) {
                            return a.waiting_us < b.waiting_us;
                          });
  const auto row = [&](const char* word, const model::RankTimes& rank) {
    fmt::print("  rank {:<6} waits {:<5}  moving {:>9}  computing {:>9}  waiting {:>9}\n",
               &rank - result.ranks.data(), word, us_text(rank.moving_us),
               us_text(rank.computing_us), us_text(rank.waiting_us));
  };
  row("most", *most);
  if (least != most) {
    row("least", *least);
  }
}

void print_links(const model::SimulationResult& result, const Topology& topology) {
  constexpr std::size_t kMostShown = 5;
  const std::vector<std::size_t> busiest = model::busiest_links(result);
  fmt::print("links used      {} of {}, each way counted{}\n", busiest.size(),
             topology.links.size(), busiest.empty() ? "" : "; the fullest:");
  for (std::size_t i = 0; i < std::min(kMostShown, busiest.size()); ++i) {
    const model::LinkUse& use = result.links[busiest[i]];
    fmt::print("  {:<32}  {:>9}  busy {:>9}  full {:>3.0f} %\n",
               model::link_name(topology, busiest[i]), size_text(use.bytes), us_text(use.busy_us),
               100 * use.full_us / std::max(result.total_us, 1e-300));
  }
}

}  // namespace

void print_simulation(const model::SimulationResult& result, const model::Workload& workload,
                      const Topology* topology, const Console& console) {
  if (console.json()) {
    fmt::print("{}", model::report_json(result, workload, topology));
    return;
  }
  print_heading(workload, topology, console);
  fmt::print("time            {}\n", us_text(result.total_us));
  const model::CriticalPath& path = result.critical;
  fmt::print(
      "critical path   {} messages: latency {}, transfer {}, reducing {}, computing or late {}\n",
      path.messages, us_text(path.latency_us), us_text(std::max(0.0, path.transfer_us)),
      us_text(path.reduce_us), us_text(path.compute_us));
  fmt::print("messages        {:.0f}{}{}\n", result.messages,
             result.simulated < result.messages
                 ? fmt::format(", {:.0f} played until steady", result.simulated)
                 : "",
             result.shared_links ? ", links shared" : "");
  print_ranks(result);
  if (topology != nullptr) {
    print_links(result, *topology);
  }
  if (workload.items.size() > 1) {
    constexpr std::size_t kMostItems = 20;
    fmt::print("items           end\n");
    for (std::size_t i = 0; i < std::min(kMostItems, workload.items.size()); ++i) {
      fmt::print("  {:<24} {:>9}\n", workload.items[i].name, us_text(result.item_end_us[i]));
    }
    if (workload.items.size() > kMostItems) {
      fmt::print("  and {} more\n", workload.items.size() - kMostItems);
    }
  }
}

}  // namespace unisono::cli
