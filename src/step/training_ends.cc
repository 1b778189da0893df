// The ends of a model in training: the embedding of tokens, and the head that computes the loss and
// its gradient.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

constexpr const char* kGradientByHead = "d embedding by head";  // used if embedding and head share
                                                                // one matrix

// Returns the tokens of this rank's rows; with sequence parallelism each rank of tp has some of
// them.
std::string tokens_here(TrainingParts& p, const std::string& tokens) {
  if (!p.task.sequence || p.task.vocabulary) {
    return tokens;
  }
  const std::string here = tokens + " here";
  return p.build.is_written(here)
             ? here
             : p.moved("own rows", tokens, here, "tp", replicate(), shard("places"));
}

void embed_backward(const Forward& f, const std::string& dx) {
  TrainingParts& p = f.parts();
  p.activation("d embedding", {"vocabulary", "width"});
  const std::string made = p.shape.tied ? "d embedding by tokens" : "d embedding";
  p.activation(made, {"vocabulary", "width"});
  p.build.compute({.name = "gradient of embedding",
                   .reads = {dx, tokens_here(p, "tokens")},
                   .writes = {made},
                   .pointwise = {"width"},
                   .summed = p.rows});
  if (p.task.vocabulary) {
    p.build.redistribute("own words", made, "tp", replicate(), shard("vocabulary"));
  }
  if (p.shape.tied) {
    p.build.pointwise("added", {made, kGradientByHead}, "d embedding", {"vocabulary", "width"},
                      Node::Linear::together);
  }
}

// Adds the cross entropy of logits that are sharded over the vocabulary: two small sums.
void losses(TrainingParts& p) {
  const Dims logits = {"sequences", "places", "vocabulary"};
  p.build.element_bytes(4);
  p.activation("largest", p.rows);
  p.build.element_bytes(8);
  p.activation("sums", {"sequences", "places", "two"});
  p.build.element_bytes(p.task.element_bytes);
  p.build.compute({.name = "largest logit",
                   .reads = {"logits"},
                   .writes = {"largest"},
                   .pointwise = p.rows,
                   .summed = {"vocabulary"}});
  const auto tell = [&](const char* name, const char* tensor) {
    if (p.task.vocabulary) {
      p.build.redistribute(name, tensor, "tp", partial(), replicate());
    }
  };
  tell("largest told", "largest");
  const std::string targets = tokens_here(p, "targets");
  p.build.compute({.name = "sums of logits",
                   .reads = {"logits", "largest", targets},
                   .writes = {"sums"},
                   .pointwise = p.rows,
                   .summed = {"vocabulary"}});
  tell("sums added", "sums");
  p.build.element_bytes(kExactSumBytes);
  p.activation("loss", {"one"});
  p.build.element_bytes(p.task.element_bytes);
  p.build.compute(
      {.name = "loss", .reads = {"sums", "largest"}, .writes = {"loss"}, .summed = p.rows});
  if (p.task.sequence && !p.task.vocabulary) {
    p.build.redistribute("loss of all rows", "loss", "tp", partial(), replicate());
  }
  p.activation("d logits", logits);
  p.build.compute({.name = "d logits",
                   .reads = {"logits", "largest", "sums", targets},
                   .writes = {"d logits"},
                   .pointwise = logits});
}

}  // namespace

Forward embed(TrainingParts& p) {
  Forward f(p, {}, "layer 0 x");
  f.make("out", kLayerRows);
  p.build.compute({.name = "embedding",
                   .reads = {tokens_here(p, "tokens"), "embedding"},
                   .writes = {f.full("out")},
                   .pointwise = kLayerRows,
                   .summed = {"vocabulary"}});
  f.own({.node = {.name = "embedding", .writes = {"out"}},
         .backward = [](Backward& backward, const std::string& gradient) {
           embed_backward(backward.forward(), gradient);
         }});
  if (p.task.vocabulary) {
    f.leave("out");
  }
  return f;
}

void run_head(TrainingParts& p) {
  Forward f(p, {}, {});
  const std::string x = "layer " + std::to_string(p.shape.layers) + " x";
  f.norm("norm", x, "norm", "normal");
  if (p.task.vocabulary) {
    f.enter("normal");
  }
  f.product("logits", "normal", p.output(), "logits", {"sequences", "places", "vocabulary"});
  losses(p);
  Backward backward(f, Backward::Weights::with_inputs);
  backward.start("logits", "d logits");
  if (p.shape.tied) {
    backward.call_weight("embedding", kGradientByHead);
  }
  backward.inputs();
}

}  // namespace unisono::step
