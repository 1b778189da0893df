// What `unisono step` says of a step, as text and as JSON.
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
#include "step/walk.h"
#include "steps/steps.h"

namespace unisono::cli {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string size_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(bytes));
}

// "1.5 GFLOP".
std::string flops_text(double flops) {
  for (const auto& [unit, name] :
       {std::pair(1e15, "PFLOP"), std::pair(1e12, "TFLOP"), std::pair(1e9, "GFLOP")}) {
    if (flops >= unit) {
      return fmt::format("{:.3g} {}", flops / unit, name);
    }
  }
  return fmt::format("{:.3g} MFLOP", flops / 1e6);
}

std::string heading(const step::Step& step, const Console& console) {
  return fmt::format("{}  {}", console.paint(Paint::strong, step.name), step.mesh);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// "shard(heads) over tp"; empty: whole everywhere.
std::string lies(const step::Placements& placements) {
  std::string text;
  for (const auto& [axis, placement] : placements) {
    text += fmt::format("{}{} over {}", text.empty() ? "" : ", ", to_text(placement), axis);
  }
  return text;
}

// What the busiest rank of a stage calls for one node, in the first of its layers.
struct Said {
  std::string what = {};
  std::size_t messages = 0;
  double bytes = 0;
  double flops = 0;
};

class Sections {
 public:
  Sections(const step::Step& step, const Console& console)
      : step_(step), console_(console), ranks_(step) {
    for (const step::Section& section : step.sections) {
      of_any_layer_.push_back(of_any_layer(section));
      like_.push_back(first_like(like_.size()));
    }
  }

  void print(const std::vector<std::vector<step::Call>>& calls) {
    std::vector<step::Finding> none;
    const step::Section* shown = nullptr;
    bool is_known = false;
    walk(step_, ranks_, 1, none, [&](const step::Visit& visit) {
      if (&visit.section != shown) {
        shown = &visit.section;
        is_known = print_title(visit.section);
      }
      if (!is_known) {
        print(visit, said_of(visit, calls));
      }
    });
  }

 private:
  static std::string layers_of(const step::Section& first, const step::Section& last) {
    const int begin = first.first_layer;
    const int end = last.first_layer + last.repeat - 1;
    return begin < 0      ? first.name
           : begin == end ? fmt::format("{} {}", first.name, end)
                          : fmt::format("{} {} to {}", first.name, begin, end);
  }
  const step::Section& at(std::size_t number) const { return step_.sections[number]; }

  // The first section whose nodes are the same ones.
  std::size_t first_like(std::size_t number) const {
    std::size_t like = 0;
    while (at(like).name != at(number).name || of_any_layer_[like] != of_any_layer_[number]) {
      ++like;
    }
    return like;
  }

  // Whether it is told together with the one before it.
  bool goes_on(std::size_t number) const {
    const step::Section& before = at(number - 1);
    const step::Section& here = at(number);
    return like_[number] != number && like_[number - 1] == like_[number] &&
           like_[number - 1] != number - 1 && before.stage == here.stage &&
           before.pass == here.pass;
  }

  // Its nodes, with tensors that are named after their layer as if it were any other.
  static std::vector<step::Node> of_any_layer(const step::Section& section) {
    std::vector<step::Node> nodes = section.nodes;
    for (step::Node& node : nodes) {
      for (auto* names : {&node.reads, &node.writes}) {
        for (std::string& name : *names) {
          name = of_any_layer(name, section.first_layer);
        }
      }
      node.name = of_any_layer(node.name, section.first_layer);
    }
    return nodes;
  }
  static std::string of_any_layer(std::string name, int layer) {
    for (const auto& [number, word] : {std::pair(layer, "this "), std::pair(layer + 1, "next ")}) {
      const std::string named = fmt::format("layer {} ", number);
      if (const std::size_t at = name.find(named); at != std::string::npos) {
        return name.replace(at, named.size(), word);
      }
    }
    return name;
  }

  // Whether the nodes are those of a section before.
  bool print_title(const step::Section& section) {
    const auto number = static_cast<std::size_t>(&section - step_.sections.data());
    const bool is_known = like_[number] != number;
    if (is_known && goes_on(number)) {
      return true;
    }
    std::size_t last = number;
    while (last + 1 < step_.sections.size() && goes_on(last + 1)) {
      ++last;
    }
    std::string title = console_.paint(Paint::strong, layers_of(section, step_.sections[last]));
    if (ranks_.stages() > 1) {
      title += section.stage == step::kAllStages ? "   all stages"
                                                 : fmt::format("   stage {}", section.stage);
    }
    if (section.pass != step::StagePass::none) {
      title += fmt::format(", for each of {} microbatches", passes(section));
    }
    const step::Section& like = step_.sections[like_[number]];
    fmt::print("\n{}{}\n", title, is_known ? ": as " + layers_of(like, like) : std::string());
    return is_known;
  }

  Said said_of(const step::Visit& visit, const std::vector<std::vector<step::Call>>& calls) const {
    Said most;
    const int passes_of_section = passes(visit.section);
    for (const std::vector<step::Call>& rank : calls) {
      Said said;
      for (const step::Call& call : rank) {
        if (&visit.section == step_.sections.data() + call.section_index &&
            &visit.node == visit.section.nodes.data() + call.node_index &&
            call.layer == visit.layer) {
          said.flops += call.flops;
          if (call.what != "computing" && call.what != "receive") {
            said.what = call.what;
            said.bytes += call.bytes;
            ++said.messages;
          }
        }
      }
      if (said.bytes > most.bytes || said.flops > most.flops) {
        most = said;
      }
    }
    most.messages /= static_cast<std::size_t>(passes_of_section);
    most.bytes /= passes_of_section;
    most.flops /= passes_of_section;
    return most;
  }

  // How often the stage of a section does it.
  int passes(const step::Section& section) const {
    if (section.pass == step::StagePass::none) {
      return 1;
    }
    const pipeline::Pipeline& pipeline = *step_.pipeline;
    const int chain = ranks_.around().chain[static_cast<std::size_t>(section.stage)];
    return pipeline.chains[static_cast<std::size_t>(chain)].count;
  }

  void print(const step::Visit& visit, const Said& said) const {
    const step::Node& node = visit.node;
    std::string line = fmt::format("  {:<20} ", node.name);
    if (node.kind == step::Node::Kind::compute) {
      line += fmt::format("{} -> {}", joined(node.reads), joined(node.writes));
      if (const std::string placed = lies(visit.after.at(node.writes.front())); !placed.empty()) {
        line += ", " + placed;
      }
      fmt::print("{}\n", line + (said.flops > 0 ? "; " + flops_text(said.flops) : ""));
      return;
    }
    const std::string way = node.kind == step::Node::Kind::sum_stages  ? "on each rank"
                            : node.kind == step::Node::Kind::broadcast ? "to all stages"
                            : node.kind != step::Node::Kind::send      ? "over " + node.axes
                            : visit.section.pass == step::StagePass::backward_input
                                ? "to the stage before"
                                : "to the next stage";
    line += said.messages == 0
                ? fmt::format("cut {}; nothing moves", way)
                : fmt::format(
                      "{}{} {}{}, {}", said.messages > 1 ? fmt::format("{} x ", said.messages) : "",
                      said.what, way, node.by == "merge" ? ", merged" : "", size_text(said.bytes));
    fmt::print("{}\n", console_.paint(Paint::accent, line));
  }

  const step::Step& step_;
  const Console& console_;
  step::StepRanks ranks_;
  std::vector<std::vector<step::Node>> of_any_layer_;  // of each section, as the next
  std::vector<std::size_t> like_;                      // the first one that is alike
};

struct Sum {
  std::size_t calls = 0;
  double bytes = 0;
};

// What a rank calls, by kind and size of the group.
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
                                     fmt::format("rank {}, which needs most memory", fullest)));
  fmt::print("  {} = weights {}, cache {}, activations {}\n", size_text(most.total()),
             size_text(most.weights), size_text(most.cache), size_text(most.activations));
  const std::map<std::string, Sum> sums = sums_of(calls[fullest]);
  if (sums.empty()) {
    fmt::print("  calls nobody\n");
  }
  for (const auto& [what, sum] : sums) {
    fmt::print("  {} x {}, {}\n", sum.calls, what, size_text(sum.bytes));
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
    fmt::print("  {:<30} {:<14} {:<16} {}\n", where, call.what, whom, size_text(call.bytes));
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
  // What is wrong has no calls.
  Json data =
      calls_json(step, findings.empty() ? calls_of(step) : std::vector<std::vector<step::Call>>{});
  data["findings"] = findings_json(findings);
  return data;
}

void refuse_wrong(const step::Step& step) {
  const std::vector<step::Finding> findings = verify(step);
  if (!findings.empty()) {
    throw UsageError(fmt::format("{} is not right", step.name), to_text(findings.front()),
                     "unisono step verify says all that is wrong");
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
