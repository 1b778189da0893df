// The output of `unisono plan`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bytes_text.h"
#include "base/collectives.h"
#include "cli/language.h"
#include "cli/text_table.h"
#include "cli/wrap.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

using network_model::Candidate;
using network_model::Plan;

double busbw(const Plan& plan, const Candidate& candidate) {
  return candidate.time_s > 0
             ? plan.call.bytes * unisono::bus_factor(plan.call.collective, plan.call.ranks) /
                   candidate.time_s
             : 0;
}

Text heading(const Plan& plan) {
  const std::string ranks = std::to_string(plan.call.ranks);
  return say("{}  {}  {}   one port a rank, {}", "{}  {}  {}   每个 rank 一个端口，{}",
             std::string(to_string(plan.call.collective)),
             Text{ranks + (plan.call.ranks == 1 ? " rank" : " ranks"), ranks + " 个 rank"},
             format_bytes(plan.call.bytes), link_text(plan.parameters));
}

// Returns the candidate that the user named, or nullptr.
const Candidate* asked_in(const Plan& plan) {
  const auto found = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                  [](const Candidate& candidate) { return candidate.is_asked; });
  return found == plan.candidates.end() ? nullptr : &*found;
}

// Returns the candidate that would run.
const Candidate& chosen_in(const Plan& plan) {
  const Candidate* asked = asked_in(plan);
  return asked != nullptr ? *asked : plan.candidates.front();
}

void print_table(const Plan& plan, const Console& console) {
  TextTable table({{.heading = spoken({"algorithm", "算法"}), .left = true},
                   {.heading = spoken({"steps", "步数"})},
                   {.heading = spoken({"sent/rank", "发送/rank"})},
                   {.heading = spoken({"bound", "比下界"}), .spare = 2},
                   {.heading = spoken({"time", "用时"})},
                   {.heading = "busbw"},
                   {.heading = spoken({"link", "链路"}), .spare = 1},
                   {.heading = "", .left = true}});
  const bool has_sent = plan.call.ranks <= network_model::kMostBuiltRanks;
  for (const Candidate& candidate : plan.candidates) {
    const double sent = candidate.moved.sent_bytes;
    const double rate = busbw(plan, candidate);
    const bool is_best = &candidate == &plan.candidates.front();
    table.add(
        {candidate.name, fmt::to_string(candidate.moved.steps), has_sent ? format_bytes(sent) : "-",
         has_sent && plan.bound.bytes > 0 ? fmt::format("{:.2f}x", sent / plan.bound.bytes) : "-",
         time_text(candidate.time_s), rate > 0 ? fmt::format("{:.2f}", rate * 1e-9) : "-",
         rate > 0 ? fmt::format("{:.0f} %", 100 * rate * plan.parameters.beta_s_per_byte) : "-",
         candidate.is_asked ? spoken({"<- asked", "<- 指定"})
         : is_best          ? spoken({"<- best", "<- 最快"})
                            : ""},
        candidate.is_asked || is_best ? Paint::good : Paint::plain);
  }
  table.add({spoken({"lower bound", "下界"}), "", format_bytes(plan.bound.bytes), "",
             time_text(plan.bound.time_s(plan.parameters)), "", "", ""},
            Paint::dim);
  fmt::print("{}", table.text(console));
}

// "recursive_doubling below 146 KiB, halving_doubling from there on"
Text ranges_text(const Plan& plan) {
  const auto& ranges = plan.ranges;
  if (ranges.size() == 1) {
    return say("{} for every size", "{} 适合所有大小", ranges.front().algorithm->name);
  }
  Text text;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    text = say("{}{} below {}, ", "{}{} 小于 {}，", text, ranges[i].algorithm->name,
               format_bytes(ranges[i + 1].from_bytes));
  }
  return say("{}{} from there on", "{}{} 用于更大的", text, ranges.back().algorithm->name);
}

// Returns why one candidate is faster than another, part by part.
Text reason_text(const Candidate& first, const Candidate& second) {
  const std::string english = reason(first, second);
  std::string chinese;
  for (std::string_view left = english; !left.empty();) {
    const std::string_view part = left.substr(0, left.find(", "));
    left.remove_prefix(std::min(left.size(), part.size() + 2));
    chinese += in_chinese(part).value_or(std::string(part)) + (left.empty() ? "" : "，");
  }
  return {english, chinese};
}

bool is_slower(const Candidate& one, const Candidate& best) {
  return one.time_s - best.time_s > 1e-12 * one.time_s;
}

// Returns the ring, which everybody knows. If it is the fastest, or does not support the call,
// returns the first slower algorithm, because a tie explains nothing.
const Candidate& compared(const Plan& plan) {
  const auto others = plan.candidates.begin() + 1;
  const auto ring = std::find_if(others, plan.candidates.end(),
                                 [](const Candidate& one) { return one.name == "ring"; });
  if (ring != plan.candidates.end()) {
    return *ring;
  }
  const auto slower = std::find_if(others, plan.candidates.end(), [&plan](const Candidate& one) {
    return is_slower(one, plan.candidates.front());
  });
  return slower != plan.candidates.end() ? *slower : plan.candidates[1];
}

