#include "step/training_pipeline.h"

#include <deque>
#include <map>
#include <utility>

#include "pipeline/catalog.h"
#include "step/training_layer.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

constexpr const char* kEverywhere = "pp,rep,copy,dp,ep,cp,uly,tp";

// A place in the chain, with its layers and units: the first place also has the embedding, the last
// one the head. If there are more places than layers, some places only forward their input.
class Place {
 public:
  Place(const TrainingParts& parts, int number, int places)
      : number_(number),
        places_(places),
        first_(parts.shape.layers * number / places),
        end_(parts.shape.layers * (number + 1) / places) {}

  bool is_first() const { return number_ == 0; }
  bool is_last() const { return number_ + 1 == places_; }
  int first_layer() const { return first_; }
  int end_layer() const { return end_; }
  std::size_t first_unit() const { return is_first() ? 0 : static_cast<std::size_t>(first_) + 1; }
  std::size_t end_unit() const { return static_cast<std::size_t>(end_) + (is_last() ? 2 : 1); }

 private:
  int number_;
  int places_;
  int first_;
  int end_;
};

class Passes {
 public:
  Passes(TrainingParts& parts, Units& units)
      : p_(parts),
        build_(parts.build),
        units_(units),
        chains_(build_.step().pipeline->chains),
        places_(static_cast<int>(chains_.front().stages.size())) {}

  void make() {
    each_forward([&](const Place& place, int stage) {
      build_.section("weights", stage);
      for (std::size_t unit = place.first_unit(); unit < place.end_unit(); ++unit) {
        units_.gather(unit);
      }
    });
    for (int place = 0; place < places_; ++place) {
      for (const pipeline::Chain& chain : chains_) {
        forward(Place(p_, place, places_), stage_of(chain, place));
      }
    }
    for (int place = places_; place-- > 0;) {
      for (const pipeline::Chain& chain : chains_) {
        backward(Place(p_, place, places_), stage_of(chain, place));
      }
    }
    for (int place = places_; place-- > 0;) {
      for (const pipeline::Chain& chain : chains_) {
        build_.section("gradients", stage_of(chain, place));
        const Place here(p_, place, places_);
        for (std::size_t unit = here.end_unit(); unit-- > here.first_unit();) {
          units_.reduce(unit);
        }
      }
    }
    optimise();
  }

 private:
  static int stage_of(const pipeline::Chain& chain, int place) {
    return chain.stages[static_cast<std::size_t>(place)];
  }

  template <typename Body>
  void each_forward(const Body& body) {
    for (int place = 0; place < places_; ++place) {
      for (const pipeline::Chain& chain : chains_) {
        body(Place(p_, place, places_), stage_of(chain, place));
      }
    }
  }

  void section(const char* name, int stage, StagePass pass, int layer = -1) {
    build_.section(name, stage, layer);
    build_.pass(pass);
  }

  void send(const std::string& name, const std::string& tensor) {
    build_.add({.kind = Node::Kind::send, .name = name, .reads = {tensor}, .writes = {tensor}});
  }

  static std::string x(int layer) { return "layer " + std::to_string(layer) + " x"; }

  void forward(const Place& place, int stage) {
    if (place.is_first()) {
      section("embed", stage, StagePass::forward);
      passes_.insert_or_assign(-1, embed(p_));
    }
    for (int layer = place.first_layer(); layer < place.end_layer(); ++layer) {
      section("forward", stage, StagePass::forward, layer);
      passes_.insert_or_assign(layer, forward_layer(p_, layer));
    }
    section(place.is_last() ? "head" : "pass on", stage, StagePass::forward);
    if (place.is_last()) {
      run_head(p_);
    } else {
      send("activations", x(place.end_layer()));
    }
  }

  void backward(const Place& place, int stage) {
    std::deque<Backward> layers;
    for (int layer = place.end_layer(); layer-- > place.first_layer();) {
      section("backward", stage, StagePass::backward_input, layer);
      layers.push_front(backward_of(passes_.at(layer)));
      layers.front().inputs();
    }
    if (!place.is_first()) {
      section("pass back", stage, StagePass::backward_input);
      send("gradients", "d " + x(place.first_layer()));
    } else {
      section("embed backward", stage, StagePass::backward_weight);
      backward_of(passes_.at(-1)).inputs();
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      section("backward of weights", stage, StagePass::backward_weight,
              place.first_layer() + static_cast<int>(i));
      layers[i].weights();
    }
  }

  void optimise() {
    each_forward([&](const Place& place, int stage) {
      units_.add_squares(place.first_unit(), place.end_unit(), stage, "norm of stage");
    });
    build_.section("norm", kAllStages);
    sum_stages("norm of stage", kNorm);
    units_.sum_norm("norm of stages", "pp,tp");
    each_forward([&](const Place& place, int stage) {
      units_.update(place.first_unit(), place.end_unit(), stage);
    });
    for (const pipeline::Chain& chain : chains_) {
      build_.section("loss", chain.stages.back());
      build_.redistribute("counted once", {"loss"}, {"loss"}, "tp", replicate(), partial(),
                          "first");
    }
    build_.section("loss", kAllStages);
    sum_stages("loss", kLossOfAll);
    build_.redistribute("loss of all", kLossOfAll, kEverywhere, partial(), replicate());
  }

  void sum_stages(const std::string& of_stage, const std::string& sum) {
    const Tensor own = *build_.step().find_tensor(of_stage);
    build_.element_bytes(own.element_bytes);
    build_.activation(sum, own.dims);
    build_.element_bytes(p_.task.element_bytes);
    build_.add({.kind = Node::Kind::sum_stages,
                .name = "own stages added",
                .reads = {of_stage},
                .writes = {sum}});
  }

  TrainingParts& p_;
  StepBuilder& build_;
  Units& units_;
  std::vector<pipeline::Chain> chains_;
  int places_;
  std::map<int, Forward> passes_;  // by layer number; -1: the embedding
};

}  // namespace

void add_pipeline(TrainingParts& parts) {
  const TrainingTask& task = parts.task;
  const pipeline::Entry& entry = *pipeline::find_entry(task.schedule);
  const int own = entry.chunks == 0 ? 2 : entry.chunks;
  const pipeline::PipelineSize size{.ranks = parts.build.size("pp"),
                                    .chunks = task.chunks == 0 ? own : task.chunks,
                                    .microbatches = task.microbatches};
  if (const std::string problem = refusal(entry, size); !problem.empty()) {
    throw Error(ErrorCode::usage, problem + "\nchoose another shape or schedule");
  }
  if (task.sequences % static_cast<std::size_t>(task.microbatches) != 0) {
    throw Error(ErrorCode::usage, std::to_string(task.microbatches) +
                                      " microbatches do not divide " +
                                      std::to_string(task.sequences) + " sequences\npass m=N");
  }
  parts.build.pipeline("pp", build(entry, size));
}

void make_passes(TrainingParts& parts, Units& units) {
  Passes(parts, units).make();
}

}  // namespace unisono::step
