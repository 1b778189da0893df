// `unisono topo`: makes, reads, discovers and describes topologies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/wrap.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "topology/presets.h"
#include "topology/routes.h"

namespace unisono::cli {
namespace {

std::string rate_text(double bytes_per_us) {
  return fmt::format("{:g} GB/s", bytes_per_us / 1e3);
}

void print_presets(const Console& console) {
  if (console.json()) {
    nlohmann::ordered_json result;
    result["schema"] = "unisono.presets/1";
    result["presets"] = nlohmann::json::array();
    for (const Preset* preset : presets()) {
      nlohmann::ordered_json row{{"preset", preset->name},
                                 {"summary", preset->summary},
                                 {"source", preset->source},
                                 {"parameters", nlohmann::json::array()}};
      for (const PresetParameter& parameter : preset->parameters) {
        row["parameters"].push_back({{"name", parameter.name},
                                     {"default", parameter.fallback},
                                     {"least", parameter.least},
                                     {"most", parameter.most},
                                     {"help", parameter.help}});
      }
      result["presets"].push_back(row);
    }
    fmt::print("{}\n", result.dump(2));
    return;
  }
  for (const Preset* preset : presets()) {
    const std::string summary = wrap(preset->summary, 18, console.width());
    fmt::print("{}  {}", console.paint(Paint::strong, fmt::format("{:<16}", preset->name)),
               summary.substr(18));
    for (const PresetParameter& parameter : preset->parameters) {
      fmt::print("{}", wrap(fmt::format("{}={}  {} ({}..{})", parameter.name, parameter.fallback,
                                        parameter.help, parameter.least, parameter.most),
                            20, console.width()));
    }
  }
  fmt::print(
      "\nchoose parameters with NAME:PARAMETER=NUMBER,..., such as fat_tree:hosts=1024,ports=32\n");
}

struct Rate {
  double bytes_per_us = 0;
  double latency_us = 0;
  std::size_t links = 0;
};

// Returns groups of links with equal figures, the fastest first.
std::vector<Rate> rates_of(const Topology& topology) {
  std::vector<Rate> rates;
  for (const Link& link : topology.links) {
    const auto found = std::find_if(rates.begin(), rates.end(), [&link](const Rate& rate) {
      return rate.bytes_per_us == link.bytes_per_us && rate.latency_us == link.latency_us;
    });
    if (found == rates.end()) {
      rates.push_back({link.bytes_per_us, link.latency_us, 1});
    } else {
      ++found->links;
    }
  }
  std::sort(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) {
    return a.bytes_per_us != b.bytes_per_us ? a.bytes_per_us > b.bytes_per_us
                                            : a.latency_us < b.latency_us;
  });
  return rates;
}

void print_summary(const Topology& topology) {
  std::array<std::size_t, 7> kinds{};
  for (const Device& device : topology.devices) {
    ++kinds[static_cast<std::size_t>(device.kind)];
  }
  std::string devices;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind] > 0) {
      devices += fmt::format("{}{} {}", devices.empty() ? "" : ", ", kinds[kind],
                             to_string(static_cast<DeviceKind>(kind)));
    }
  }
  fmt::print("{}\n", topology.name.empty() ? "topology" : topology.name);
  fmt::print("ranks     {}\n", topology.ranks.size());
  fmt::print("devices   {}  ({})\n", topology.devices.size(), devices);
  fmt::print("overhead  {:g} us per message\n", topology.overhead_us);
  for (const Protocol& protocol : topology.protocols) {
    fmt::print("protocol  {}: {}\n", protocol.name, protocol_text(protocol));
  }
  for (const Rate& rate : rates_of(topology)) {
    fmt::print("links     {} of {} each in its direction, {:g} us\n", rate.links,
               rate_text(rate.bytes_per_us), rate.latency_us);
  }
  if (!topology.source.empty()) {
    fmt::print("source    {}\n", topology.source);
  }
}

