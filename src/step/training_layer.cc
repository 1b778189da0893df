// Forward and backward of a layer of a training step.
#include "step/training_layer.h"

namespace unisono::step {

std::string LayerPart::added(const std::vector<std::string>& parts, const std::string& made,
                             const std::vector<std::string>& dims) {
  if (parts.size() == 1) {
    return parts.front();
  }
  p_.activation(made, dims);
  p_.sum("added", parts, made, dims);
  return made;
}

void LayerPart::norm_backward(const std::string& norm, const std::string& x,
                              const std::string& dnormal, const std::string& passed,
                              const std::string& made) {
  p_.activation(made + " by norm", kLayerRows);
  p_.by_rows(norm + " backward", {x, name(norm), dnormal}, made + " by norm", kLayerRows);
  p_.gain_gradient(name(norm), x, dnormal);
  p_.activation(made, kLayerRows);
  p_.sum("added", {passed, made + " by norm"}, made);
}

void forward_layer(TrainingParts& parts, int layer) {
  AttentionHalf(parts, layer).forward();
  InnerHalf(parts, layer).forward();
}

}  // namespace unisono::step
