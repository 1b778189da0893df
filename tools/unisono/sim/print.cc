// The result of a simulation, for people.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes_text.h"
#include "base/collectives.h"
#include "cli/wrap.h"
#include "network_model/simulator/report.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

constexpr double kUsPerSecond = 1e6;
constexpr double kBytesPerUsOfGb = 1e3;

std::string us_text(double us) {
  return time_text(us / kUsPerSecond);
}

// Size over time; GB/s.
double algbw(double bytes, double us) {
  return us > 0 ? bytes / us / kBytesPerUsOfGb : 0;
}

// Returns the factor from algbw to busbw for "all_reduce/ring"; none if it is not a collective.
std::optional<double> bus_factor_of(const network_model::Workload& workload) {
  const std::string& name = workload.items.front().name;
  const auto collective = parse_collective(name.substr(0, name.find('/')));
  return collective ? std::optional(bus_factor(*collective, workload.ranks)) : std::nullopt;
}

std::string network_text(const network_model::Workload& workload, const Topology* topology) {
  return fmt::format("{} rank{}  on {}", workload.ranks, workload.ranks == 1 ? "" : "s",
                     topology == nullptr      ? "a flat network"
                     : topology->name.empty() ? "a topology"
                                              : topology->name);
}

void print_heading(const network_model::Workload& workload, const Topology* topology,
                   const Console& console) {
  std::string what = fmt::format("{} items", workload.items.size());
  if (workload.items.size() == 1) {
    const network_model::WorkItem& item = workload.items.front();
    what = item.name + (item.compute_us > 0 ? "" : "  " + format_bytes(item.bytes));
  }
  fmt::print("{}  {}\n", console.paint(Paint::strong, what), network_text(workload, topology));
}

void print_ranks(const network_model::SimulationResult& result) {
  if (result.ranks.empty()) {
    return;
  }
  const auto [least, most] =
      std::minmax_element(result.ranks.begin(), result.ranks.end(),
                          [](const network_model::RankTimes& a, const network_model::RankTimes& b) {
                            return a.waiting_us < b.waiting_us;
                          });
  const bool starts = std::ranges::any_of(
      result.ranks, [](const network_model::RankTimes& rank) { return rank.starting_us > 0; });
  const auto row = [&](const char* word, const network_model::RankTimes& rank) {
    const std::string starting =
        starts ? fmt::format("  starting {:>9}", us_text(rank.starting_us)) : std::string();
    fmt::print("  rank {:<6} waits {:<5}{}  moving {:>9}  computing {:>9}  waiting {:>9}\n",
               &rank - result.ranks.data(), word, starting, us_text(rank.moving_us),
               us_text(rank.computing_us), us_text(rank.waiting_us));
  };
  row("most", *most);
  if (least != most) {
    row("least", *least);
  }
}

void print_links(const network_model::SimulationResult& result, const Topology& topology) {
  constexpr std::size_t kMostShown = 5;
  const std::vector<std::size_t> busiest = network_model::busiest_links(result);
  fmt::print("links used      {} of {}, each way counted{}\n", busiest.size(),
             topology.links.size(), busiest.empty() ? "" : "; the fullest:");
  for (std::size_t i = 0; i < std::min(kMostShown, busiest.size()); ++i) {
    const network_model::LinkUse& use = result.links[busiest[i]];
    fmt::print("  {:<32}  {:>9}  busy {:>9}  full {:>3.0f} %\n",
               network_model::link_name(topology, busiest[i]), format_bytes(use.bytes),
               us_text(use.busy_us), 100 * use.full_us / std::max(result.total_us, 1e-300));
  }
}

}  // namespace

void print_simulation(const network_model::SimulationResult& result,
                      const network_model::Workload& workload, const Topology* topology,
                      const Console& console) {
  if (console.json()) {
    fmt::print("{}", network_model::report_json(result, workload, topology));
    return;
  }
  print_heading(workload, topology, console);
  fmt::print("time            {}\n", us_text(result.total_us));
  double start_us = 0;
  if (result.protocol) {
    start_us = result.protocol->start_us;
    fmt::print("protocol        {}: {}\n", result.protocol->name, protocol_text(*result.protocol));
  }
  if (workload.items.size() == 1 && workload.items.front().bytes > 0 && result.total_us > 0) {
    const double rate = algbw(workload.items.front().bytes, result.total_us);
    const auto factor = bus_factor_of(workload);
    fmt::print("algbw           {:.2f} GB/s{}\n", rate,
               factor ? fmt::format(", busbw {:.2f} GB/s", rate * *factor) : std::string());
  }
  const network_model::CriticalPath& path = result.critical;
  fmt::print("critical path   {}: {}latency {}, transfer {}, reducing {}, computing or late {}\n",
             times(static_cast<std::size_t>(path.messages), "message"),
             start_us > 0 ? fmt::format("starting {}, ", us_text(start_us)) : std::string(),
             us_text(path.latency_us - start_us), us_text(std::max(0.0, path.transfer_us)),
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

void print_sweep(const std::vector<SweepRow>& rows, const Topology* topology,
                 const Console& console) {
  const network_model::Workload& workload = rows.front().made.workload;
  const std::string& name = workload.items.front().name;
  const auto gb_per_s = [](const SweepRow& row) {
    return algbw(static_cast<double>(row.bytes), row.made.result.total_us);
  };
  const auto factor = bus_factor_of(workload);
  if (!console.json()) {
    fmt::print(
        "{}  {}\n{}\n", console.paint(Paint::strong, name), network_text(workload, topology),
        console.paint(Paint::strong, fmt::format("{:>9}  {:>9}  {:>10}{}", "size", "time",
                                                 "algbw GB/s", factor ? "  busbw GB/s" : "")));
    for (const SweepRow& row : rows) {
      fmt::print("{:>9}  {:>9}  {:>10.2f}{}\n", format_bytes(static_cast<double>(row.bytes)),
                 us_text(row.made.result.total_us), gb_per_s(row),
                 factor ? fmt::format("  {:>10.2f}", gb_per_s(row) * *factor) : std::string());
    }
    return;
  }
  nlohmann::ordered_json json;
  json["schema"] = "unisono.simulated_sizes/1";
  json["name"] = name;
  json["ranks"] = workload.ranks;
  json["rows"] = nlohmann::json::array();
  for (const SweepRow& row : rows) {
    json["rows"].push_back({{"bytes", row.bytes},
                            {"time_us", rounded(row.made.result.total_us)},
                            {"algbw_gb_per_s", rounded(gb_per_s(row))},
                            {"messages", static_cast<std::uint64_t>(row.made.result.messages)}});
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace unisono::cli