void print_route(const Topology& topology, const std::string& pair, const Console& console) {
  const std::size_t comma = pair.find(',');
  const std::vector<int> from = parse_ranks(pair.substr(0, comma), topology.rank_count(), "route");
  const std::vector<int> to =
      comma == std::string::npos
          ? std::vector<int>{}
          : parse_ranks(pair.substr(comma + 1), topology.rank_count(), "route");
  if (from.size() != 1 || to.size() != 1) {
    throw UsageError(fmt::format("--route {} is not a pair of ranks", pair), "such as --route 0,8",
                     "unisono help topo");
  }
  Router router(topology);
  double latency = topology.overhead_us;
  double width = 0;
  nlohmann::ordered_json rows = nlohmann::json::array();
  for (const int index : router.route(from.front(), to.front())) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    const auto& name = [&](int device) -> const std::string& {
      return topology.devices[static_cast<std::size_t>(device)].name;
    };
    latency += link.latency_us;
    width = width == 0 ? link.bytes_per_us : std::min(width, link.bytes_per_us);
    if (console.json()) {
      rows.push_back({{"from", name(link.from)},
                      {"to", name(link.to)},
                      {"latency_us", link.latency_us},
                      {"bandwidth_gb_per_s_one_way", link.bytes_per_us / 1e3}});
    } else {
      fmt::print("{} -> {}  {}, {:g} us\n", name(link.from), name(link.to),
                 rate_text(link.bytes_per_us), link.latency_us);
    }
  }
  if (console.json()) {
    nlohmann::ordered_json result{{"schema", "unisono.route/1"},
                                  {"from_rank", from.front()},
                                  {"to_rank", to.front()},
                                  {"latency_us", latency},
                                  {"bandwidth_gb_per_s_one_way", width / 1e3},
                                  {"links", rows}};
    fmt::print("{}\n", result.dump(2));
  } else {
    fmt::print("rank {} to rank {}: {}, {:g} us with overhead\n", from.front(), to.front(),
               width == 0 ? "no link" : rate_text(width), latency);
  }
}

}  // namespace

std::string protocol_text(const Protocol& protocol) {
  return fmt::format(
      "an operation starts in {:.3g} us, each message adds {:.3g} us, and uses {:.0f} % of the "
      "links' bandwidth",
      protocol.start_us, protocol.message_us, 100 * protocol.share);
}

namespace {

int run_topo(const Arguments& arguments, const Console& console) {
  if (arguments.has("presets")) {
    print_presets(console);
    return kDone;
  }
  if (!arguments.operands().empty() && arguments.has("discover")) {
    throw UsageError("--discover cannot be used with a topology", {}, "unisono help topo");
  }
  const Topology topology =
      arguments.operands().empty() ? discover_host() : load_topology(arguments.operands().front());
  if (arguments.has("route")) {
    print_route(topology, arguments.text("route"), console);
  } else if (console.json()) {
    fmt::print("{}", to_json(topology));
  } else {
    print_summary(topology);
  }
  return kDone;
}

constexpr Option kTopoOptions[] = {
    {.name = "presets",
     .help = "List the presets with their parameters, and with --json their sources."},
    {.name = "discover",
     .help = "Describe this host: its sockets, cores, GPUs and NICs, as hwloc sees them."},
    {.name = "route", .value = "A,B", .help = "Show the links from one rank to another."}};

}  // namespace

const Command kTopoCommand = {
    .name = "topo",
    .summary = "describe a machine: devices, links, routes",
    .operands = "[PRESET | FILE]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono topo --presets", "List the known machines."},
                  {"unisono topo dgx_h100:nodes=4 --route 0,12",
                   "Show how two ranks are connected."},
                  {"unisono topo --discover --json > host.json",
                   "Describe this host in a file, to edit and simulate it."}}},
    .description =
        "A topology consists of devices, of one-way links, and of the device of each rank. With "
        "--json it is printed as unisono.topology/1, which this command can read. A file is "
        "checked: dangling links, zero bandwidth, unknown units and ranks that cannot reach each "
        "other are errors, reported with their place.\n\n"
        "The command also reads the matrix of `nvidia-smi topo -m`, the report of `rocm-smi "
        "--showtopo` and the XML that NCCL writes to NCCL_TOPO_DUMP_FILE. The printed source lists "
        "the figures that were assumed.\n\n"
        "Bandwidths are for one direction.",
    .options = kTopoOptions,
    .run = run_topo};

}  // namespace unisono::cli