Text why_text(const Plan& plan) {
  const Candidate& best = plan.candidates.front();
  const Candidate* asked = asked_in(plan);
  if (asked != nullptr && asked != &best) {
    return say("asked for; {} would take {} instead of {}: {}",
               "是指定的；{} 只用 {}，而不是 {}：{}", best.name, time_text(best.time_s),
               time_text(asked->time_s), reason_text(best, *asked));
  }
  if (plan.candidates.size() == 1) {
    return {"there is no other", "没有其他算法"};
  }
  const Candidate& next = compared(plan);
  return is_slower(next, best)
             ? say("saves {} on {}: {}", "省 {}（与 {} 相比）：{}",
                   time_text(next.time_s - best.time_s), next.name, reason_text(best, next))
             : say("as fast as {}: {}", "与 {} 一样快：{}", next.name, reason_text(best, next));
}

void print_text(const Plan& plan, const Console& console) {
  fmt::print("{}\n\n", spoken(heading(plan)));
  print_table(plan, console);
  const auto print_line = [&console](const Text& label, const Text& text) {
    fmt::print("{}", labelled(spoken(label) + "  ", spoken(text), console.width()));
  };
  fmt::print("\n");
  print_line({"why ", "原因"}, why_text(plan));
  print_line({"best", "最快"}, ranges_text(plan));
  for (const Algorithm* algorithm : plan.unable) {
    const std::string limits(algorithm->limits);
    print_line({"not ", "不能"}, say("{}: {}", "{}：{}", std::string(algorithm->name),
                                     Text{limits, in_chinese(limits).value_or(limits)}));
  }
  if (!console.quiet()) {
    const Candidate& shown = chosen_in(plan);
    const std::string what =
        shown.algorithm == nullptr
            ? shown.name
            : fmt::format("{}/{} -n {}", to_string(shown.algorithm->collective),
                          shown.algorithm->name, std::min(plan.call.ranks, 8));
    fmt::print("{}  unisono show {}\n", spoken({"see ", "另见"}), what);
  }
}

nlohmann::ordered_json row_json(const Plan& plan, const Candidate& candidate) {
  nlohmann::ordered_json row;
  row["algorithm"] = candidate.name;
  row["steps"] = candidate.moved.steps;
  if (plan.call.ranks <= network_model::kMostBuiltRanks) {
    row["sent_bytes"] = candidate.moved.sent_bytes;
    row["received_bytes"] = candidate.moved.received_bytes;
    row["reduced_bytes"] = candidate.moved.reduced_bytes;
    row["total_bytes"] = candidate.moved.total_bytes;
  }
  row["path_messages"] = candidate.cost.messages;
  row["path_bytes"] = candidate.cost.bytes;
  row["path_reduced_bytes"] = candidate.cost.reduced_bytes;
  row["time_us"] = rounded(candidate.time_s * 1e6);
  row["busbw_gb_per_s"] = rounded(busbw(plan, candidate) * 1e-9);
  return row;
}

void print_json(const Plan& plan) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan/1";
  json["collective"] = to_string(plan.call.collective);
  json["ranks"] = plan.call.ranks;
  json["bytes"] = static_cast<std::uint64_t>(plan.call.bytes);
  json["floor_us"] = rounded(plan.parameters.floor_s * 1e6);
  json["alpha_us"] = rounded(plan.parameters.alpha_s * 1e6);
  json["beta_us_per_byte"] = rounded(plan.parameters.beta_s_per_byte * 1e6);
  json["gamma_us_per_byte"] = rounded(plan.parameters.gamma_s_per_byte * 1e6);
  json["bound"] = {{"messages", plan.bound.messages},
                   {"bytes", plan.bound.bytes},
                   {"reduced_bytes", plan.bound.reduced_bytes},
                   {"time_us", rounded(plan.bound.time_s(plan.parameters) * 1e6)}};
  json["chosen"] = chosen_in(plan).name;
  json["why"] = why_text(plan).english;
  json["candidates"] = nlohmann::json::array();
  for (const Candidate& candidate : plan.candidates) {
    json["candidates"].push_back(row_json(plan, candidate));
  }
  json["best"] = nlohmann::json::array();
  for (const network_model::SizeRange& range : plan.ranges) {
    json["best"].push_back(
        {{"algorithm", range.algorithm->name}, {"from_bytes", std::llround(range.from_bytes)}});
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void print_plan(const Plan& plan, const Console& console) {
  if (console.json()) {
    print_json(plan);
  } else {
    print_text(plan, console);
  }
}

}  // namespace unisono::cli
