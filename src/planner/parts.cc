#include "planner/parts.h"

#include <array>

namespace unisono::planner {

std::span<const NamedPart<StepParts>> step_parts() {
  static constexpr std::array<NamedPart<StepParts>, 11> kParts = {
      {{"matrix products", &StepParts::compute},
       {"device memory", &StepParts::memory},
       {"recompute", &StepParts::recompute},
       {"tensor", &StepParts::tensor},
       {"context", &StepParts::context},
       {"experts", &StepParts::experts},
       {"pipeline", &StepParts::pipeline},
       {"data", &StepParts::data},
       {"bubble", &StepParts::bubble},
       {"optimiser", &StepParts::optimiser},
       {"offload", &StepParts::offload}}};
  return kParts;
}

std::span<const NamedPart<TokenParts>> token_parts() {
  static constexpr std::array<NamedPart<TokenParts>, 9> kParts = {
      {{"weights", &TokenParts::weights},
       {"cache", &TokenParts::cache},
       {"matrix products", &TokenParts::products},
       {"layers", &TokenParts::layers},
       {"tensor", &TokenParts::exchange},
       {"experts", &TokenParts::experts},
       {"requests", &TokenParts::requests},
       {"draft", &TokenParts::draft},
       {"prompts", &TokenParts::prompts}}};
  return kParts;
}

std::span<const NamedPart<MemoryParts>> memory_parts() {
  static constexpr std::array<NamedPart<MemoryParts>, 6> kParts = {
      {{"weights", &MemoryParts::weights},
       {"gradients", &MemoryParts::gradients},
       {"optimiser", &MemoryParts::optimiser},
       {"activations", &MemoryParts::activations},
       {"cache", &MemoryParts::cache},
       {"buffers", &MemoryParts::buffers}}};
  return kParts;
}

}  // namespace unisono::planner
