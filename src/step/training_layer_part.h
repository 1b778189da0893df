// What all parts of a layer of a training step have: the names of the layer's tensors, and how
// gradients are put together.
#pragma once

#include <string>
#include <vector>

#include "step/training_parts.h"

namespace unisono::step {

inline const std::vector<std::string> kLayerRows = {"sequences", "places", "width"};

class LayerPart {
 public:
  LayerPart(TrainingParts& parts, int layer)
      : p_(parts),
        build_(parts.build),
        layer_(layer),
        prefix_("layer " + std::to_string(layer) + " ") {}

 protected:
  std::string name(const std::string& what) const { return prefix_ + what; }
  // The sum of the parts, or the only one itself.
  std::string added(const std::vector<std::string>& parts, const std::string& made,
                    const std::vector<std::string>& dims = kLayerRows);
  // From the gradient of what a norm gives to that of what it takes, with what passed it by.
  void norm_backward(const std::string& norm, const std::string& x, const std::string& dnormal,
                     const std::string& passed, const std::string& made);

  TrainingParts& p_;
  StepBuilder& build_;
  int layer_;

 private:
  std::string prefix_;
};

}  // namespace unisono::step
