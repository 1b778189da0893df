// The experts of a layer that is trained. The dimensions of what they get say how much of it there
// is: as many rows of each sequence as come to one expert, were all chosen alike.
#include "step/training_inner.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;
const Dims kRouted = {"experts", "sequences", "slots", "width"};
const Dims kWeights = {"experts", "sequences", "slots"};
const Dims kScores = {"sequences", "places", "chosen"};
const Dims kRouterOut = {"sequences", "places", "experts"};

}  // namespace

ExpertsPart::ExpertsPart(TrainingParts& parts, int layer)
    : LayerPart(parts, layer),
      experts_(parts, layer, {.kind = "expert ", .in = "routed", .out = "given"},
               {.rows = kWeights, .hidden = "expert_hidden"}) {
  if (parts.shape.shared_ffn > 0) {
    shared_.emplace_back(parts, layer,
                         GatedPart::Names{.kind = "shared ", .in = "inner in", .out = "shared z"},
                         GatedPart::Dims{.hidden = "shared_hidden"});
  }
}

void ExpertsPart::forward() {
  p_.product("router", name("inner in"), name("router"), name("router out"), kRouterOut);
  p_.activation(name("scores"), kScores);
  p_.by_rows("experts chosen", {name("router out")}, name("scores"), p_.rows);
  p_.activation(name("routed"), kRouted);
  to_experts("dispatch", name("inner in"), name("routed"), p_.shape.experts_per_token);
  p_.activation(name("weights"), kWeights);
  to_experts("scores dispatched", name("scores"), name("weights"), 1);
  experts_.forward();
  weigh("weighted", name("given"), name("weighted"));
  const std::string z = name(shared_.empty() ? "z" : "expert z");
  p_.activation(z, kLayerRows);
  to_rows("combine", name("weighted"), z, p_.shape.experts_per_token);
  for (GatedPart& shared : shared_) {
    shared.forward();
    p_.activation(name("z"), kLayerRows);
    p_.sum("shared added", {z, name("shared z")}, name("z"));
  }
}

std::vector<std::string> ExpertsPart::backward(const std::string& dz) {
  const double sent = p_.shape.experts_per_token;
  p_.activation(name("d weighted"), kRouted);
  to_experts("gradient dispatched", dz, name("d weighted"), sent);
  weigh("d given", name("d weighted"), name("d given"));
  const Dims to_routed = experts_.backward(name("d given"));
  const std::string drouted = added(to_routed, name("d routed"), kRouted);
  Dims parts = {name("d inner in by experts"), scores_backward()};
  p_.activation(parts.front(), kLayerRows);
  to_rows("gradient combined", drouted, parts.front(), sent);
  for (GatedPart& shared : shared_) {
    for (std::string& part : shared.backward(dz)) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

// From what experts gave and the gradient of its sum to that of the router's input.
std::string ExpertsPart::scores_backward() {
  p_.activation(name("d weights"), kWeights);
  build_.compute({.name = "d weights",
                  .reads = {name("d weighted"), name("given")},
                  .writes = {name("d weights")},
                  .pointwise = kWeights,
                  .summed = {"width"},
                  .linear = Node::Linear::each});
  p_.activation(name("d scores"), kScores);
  to_rows("gradient of scores combined", name("d weights"), name("d scores"), 1);
  p_.activation(name("d router out"), kRouterOut);
  // It is linear in the gradient, which may be a summand, and scores never are one.
  build_.compute({.name = "d router out",
                  .reads = {name("d scores"), name("scores")},
                  .writes = {name("d router out")},
                  .pointwise = p_.rows,
                  .linear = Node::Linear::each});
  const std::string made = name("d inner in by router");
  p_.product("d inner in", name("d router out"), name("router"), made, kLayerRows);
  return made;
}

void ExpertsPart::weight_gradients() {
  p_.weight_gradient(name("router"), name("inner in"), name("d router out"));
  experts_.weight_gradients();
  for (GatedPart& shared : shared_) {
    shared.weight_gradients();
  }
}

void ExpertsPart::weigh(const std::string& node, const std::string& rows, const std::string& made) {
  p_.activation(made, kRouted);
  build_.pointwise(node, {rows, name("weights")}, made, kRouted, Node::Linear::each);
}

void ExpertsPart::to_experts(const std::string& node, const std::string& rows,
                             const std::string& made, double rows_sent) {
  move({.kind = Node::Kind::dispatch,
        .name = node,
        .reads = {rows, name("scores")},
        .writes = {made},
        .renamed = {{"places", "slots"}},
        .from = shard("sequences"),
        .to = shard("experts"),
        .rows_sent = rows_sent});
}

void ExpertsPart::to_rows(const std::string& node, const std::string& routed,
                          const std::string& made, double rows_sent) {
  move({.kind = Node::Kind::combine,
        .name = node,
        .reads = {routed},
        .writes = {made},
        .renamed = {{"slots", "places"}},
        .from = shard("experts"),
        .to = shard("sequences"),
        .rows_sent = rows_sent});
}

// Where one rank has all experts it brings rows into their order itself.
void ExpertsPart::move(Node node) {
  if (build_.is_wide("ep")) {
    node.axes = "ep";
    build_.add(std::move(node));
    return;
  }
  build_.compute({.name = std::move(node.name),
                  .reads = {node.reads.front()},
                  .writes = std::move(node.writes),
                  .pointwise = {"sequences", "places", "slots", "width"},
                  .summed = {"experts", "chosen"},
                  .linear = Node::Linear::each,
                  .renamed = std::move(node.renamed)});
}

}  // namespace unisono::step
