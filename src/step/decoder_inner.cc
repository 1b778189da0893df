#include <algorithm>

#include "step/decoder_parts.h"

namespace unisono::step {

namespace {

// Adds the products gate and up together, and the activation between them.
void gated(DecoderParts& p, const std::string& prefix, const std::string& x,
           const std::string& inner, const std::vector<std::string>& dims) {
  Node node{.kind = Node::Kind::compute,
            .name = prefix + (p.shape.gated ? "gate and up" : "up"),
            .reads = {x, prefix + "up"},
            .writes = {inner},
            .pointwise = dims,
            .flops = p.shape.gated ? 4.0 : 2.0};
  if (p.shape.gated) {
    node.reads.push_back(prefix + "gate");
  }
  p.build.compute(std::move(node));
}

// If one rank has all experts, it sorts the rows itself.
void move_rows(DecoderParts& p, Node::Kind kind, const std::string& name,
               const std::vector<std::string>& reads, const std::string& write, Placement from,
               Placement to, std::map<std::string, std::string> renamed, double rows_sent) {
  if (!p.build.is_wide("ep")) {
    const bool is_dispatch = kind == Node::Kind::dispatch;
    p.build.compute({.name = name,
                     .reads = is_dispatch ? std::vector{reads.front()} : reads,
                     .writes = {write},
                     .pointwise = {"rows", "slots", "width"},
                     .linear = Node::Linear::each,
                     .renamed = std::move(renamed)});
    return;
  }
  p.build.add({.kind = kind,
               .name = name,
               .reads = reads,
               .writes = {write},
               .renamed = std::move(renamed),
               .axes = "ep",
               .from = std::move(from),
               .to = std::move(to),
               .rows_sent = rows_sent});
}

}  // namespace

void add_inner(DecoderParts& p) {
  const auto matrices = [&](const std::string& prefix, const std::string& hidden, bool is_expert) {
    std::vector<std::string> in = {hidden, "width"};
    std::vector<std::string> out = {"width", hidden};
    Placements cut = {{"tp", shard(hidden)}};
    if (is_expert && !p.task.is_upcycled) {
      in.insert(in.begin(), "experts");
      out.insert(out.begin(), "experts");
      cut["ep"] = shard("experts");
    }
    if (p.shape.gated) {
      p.build.weight(prefix + "gate", in, cut, true);
    }
    p.build.weight(prefix + "up", in, cut, true);
    p.build.weight(prefix + "down", out, cut, true);
  };
  p.build.weight("inner_norm", {"width"}, {}, true);
  p.build.activation("inner", {"rows", "hidden"});
  if (p.shape.expert_layers() < p.shape.layers) {
    matrices("", "hidden", false);
  }
  if (!p.shape.has_experts()) {
    return;
  }
  p.build.weight("router", {"experts", "width"}, {}, true);
  matrices("expert_", "expert_hidden", true);
  p.build.activation("mine", {"rows", "width"});
  p.build.activation("scores", {"rows", "experts"});
  p.build.activation("routed", {"experts", "slots", "width"});
  p.build.activation("expert_inner", {"experts", "slots", "expert_hidden"});
  p.build.activation("given", {"experts", "slots", "width"});
  if (p.shape.shared_ffn > 0) {
    matrices("shared_", "shared_hidden", false);
    p.build.activation("shared_inner", {"rows", "shared_hidden"});
    p.build.activation("shared", {"rows", "width"});
  }
}

void dense_inner(DecoderParts& p, const std::string& prefix, const std::string& inner,
                 const std::string& out) {
  const std::string hidden = p.build.step().find_tensor(inner)->dims.back();
  gated(p, prefix, "normal", inner, {"rows", hidden});
  p.build.product(prefix + "down", inner, prefix + "down", out);
}

void expert_inner(DecoderParts& p) {
  const bool is_cut = p.build.is_wide("ep");
  std::string in = "normal";
  if (is_cut) {
    p.build.redistribute("tokens cut", {"normal"}, {"mine"}, "ep", replicate(), shard("rows"));
    in = "mine";
  }
  p.build.product("router", in, "router", "scores");
  if (p.shape.shared_ffn > 0) {
    dense_inner(p, "shared_", "shared_inner", "shared");
  }
  const double sent = p.shape.experts_per_token;
  move_rows(p, Node::Kind::dispatch, "dispatch", {in, "scores"}, "routed", shard("rows"),
            shard("experts"), {{"rows", "slots"}}, sent);
  gated(p, "expert_", "routed", "expert_inner", {"experts", "slots", "expert_hidden"});
  p.build.product("expert_down", "expert_inner", "expert_down", "given");
  // With fewer rows than experts, only some experts receive a row.
  const double rows = static_cast<double>(p.task.tokens) * sent;
  for (Node& node : p.build.step().sections.back().nodes) {
    if (node.name.starts_with("expert_")) {
      node.share = std::min(1.0, rows / p.shape.experts);
    }
  }
  move_rows(p, Node::Kind::combine, "combine", {"given", "scores"}, "y", shard("experts"),
            shard("rows"), {{"slots", "rows"}}, sent);
  p.build.redistribute("tokens gathered", "y", "ep", shard("rows"), replicate());
  if (p.shape.shared_ffn > 0) {
    p.build.pointwise("shared added", {"y", "shared"}, "y", {"rows", "width"},
                      Node::Linear::together);
  }
}

}  // namespace unisono::step
