#include "step/training.h"

#include <algorithm>
#include <array>

#include "step/training_parts.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

using Linear = Node::Linear;
using Dims = std::vector<std::string>;

constexpr const char* kShards = "dp,cp,uly";  // what ZeRO shards over
constexpr const char* kData = "rep,dp,cp,uly";

// Units in their order, with ZeRO's part of them.
class Units {
 public:
  explicit Units(TrainingParts& parts) : p_(parts), build_(parts.build) {
    all_.push_back(parts.embedding());
    for (int layer = 0; layer < parts.shape.layers; ++layer) {
      all_.push_back(parts.layer(layer));
    }
    all_.push_back(parts.head());
    add_weights();
  }
  std::size_t last() const { return all_.size() - 1; }

  // With stage 3 the weights of a unit are there from here on.
  void gather(std::size_t unit) {
    if (p_.task.zero == 3) {
      build_.redistribute("weights gathered", stored(unit), names(unit), kShards, shard("width"),
                          replicate());
    }
  }
  // Sums what each rank of tp has a summand of, and what each data-parallel rank has.
  void reduce(std::size_t unit) {
    Dims gradients;
    for (const UnitWeight& weight : all_[unit]) {
      gradients.push_back("d " + weight.name);
      if (weight.is_summed) {
        build_.redistribute("gradient summed", gradients.back(), "tp", partial(), replicate());
      }
    }
    build_.redistribute("gradients summed", gradients, gradients, kShards, partial(),
                        p_.task.zero == 0 ? replicate() : shard("width"));
    build_.redistribute("gradients summed", gradients, gradients, "rep", partial(), replicate());
  }

  void update() {
    build_.section("optimiser", 0);
    norm();
    for (const std::vector<UnitWeight>& unit : all_) {
      for (const UnitWeight& weight : unit) {
        update(weight);
      }
    }
    for (std::size_t unit = 0; unit < all_.size(); ++unit) {
      if (p_.task.zero == 1 || p_.task.zero == 2) {
        build_.redistribute("weights gathered", names(unit), names(unit), kShards, shard("width"),
                            replicate());
      }
    }
  }

 private:
  static Placements over_shards(Placements placement) {
    for (const std::string& axis : axis_names(kShards)) {
      placement[axis] = shard("width");
    }
    return placement;
  }
  bool is_sharded() const { return p_.task.zero == 3 && build_.is_wide(kShards); }
  Dims names(std::size_t unit) const {
    Dims all;
    for (const UnitWeight& weight : all_[unit]) {
      all.push_back(weight.name);
    }
    return all;
  }
  std::string stored_name(const UnitWeight& weight) const {
    return is_sharded() ? weight.name + " stored" : weight.name;
  }
  Dims stored(std::size_t unit) const {
    Dims all;
    for (const UnitWeight& weight : all_[unit]) {
      all.push_back(stored_name(weight));
    }
    return all;
  }

  void add_weights() {
    for (const std::vector<UnitWeight>& unit : all_) {
      for (const UnitWeight& weight : unit) {
        const Placements cut =
            weight.cut.empty() ? Placements{} : Placements{{"tp", shard(weight.cut)}};
        build_.weight(stored_name(weight), weight.dims, is_sharded() ? over_shards(cut) : cut,
                      false);
        if (is_sharded()) {
          build_.activation(weight.name, weight.dims);
        }
        build_.element_bytes(4);
        for (const char* state : {"mean of ", "variance of "}) {
          build_.weight(state + weight.name, weight.dims,
                        p_.task.zero == 0 ? cut : over_shards(cut), false);
        }
        build_.element_bytes(p_.task.element_bytes);
        build_.step().results.push_back(
            {.tensor = stored_name(weight),
             .placement = build_.step().find_tensor(stored_name(weight))->placement});
      }
    }
  }

