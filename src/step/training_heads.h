// How a layer makes queries, keys and values of the rows that attention takes, and the way back
// from their gradients.
#pragma once

#include <memory>
#include <string>

#include "step/training_layer_part.h"

namespace unisono::step {

class Heads : public LayerPart {
 public:
  using LayerPart::LayerPart;
  Heads(const Heads&) = delete;
  Heads& operator=(const Heads&) = delete;
  virtual ~Heads() = default;

  // From "attention in" to "q", "k" and "v".
  virtual void forward() = 0;
  // The gradient of "attention in", from those of the three.
  virtual std::string backward(const std::string& dq, const std::string& dk,
                               const std::string& dv) = 0;
  virtual void weight_gradients() = 0;  // behind backward()

 protected:
  static const std::vector<std::string>& queries();
  static const std::vector<std::string>& keys();
};

std::unique_ptr<Heads> make_heads(TrainingParts& parts, int layer);
// Heads of compressed keys and values (DeepSeek-V2, 2024): the short rows that they are unfolded
// from go into and out of what tp cuts, and what compresses is done before.
std::unique_ptr<Heads> make_latent_heads(TrainingParts& parts, int layer);

}  // namespace unisono::step
