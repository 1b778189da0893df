// `unisono plan moe`: predicts dispatch and combine on a topology.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "bench/moe_routing.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "network_model/expert_traffic.h"
#include "plan/plan.h"
#include "schedule/counts.h"
#include "show/show.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

constexpr int kMostRanks = 4096;  // all pairs of ranks are examined
constexpr std::int64_t kMost = 1'000'000'000;

struct Row {
  const char* mode;
  const char* call;
  network_model::ExpertCost cost;
};

network_model::ExpertShape shape_of(const Arguments& arguments) {
  const network_model::ExpertShape shape{
      .tokens = static_cast<double>(arguments.number("tokens", 0, kMost)),
      .hidden = static_cast<double>(arguments.number("hidden", 1, kMost)),
      .experts = static_cast<int>(arguments.number("experts", 1, 1'000'000)),
      .k = static_cast<int>(arguments.number("choices", 1, 1'000'000))};
  if (shape.k > shape.experts) {
    throw UsageError(fmt::format("a token cannot choose {} of {} experts", shape.k, shape.experts),
                     "give -k as many as there are, or fewer", "unisono help plan");
  }
  return shape;
}

void print_text(const network_model::ExpertShape& shape, const Topology& topology,
                const std::vector<Row>& rows, const Console& console) {
  fmt::print("moe  {} ranks  {} each, hidden {}, {} of {} experts   on {}\n\n",
             topology.rank_count(), tokens_text(shape.tokens), shape.hidden, shape.k, shape.experts,
             topology.name.empty() ? "a topology" : topology.name);
  fmt::print("{}\n", console.paint(Paint::strong,
                                   fmt::format("{:<11}  {:<8}  {:>8}  {:>9}  {:>9}  {:>8}  {:>8}  "
                                               "{}",
                                               "mode", "call", "row", "sent", "off host", "bound",
                                               "time", "busiest link")));
  for (const Row& row : rows) {
    fmt::print("{:<11}  {:<8}  {:>8}  {:>9}  {:>9}  {:>8}  {:>8}  {}\n", row.mode, row.call,
               format_bytes(row.cost.row_bytes), format_bytes(row.cost.sent_bytes),
               format_bytes(row.cost.host_bytes), time_text(row.cost.bound_us * 1e-6),
               time_text(row.cost.time_us * 1e-6),
               row.cost.bound_link.empty() ? "none" : row.cost.bound_link);
  }
}

void print_json(const network_model::ExpertShape& shape, const Topology& topology,
                const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan_moe/1";
  json["topology"] = topology.name;
  json["ranks"] = topology.rank_count();
  json["tokens"] = static_cast<std::int64_t>(shape.tokens);
  json["hidden"] = static_cast<std::int64_t>(shape.hidden);
  json["experts"] = shape.experts;
  json["k"] = shape.k;
  json["calls"] = nlohmann::json::array();
  for (const Row& row : rows) {
    json["calls"].push_back({{"mode", row.mode},
                             {"call", row.call},
                             {"row_bytes", row.cost.row_bytes},
                             {"sent_bytes", rounded(row.cost.sent_bytes)},
                             {"host_bytes", rounded(row.cost.host_bytes)},
                             {"bound_us", rounded(row.cost.bound_us)},
                             {"bound_link", row.cost.bound_link},
                             {"time_us", rounded(row.cost.time_us)}});
  }
  fmt::print("{}\n", json.dump(2));
}