  // The norm of all gradients, by which they are clipped. What all ranks have whole counts once.
  void norm() {
    Dims squares;
    build_.element_bytes(8);
    for (const std::vector<UnitWeight>& unit : all_) {
      for (const UnitWeight& weight : unit) {
        squares.push_back("squares of " + weight.name);
        build_.activation(squares.back(), {"one"});
        build_.compute({.name = "squares",
                        .reads = {"d " + weight.name},
                        .writes = {squares.back()},
                        .summed = weight.dims});
        if (weight.cut.empty()) {
          build_.redistribute("counted once", {squares.back()}, {squares.back()}, "tp", replicate(),
                              partial(), "first");
        }
      }
    }
    build_.activation("norm of gradients", {"one"});
    build_.element_bytes(p_.task.element_bytes);
    build_.pointwise("norm", squares, "norm of gradients", {"one"}, Linear::together);
    if (p_.task.zero != 0) {
      build_.redistribute("norm summed", "norm of gradients", kShards, partial(), replicate());
    }
    build_.redistribute("norm summed", "norm of gradients", "tp", partial(), replicate());
  }

  void update(const UnitWeight& weight) {
    const std::string own = p_.task.zero == 1 || p_.task.zero == 2
                                ? p_.moved("own part", weight.name, weight.name + " here", kShards,
                                           replicate(), shard("width"))
                                : stored_name(weight);
    build_.compute(
        {.name = "update of " + weight.name,
         .reads = {own, "d " + weight.name, "mean of " + weight.name, "variance of " + weight.name,
                   "norm of gradients"},
         .writes = {stored_name(weight), "mean of " + weight.name, "variance of " + weight.name},
         .pointwise = weight.dims});
  }

  TrainingParts& p_;
  StepBuilder& build_;
  std::vector<std::vector<UnitWeight>> all_;
};

void add_dims(TrainingParts& p) {
  const estimate::ModelShape& shape = p.shape;
  const auto count = [](double number) { return static_cast<std::size_t>(number); };
  p.build.dim({.name = "sequences", .size = p.task.sequences});
  p.build.dim({.name = "places", .size = p.task.length, .cut = Cut::rows});
  p.build.dim({.name = "seen", .size = p.task.length, .cut = Cut::rows});
  p.build.dim({.name = "width", .size = count(shape.hidden)});
  p.build.dim({.name = "heads", .size = static_cast<std::size_t>(shape.heads), .cut = Cut::heads});
  p.build.dim({.name = "kv_heads",
               .size = static_cast<std::size_t>(shape.kv_heads),
               .cut = Cut::key_value_heads,
               .like = "heads"});
  p.build.dim({.name = "dim", .size = count(shape.head_dim)});
  p.build.dim({.name = "hidden", .size = count(shape.ffn)});
  p.build.dim({.name = "vocabulary", .size = count(shape.vocabulary)});
  p.build.dim({.name = "two", .size = 2});
  p.build.dim({.name = "one", .size = 1});
}

const Dims kRows = {"sequences", "places", "width"};

// Tokens of this rank's rows; with sequence parallelism each rank of tp has some of them.
std::string tokens_here(TrainingParts& p, const std::string& tokens) {
  if (!p.task.sequence || p.task.vocabulary) {
    return tokens;
  }
  return p.build.step().find_tensor(tokens + " here") != nullptr
             ? tokens + " here"
             : p.moved("own rows", tokens, tokens + " here", "tp", replicate(), shard("places"));
}

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
  p.build.compute({.name = "gradient of embedding",
                   .reads = {dx, tokens_here(p, "tokens")},
                   .writes = {"d embedding"},
                   .pointwise = {"width"},
                   .summed = p.rows});
  if (p.task.vocabulary) {
    p.build.redistribute("own words", "d embedding", "tp", replicate(), shard("vocabulary"));
  }
}

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

