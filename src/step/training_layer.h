// The two halves of a layer of a training step: attention, and the inner part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "step/training_heads.h"
#include "step/training_inner.h"
#include "step/training_layer_part.h"

namespace unisono::step {

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

class AttentionHalf : public LayerPart {
 public:
  AttentionHalf(TrainingParts& parts, int layer)
      : LayerPart(parts, layer), moves_(parts), heads_(make_heads(parts, layer)) {}
  void forward();
  void backward();
  void weight_gradients();  // behind backward()

 private:
  void attend();
  std::vector<std::string> again();
  std::vector<std::string> attended() const;
  double flops(double by_keys, double by_values) const;

  AttentionMoves moves_;
  std::unique_ptr<Heads> heads_;
  std::string out_;
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
