// `unisono plan --on`: every algorithm, simulated on a topology.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bytes_text.h"
#include "base/collectives.h"
#include "cli/failure.h"
#include "cli/text_table.h"
#include "cli/wrap.h"
#include "network_model/plan_on.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

using Row = network_model::OnTopology::Row;

struct Result {
  network_model::Call call;
  std::string network;
  std::string source;  // of its figures
  network_model::OnTopology plan = {};
};

double busbw(const Result& result, double time_s) {
  return time_s > 0 ? result.call.bytes *
                          unisono::bus_factor(result.call.collective, result.call.ranks) / time_s
                    : 0;
}

// Prints what libraries that use such switches can do; unisono does not, so it is beside the table.
void print_in_switch(const Result& result) {
  if (!result.plan.in_switch) {
    return;
  }
  const auto& [time_s, between] = *result.plan.in_switch;
  fmt::print("\nin the switch: {}, busbw {:.2f}{}\n", time_text(time_s),
             busbw(result, time_s) * 1e-9,
             between.empty() ? "" : fmt::format(", with {} between the switches", between));
  fmt::print("a prediction only: no unisono schedule lets switches reduce\n");
}

void print_text(const Result& result, const Console& console) {
  fmt::print("{}  {} rank{}  {}   simulated on {}\n\n", to_string(result.call.collective),
             result.call.ranks, result.call.ranks == 1 ? "" : "s", format_bytes(result.call.bytes),
             result.network);
  TextTable table({{.heading = "algorithm", .left = true},
                   {.heading = "messages"},
                   {.heading = "time"},
                   {.heading = "busbw"},
                   {.heading = "", .left = true}});
  for (const Row& row : result.plan.rows) {
    const bool is_best = &row == &result.plan.rows.front();
    table.add({row.name, fmt::format("{:.0f}", row.messages), time_text(row.time_s),
               fmt::format("{:.2f}", busbw(result, row.time_s) * 1e-9), is_best ? "<- best" : ""},
              is_best ? Paint::good : Paint::plain);
  }
  fmt::print("{}", table.text(console));
  for (const auto& [name, why] : result.plan.left) {
    fmt::print("{}", labelled("not   ", fmt::format("{}: {}", name, why), console.width()));
  }
  print_in_switch(result);
  const std::size_t fitted = result.source.find(kFittedTo);
  if (fitted != std::string::npos) {
    fmt::print("\n{}\n", result.source.substr(fitted));
  } else {
    fmt::print("\n{}",
               labelled("error  ",
                        fmt::format("unknown: nothing was measured here; the link figures are {}",
                                    result.source.empty() ? "the file's" : "published ones"),
                        console.width()));
  }
}

void print_json(const Result& result) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan_on/1";
  json["collective"] = to_string(result.call.collective);
  json["ranks"] = result.call.ranks;
  json["bytes"] = static_cast<std::uint64_t>(result.call.bytes);
  json["topology"] = result.network;
  json["source"] = result.source;
  json["chosen"] = result.plan.rows.empty() ? nlohmann::ordered_json(nullptr)
                                            : nlohmann::ordered_json(result.plan.rows.front().name);
  json["candidates"] = nlohmann::json::array();
  for (const Row& row : result.plan.rows) {
    json["candidates"].push_back({{"algorithm", row.name},
                                  {"messages", static_cast<std::uint64_t>(row.messages)},
                                  {"time_us", rounded(row.time_s * 1e6)},
                                  {"busbw_gb_per_s", rounded(busbw(result, row.time_s) * 1e-9)}});
  }
  json["unable"] = nlohmann::json::array();
  for (const auto& [name, why] : result.plan.left) {
    json["unable"].push_back({{"algorithm", name}, {"why", why}});
  }
  if (result.plan.in_switch) {
    const auto& [time_s, between] = *result.plan.in_switch;
    json["in_switch"] = {{"time_us", rounded(time_s * 1e6)},
                         {"busbw_gb_per_s", rounded(busbw(result, time_s) * 1e-9)},
                         {"between", between},
                         {"prediction_only", true}};
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void plan_on(const network_model::Call& call, const Topology& topology, MoveCode code,
             const Console& console) {
  if (call.ranks > topology.rank_count()) {
    throw UsageError(fmt::format("{} ranks do not fit on the topology", call.ranks),
                     fmt::format("it has {}", topology.rank_count()), "unisono help plan");
  }
  Result result{.call = call,
                .network = topology.name.empty() ? "a topology" : topology.name,
                .source = topology.source};
  if (call.collective == Collective::barrier) {
    result.call.bytes = 0;
  }
  result.plan = network_model::plan_on(
      result.call, topology, {.code = code, .begins = [&console](const std::string& name) {
                                console.progress(fmt::format("simulating {}", name));
                              }});
  console.end_progress();
  if (console.json()) {
    print_json(result);
  } else {
    print_text(result, console);
  }
}

}  // namespace unisono::cli
