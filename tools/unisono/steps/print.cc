// The output of `unisono step`, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "step/calls.h"
#include "step/json.h"
#include "step/memory.h"
#include "step/verify.h"
#include "steps/sections.h"
#include "steps/steps.h"

namespace unisono::cli {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string heading(const step::Step& step, const Console& console) {
  return fmt::format("{}  {}", console.paint(Paint::strong, step.name), step.mesh);
}

struct Sum {
  std::size_t calls = 0;
  double bytes = 0;
};

// Returns a rank's calls by kind and size of the group.
std::map<std::string, Sum> sums_of(const std::vector<step::Call>& calls) {
  std::map<std::string, Sum> sums;
  for (const step::Call& call : calls) {
    if (call.what != "computing") {
      Sum& sum = sums[call.peer >= 0 ? call.what
                                     : fmt::format("{} of {} ranks", call.what, call.group.size())];
      ++sum.calls;
      sum.bytes += call.bytes;
    }
  }
  return sums;
}

void print_totals(const step::Step& step, const std::vector<std::vector<step::Call>>& calls,
                  const Console& console) {
  const std::vector<step::Memory> memory = memory_of(step);
  std::size_t fullest = 0;
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    fullest = memory[rank].total() > memory[fullest].total() ? rank : fullest;
  }
  const step::Memory& most = memory[fullest];
  fmt::print("\n{}\n", console.paint(Paint::strong,
                                     fmt::format("rank {}, which needs the most memory", fullest)));
  fmt::print("  {} = weights {}, cache {}, activations {}\n", format_bytes(most.total()),
             format_bytes(most.weights), format_bytes(most.cache), format_bytes(most.activations));
  const std::map<std::string, Sum> sums = sums_of(calls[fullest]);
  if (sums.empty()) {
    fmt::print("  calls nobody\n");
  }
  for (const auto& [what, sum] : sums) {
    fmt::print("  {} x {}, {}\n", sum.calls, what, format_bytes(sum.bytes));
  }
}

std::string group_text(const std::vector<int>& group) {
  std::string text;
  for (const int rank : group) {
    text += (text.empty() ? "" : ",") + std::to_string(rank);
  }
  return text;
}

void print_rank(const step::Step& step, const std::vector<step::Call>& calls, int rank,
                const Console& console) {
  fmt::print("{}   rank {}\n", heading(step, console), rank);
  for (const step::Call& call : calls) {
    if (call.what == "computing") {
      continue;
    }
    const std::string where =
        call.layer >= 0 ? fmt::format("layer {}, {}", call.layer, call.node) : call.node;
    const std::string whom =
        call.peer >= 0 ? fmt::format("{} {}", call.what == "send" ? "to" : "from", call.peer)
                       : "ranks " + group_text(call.group);
    fmt::print("  {:<30} {:<14} {:<16} {}\n", where, call.what, whom, format_bytes(call.bytes));
  }
}

Json calls_json(const step::Step& step, const std::vector<std::vector<step::Call>>& calls) {
  Json ranks = Json::array();
  const std::vector<step::Memory> memory = memory_of(step);
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    Json list = Json::array();
    for (const step::Call& call : calls[rank]) {
      Json row = {{"what", call.what},
                  {"section", call.section},
                  {"node", call.node},
                  {"layer", call.layer}};
      if (call.action) {
        row["action"] = to_string(*call.action);
      }
      if (call.what == "computing") {
        row["flops"] = call.flops;
        row["bytes"] = call.memory_bytes;
      } else {
        row["group"] = call.group;
        row["bytes"] = call.bytes;
        if (call.peer >= 0) {
          row["peer"] = call.peer;
        }
      }
      list.push_back(std::move(row));
    }
    ranks.push_back({{"rank", rank},
                     {"weight_bytes", memory[rank].weights},
                     {"cache_bytes", memory[rank].cache},
                     {"activation_bytes", memory[rank].activations},
                     {"calls", std::move(list)}});
  }
  return {{"schema", "unisono.step_show/1"},
          {"name", step.name},
          {"mesh", step.mesh},
          {"ranks", std::move(ranks)}};
}

Json findings_json(const std::vector<step::Finding>& findings) {
  Json texts = Json::array();
  for (const step::Finding& finding : findings) {
    texts.push_back({{"section", finding.section},
                     {"node", finding.node},
                     {"tensor", finding.tensor},
                     {"axis", finding.axis},
                     {"text", to_text(finding)}});
  }
  return texts;
}

}  // namespace

Json step_page_data(const step::Step& step) {
  const std::vector<step::Finding> findings = verify(step);
  // An invalid step has no calls.
  Json data =
      calls_json(step, findings.empty() ? calls_of(step) : std::vector<std::vector<step::Call>>{});
  data["findings"] = findings_json(findings);
  return data;
}

void refuse_wrong(const step::Step& step) {
  const std::vector<step::Finding> findings = verify(step);
  if (!findings.empty()) {
    throw UsageError(fmt::format("{} is invalid", step.name), to_text(findings.front()),
                     "unisono step verify lists everything that is wrong");
  }
}

int verify_step(const step::Step& step, const Console& console) {
  const std::vector<step::Finding> findings = verify(step);
  if (console.json()) {
    print({{"schema", "unisono.step_verify/1"},
           {"name", step.name},
           {"mesh", step.mesh},
           {"right", findings.empty()},
           {"findings", findings_json(findings)}});
    return findings.empty() ? kDone : kAnswerIsNo;
  }
  fmt::print(
      "{}: {}\n", heading(step, console),
      findings.empty() ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  for (const step::Finding& finding : findings) {
    fmt::print("  {}\n", to_text(finding));
  }
  return findings.empty() ? kDone : kAnswerIsNo;
}

int show_step(const step::Step& step, const Arguments& arguments, const Console& console) {
  if (arguments.text("format") == "step") {
    fmt::print("{}", to_json(step));
    return kDone;
  }
  refuse_wrong(step);
  const std::vector<std::vector<step::Call>> calls = calls_of(step);
  if (console.json()) {
    print(calls_json(step, calls));
    return kDone;
  }
  if (arguments.has("rank")) {
    const auto rank =
        static_cast<int>(arguments.number("rank", 0, static_cast<std::int64_t>(calls.size()) - 1));
    print_rank(step, calls[static_cast<std::size_t>(rank)], rank, console);
    return kDone;
  }
  fmt::print("{}   {} rank{}\n", heading(step, console), calls.size(),
             calls.size() == 1 ? "" : "s");
  Sections(step, console).print(calls);
  print_totals(step, calls, console);
  return kDone;
}

}  // namespace unisono::cli
