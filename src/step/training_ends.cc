// The ends of a model that is trained: tokens become vectors, and vectors a loss and its gradient.
#include <algorithm>

#include "step/training_parts.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

const Dims kRows = {"sequences", "places", "width"};
constexpr const char* kGradientByHead = "d embedding by head";  // where one matrix is both

// Tokens of this rank's rows; with sequence parallelism each rank of tp has some of them.
std::string tokens_here(TrainingParts& p, const std::string& tokens) {
  if (!p.task.sequence || p.task.vocabulary) {
    return tokens;
  }
  const std::string here = tokens + " here";
  return p.build.is_written(here)
             ? here
             : p.moved("own rows", tokens, here, "tp", replicate(), shard("places"));
}

}  // namespace

void embed(TrainingParts& p) {
  p.activation("layer 0 x", kRows);
  p.build.compute({.name = "embedding",
                   .reads = {tokens_here(p, "tokens"), "embedding"},
                   .writes = {"layer 0 x"},
                   .pointwise = kRows,
                   .summed = {"vocabulary"}});
  if (p.task.vocabulary) {
    p.leave("layer 0 x");
  }
}

void embed_backward(TrainingParts& p) {
  const std::string dx = p.task.vocabulary ? p.leave_backward("d layer 0 x") : "d layer 0 x";
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
    p.sum("added", {made, kGradientByHead}, "d embedding", {"vocabulary", "width"});
  }
}

namespace {

// Cross entropy of logits that are cut over the vocabulary: two small sums.
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
  p.build.element_bytes(8);
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

void run_head(TrainingParts& p) {
  const std::string x = "layer " + std::to_string(p.shape.layers) + " x";
  p.activation("normal", kRows);
  p.by_rows("norm", {x, "norm"}, "normal", kRows);
  if (p.task.vocabulary) {
    p.enter("normal");
  }
  p.product("logits", "normal", p.output(), "logits", {"sequences", "places", "vocabulary"});
  losses(p);
  p.product("d normal", "d logits", p.output(), "d normal", kRows);
  p.weight_gradient(p.output(), "normal", "d logits", p.shape.tied ? kGradientByHead : "d output",
                    p.rows);
  if (p.task.vocabulary) {
    p.enter_backward("d normal");
  }
  p.activation("d " + x, kRows);
  p.by_rows("norm backward", {x, "norm", "d normal"}, "d " + x, kRows);
  p.gain_gradient("norm", x, "d normal");
}

}  // namespace unisono::step
