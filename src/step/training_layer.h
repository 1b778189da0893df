// The two halves of a layer of a training step: attention, and the inner part.
#pragma once

#include <string>
#include <vector>

#include "step/training_parts.h"

namespace unisono::step {

inline const std::vector<std::string> kLayerRows = {"sequences", "places", "width"};

// What both halves have: the names of the layer's tensors, and how gradients are put together.
class HalfLayer {
 public:
  HalfLayer(TrainingParts& parts, int layer)
      : p_(parts), build_(parts.build), prefix_("layer " + std::to_string(layer) + " ") {}

 protected:
  std::string name(const std::string& what) const { return prefix_ + what; }
  // The sum of the parts, or the only one itself.
  std::string added(const std::vector<std::string>& parts, const std::string& made);
  // From the gradient of what a norm gives to that of what it takes, with what passed it by.
  void norm_backward(const std::string& norm, const std::string& x, const std::string& dnormal,
                     const std::string& passed, const std::string& made);

  TrainingParts& p_;
  StepBuilder& build_;

 private:
  std::string prefix_;
};

// How queries, keys and values, and their gradients, move between the ranks of cp and uly.
class AttentionMoves {
 public:
  explicit AttentionMoves(TrainingParts& parts) : p_(parts), build_(parts.build) {}

  // Between places cut outside of attention and heads cut inside, along uly.
  std::string to_heads(const std::string& tensor, const std::string& made, const char* heads);
  std::string to_rows(const std::string& tensor, const std::string& made, const char* heads);
  // Keys or values have places of their own: a query sees those of others.
  std::string as_seen(const std::string& tensor, const std::string& made);
  std::string as_made(const std::string& tensor, const std::string& made);
  void around(const std::string& keys, const std::string& values, const char* ring);
  // Gradients of keys and values go to the ranks that these belong to, summed.
  void home(const std::vector<std::string>& sums);

 private:
  std::string with_places(const char* node, const std::string& tensor, const std::string& made,
                          const char* from, const char* to);

  TrainingParts& p_;
  StepBuilder& build_;
};

class AttentionHalf : public HalfLayer {
 public:
  AttentionHalf(TrainingParts& parts, int layer) : HalfLayer(parts, layer), moves_(parts) {}
  void forward();
  void backward();
  void weight_gradients();  // behind backward()

 private:
  std::string own(const std::string& weight);
  void attend();
  std::vector<std::string> again();
  void to_inputs();

  AttentionMoves moves_;
  std::string out_, dq_, dk_, dv_;
};

class InnerHalf : public HalfLayer {
 public:
  InnerHalf(TrainingParts& parts, int layer)
      : HalfLayer(parts, layer), out_("layer " + std::to_string(layer + 1) + " x") {}
  void forward();
  void backward();
  void weight_gradients();  // behind backward()

 private:
  std::vector<std::string> matrices() const;
  std::string activation_backward();

  std::string out_;         // what the layer gives
  std::string dinner_out_;  // its gradient, of all rows
};

// From the gradient of what a layer gives to that of what it takes, and then of its weights.
class LayerBackward {
 public:
  LayerBackward(TrainingParts& parts, int layer) : inner_(parts, layer), attention_(parts, layer) {}
  void inputs() {
    inner_.backward();
    attention_.backward();
  }
  void weights() {
    inner_.weight_gradients();
    attention_.weight_gradients();
  }

 private:
  InnerHalf inner_;
  AttentionHalf attention_;
};

}  // namespace unisono::step