void run_head(TrainingParts& p) {
  const std::string x = "layer " + std::to_string(p.shape.layers) + " x";
  p.activation("normal", kRows);
  p.by_rows("norm", {x, "norm"}, "normal", kRows);
  if (p.task.vocabulary) {
    p.enter("normal");
  }
  p.product("logits", "normal", "output", "logits", {"sequences", "places", "vocabulary"});
  losses(p);
  p.product("d normal", "d logits", "output", "d normal", kRows);
  p.weight_gradient("output", "normal", "d logits");
  if (p.task.vocabulary) {
    p.enter_backward("d normal");
  }
  p.activation("d " + x, kRows);
  p.by_rows("norm backward", {x, "norm", "d normal"}, "d " + x, kRows);
  p.gain_gradient("norm", x, "d normal");
}

Step make(TrainingParts& p) {
  Step& step = p.build.step();
  step.data_axes = {"rep", "dp"};
  step.context_axes = {"cp", "uly"};
  step.order = p.task.order;
  add_dims(p);
  p.build.element_bytes(4);
  const Placements rows = {{"rep", shard("sequences")},
                           {"dp", shard("sequences")},
                           {"cp", shard("places")},
                           {"uly", shard("places")}};
  for (const char* tokens : {"tokens", "targets"}) {
    p.build.tensor(Tensor::Kind::input, tokens, p.rows, rows);
  }
  p.build.element_bytes(p.task.element_bytes);
  Units units(p);
  const auto layers = static_cast<std::size_t>(p.shape.layers);
  p.build.section("embed", 0);
  units.gather(0);
  units.gather(1);  // one ahead, always
  embed(p);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    p.build.section("forward", 0, static_cast<int>(layer));
    units.gather(layer + 2);
    forward_layer(p, static_cast<int>(layer));
  }
  p.build.section("head", 0);
  units.gather(layers);
  run_head(p);
  units.reduce(units.last());
  for (std::size_t layer = layers; layer-- > 0;) {
    p.build.section("backward", 0, static_cast<int>(layer));
    if (layer > 0) {
      units.gather(layer);
    }
    backward_layer(p, static_cast<int>(layer));
    units.reduce(layer + 1);
  }
  p.build.section("embed backward", 0);
  embed_backward(p);
  units.reduce(0);
  units.update();
  p.build.redistribute("loss of all", "loss", kData, partial(), replicate());
  step.results.push_back({.tensor = "loss", .placement = {}});
  return p.build.take();
}

}  // namespace

TrainingTask parse_training(std::string_view words) {
  TrainingTask task;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.size() == 6 && word.starts_with("zero=") && word[5] >= '0' && word[5] <= '3') {
      task.zero = word[5] - '0';
    } else if (word == "sp") {
      task.sequence = true;
    } else if (word == "vocab") {
      task.vocabulary = true;
    } else if (word == "all_gather") {
      task.gathers_keys = true;
    } else if (word == "contiguous" || word == "striped") {
      task.order =
          word == "striped" ? parallel::ContextOrder::striped : parallel::ContextOrder::contiguous;
    } else if (!word.empty()) {
      throw Error(ErrorCode::usage, "a training step knows no \"" + std::string(word) +
                                        "\"\nit knows zero=0 to zero=3, sp, vocab, all_gather, "
                                        "contiguous and striped");
    }
  }
  return task;
}

Step make_training_step(const estimate::ModelShape& shape, std::string_view mesh,
                        const TrainingTask& task) {
  const auto axes = parallel::MeshShape::parse(mesh);
  constexpr std::array<std::string_view, 5> kAxes = {"rep", "dp", "cp", "uly", "tp"};
  for (const parallel::Axis& axis : axes.axes()) {
    if (std::find(kAxes.begin(), kAxes.end(), axis.name) == kAxes.end()) {
      throw Error(ErrorCode::config, "a training step has no axis " + axis.name +
                                         "\nits axes are rep, dp, cp, uly and tp");
    }
  }
  if (shape.has_experts() || shape.latent.is_used() || shape.tied) {
    throw Error(ErrorCode::usage,
                shape.name +
                    " has experts, compressed keys or a tied head\ntraining steps are "
                    "made of dense models with plain heads and a head of their own");
  }
  TrainingParts parts(shape, axes, task);
  return make(parts);
}

}  // namespace unisono::step