// Prints a router's choices as the counts of dispatch, or with --call of combine.
void plan_routing(const Arguments& arguments, const Console& console) {
  for (const std::string_view option : {"tokens", "choices"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} does not go with --routing", option),
                       fmt::format("{} says it", arguments.text("routing")), "unisono help plan");
    }
  }
  const int ranks = arguments.has("on")
                        ? load_topology(arguments.text("on")).rank_count()
                        : static_cast<int>(arguments.number("ranks", 1, kMostRanks));
  if (ranks > kMostRanks) {
    throw UsageError(fmt::format("{} ranks are too many for plan moe", ranks),
                     fmt::format("give a topology of at most {}", kMostRanks), "unisono help plan");
  }
  const std::string& path = arguments.text("routing");
  const MoeCase row = read_routing(path, 0, ranks);
  network_model::ExpertShape shape{
      .tokens = static_cast<double>(row.tokens),
      .hidden = static_cast<double>(arguments.number("hidden", 1, kMost)),
      .experts = row.experts,
      .k = row.k};
  if (arguments.has("experts")) {
    shape.experts = static_cast<int>(arguments.number("experts", row.experts, 1'000'000));
  }
  const std::string call = arguments.text("call");
  const Counts counts = call == "combine"
                            ? network_model::combine_counts(row.chosen, shape, ranks)
                            : network_model::dispatch_counts(row.chosen, shape, ranks);
  const CountTotals totals = totals_of(counts);
  const double mean = static_cast<double>(totals.all) / ranks;
  const double imbalance = mean > 0 ? static_cast<double>(totals.most_received) / mean : 1;
  if (arguments.has("save")) {
    write_output(arguments.text("save"), to_json(counts));
  }
  if (console.json()) {
    nlohmann::ordered_json json;
    json["schema"] = "unisono.plan_moe_routing/1";
    json["call"] = call;
    json["ranks"] = ranks;
    json["tokens"] = row.tokens;
    json["left_out"] = row.left_out;
    json["hidden"] = static_cast<std::int64_t>(shape.hidden);
    json["experts"] = shape.experts;
    json["k"] = shape.k;
    json["element_bytes"] = counts.element_bytes;
    json["send"] = counts.send;
    json["rows"] = totals.all;
    json["most_sent"] = totals.most_sent;
    json["most_received"] = totals.most_received;
    json["imbalance"] = rounded(imbalance);
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("moe {}  {} ranks  {} each, hidden {}, {} of {} experts   chosen in {}\n\n", call,
             ranks, tokens_text(shape.tokens), static_cast<std::int64_t>(shape.hidden), shape.k,
             shape.experts, path);
  std::fputs(draw_counts(counts, console.width(), console).c_str(), stdout);
  fmt::print("rank {} receives most, {:.2f} of the mean\n", totals.busiest_receiver, imbalance);
  if (row.left_out != 0) {
    console.note(left_out_text(row, ranks));
  }
  if (arguments.has("save")) {
    console.note(
        fmt::format("{}: for --counts of show, verify, sim and view", arguments.text("save")));
  }
}

}  // namespace

void plan_experts(const Arguments& arguments, const Console& console) {
  if (arguments.has("routing")) {
    plan_routing(arguments, console);
    return;
  }
  if (arguments.has("fit")) {
    fit_experts(arguments, shape_of(arguments), console);
    return;
  }
  if (!arguments.has("on")) {
    throw UsageError("which topology? --on says", {},
                     "unisono plan moe --tokens 128 --experts 256 -k 8 --on dgx_h100:nodes=2");
  }
  const network_model::ExpertShape shape = shape_of(arguments);
  const Topology topology = load_topology(arguments.text("on"));
  if (topology.rank_count() > kMostRanks) {
    throw UsageError(fmt::format("{} ranks are too many for plan moe", topology.rank_count()),
                     fmt::format("give a topology of at most {}", kMostRanks), "unisono help plan");
  }
  std::vector<Row> rows;
  for (const auto& [mode, name] : {std::pair{network_model::ExpertMode::low_latency, "low_latency"},
                                   std::pair{network_model::ExpertMode::normal, "normal"}}) {
    console.progress(fmt::format("routing {}", name));
    rows.push_back({name, "dispatch", dispatch_cost(shape, mode, topology)});
    rows.push_back({name, "combine", combine_cost(shape, mode, topology)});
  }
  console.end_progress();
  if (console.json()) {
    print_json(shape, topology, rows);
  } else {
    print_text(shape, topology, rows, console);
  }
}

}  // namespace unisono::cli
