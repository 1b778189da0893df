#include "step/training_layer.h"

namespace unisono::step {
namespace {

void inner_half(Forward& f, bool has_experts) {
  f.norm("inner norm", "middle", "inner norm", "inner in");
  f.enter("inner in");
  if (has_experts) {
    experts_part(f);
  } else {
    gated_part(f, {.in = "inner in", .out = "z", .hidden = "hidden"});
  }
  f.leave("z");
  f.sum("inner added", {"middle", "z"}, "out");
}

void attention_half(Forward& f, int layer) {
  f.norm("attention norm", "x", "attention norm", "attention in");
  f.parts().shape.latent.is_used() ? latent_heads(f) : plain_heads(f);
  attend(f, layer);
  f.product("attention output", "attended", "attention output", "y", kLayerRows);
  f.leave("y");
  f.sum("attention added", {"x", "y"}, "middle");
}

}  // namespace

Forward forward_layer(TrainingParts& parts, int layer) {
  const auto prefix = [](int number) { return "layer " + std::to_string(number) + " "; };
  Forward f(parts, prefix(layer), prefix(layer + 1) + "x");
  attention_half(f, layer);
  inner_half(f, parts.is_expert_layer(layer));
  return f;
}

Backward backward_of(const Forward& part) {
  Backward backward(part);
  backward.start(part.full("out"), "d " + part.full("out"));
  return backward;
}

void gated_part(Forward& f, const Gated& part) {
  const auto with = [&](const std::string& last) {
    Forward::Names dims = part.rows;
    dims.push_back(last);
    return dims;
  };
  Forward::Names made;
  for (const char* matrix : {"up", "gate"}) {
    if (matrix == std::string("up") || f.parts().shape.gated) {
      const std::string own = part.kind + matrix;
      made.push_back(own + " out");
      f.product(own, part.in, own, made.back(), with(part.hidden));
    }
  }
  const std::string active = part.kind + "active";
  f.pointwise(part.kind + "activation", made, active, with(part.hidden), with(part.hidden));
  f.product(part.kind + "down", active, part.kind + "down", part.out, with("width"));
}

}  // namespace unisono::step
