// The sections of a step in `unisono step show`.
#include "steps/sections.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/bytes_text.h"
#include "cli/wrap.h"

namespace unisono::cli {
namespace {

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

std::string layers_of(const step::Section& first, const step::Section& last) {
  const int begin = first.first_layer;
  const int end = last.first_layer + last.repeat - 1;
  return begin < 0      ? first.name
         : begin == end ? fmt::format("{} {}", first.name, end)
                        : fmt::format("{} {} to {}", first.name, begin, end);
}

std::string of_any_layer(std::string name, int layer) {
  for (const auto& [number, word] : {std::pair(layer, "this "), std::pair(layer + 1, "next ")}) {
    const std::string named = fmt::format("layer {} ", number);
    if (const std::size_t at = name.find(named); at != std::string::npos) {
      return name.replace(at, named.size(), word);
    }
  }
  return name;
}

// Returns the nodes of a section, with the layer removed from the names of tensors.
std::vector<step::Node> of_any_layer(const step::Section& section) {
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

}  // namespace

Sections::Sections(const step::Step& step, const Console& console)
    : step_(step), console_(console), ranks_(step) {
  for (const step::Section& section : step.sections) {
    of_any_layer_.push_back(of_any_layer(section));
    like_.push_back(first_like(like_.size()));
  }
}

void Sections::print(const std::vector<std::vector<step::Call>>& calls) {
  calls_.resize(step_.sections.size());
  for (const std::vector<step::Call>& rank : calls) {
    for (auto& section : calls_) {
      section.emplace_back();
    }
    for (const step::Call& call : rank) {
      calls_[call.section_index].back().push_back(&call);
    }
  }
  std::vector<step::Finding> none;
  const step::Section* shown = nullptr;
  bool is_known = false;
  walk(step_, ranks_, 1, none, [&](const step::Visit& visit) {
    if (&visit.section != shown) {
      shown = &visit.section;
      is_known = print_title(visit.section);
    }
    if (!is_known) {
      print(visit, said_of(visit));
    }
  });
}

std::size_t Sections::first_like(std::size_t number) const {
  std::size_t like = 0;
  while (at(like).name != at(number).name || of_any_layer_[like] != of_any_layer_[number]) {
    ++like;
  }
  return like;
}

bool Sections::goes_on(std::size_t number) const {
  const step::Section& before = at(number - 1);
  const step::Section& here = at(number);
  return like_[number] != number && like_[number - 1] == like_[number] &&
         like_[number - 1] != number - 1 && before.stage == here.stage && before.pass == here.pass;
}

bool Sections::print_title(const step::Section& section) {
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
    title += passes(section) == 1 ? ", for the only microbatch"
                                  : fmt::format(", for each of {} microbatches", passes(section));
  }
  const step::Section& like = step_.sections[like_[number]];
  fmt::print("\n{}{}\n", title, is_known ? ": as " + layers_of(like, like) : std::string());
  return is_known;
}

Sections::Said Sections::said_of(const step::Visit& visit) const {
  Said most;
  for (const auto& rank : calls_[static_cast<std::size_t>(&visit.section - &at(0))]) {
    Said said;
    for (const step::Call* const call : rank) {
      if (&visit.node == visit.section.nodes.data() + call->node_index &&
          call->layer == visit.layer) {
        said.flops += call->flops;
        if (call->what != "computing" && call->what != "receive") {
          said.what = call->what;
          said.bytes += call->bytes;
          ++said.messages;
        }
      }
    }
    if (said.bytes > most.bytes || said.flops > most.flops) {
      most = said;
    }
  }
  const int passes_of_section = passes(visit.section);
  most.messages /= static_cast<std::size_t>(passes_of_section);
  most.bytes /= passes_of_section;
  most.flops /= passes_of_section;
  return most;
}

int Sections::passes(const step::Section& section) const {
  if (section.pass == step::StagePass::none) {
    return 1;
  }
  const pipeline::Pipeline& pipeline = *step_.pipeline;
  const int chain = ranks_.around().chain[static_cast<std::size_t>(section.stage)];
  return pipeline.chains[static_cast<std::size_t>(chain)].count;
}

void Sections::print(const step::Visit& visit, const Said& said) const {
  const step::Node& node = visit.node;
  const std::string name = fmt::format("  {:<20} ", node.name);
  std::string line;
  if (node.kind == step::Node::Kind::compute) {
    line += fmt::format("{} -> {}", joined(node.reads), joined(node.writes));
    if (const std::string placed = lies(visit.after.at(node.writes.front())); !placed.empty()) {
      line += ", " + placed;
    }
    if (said.flops > 0) {
      line += "; " + flops_text(said.flops);
    }
    fmt::print("{}", labelled(name, line, console_.width()));
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
              : fmt::format("{}{} {}{}, {}",
                            said.messages > 1 ? fmt::format("{} x ", said.messages) : "", said.what,
                            way, node.by == "merge" ? ", merged" : "", format_bytes(said.bytes));
  fmt::print("{}\n", console_.paint(Paint::accent, name + line));
}

}  // namespace unisono::cli
