#include "planner/layout.h"

#include <array>
#include <cmath>
#include <utility>

namespace unisono::planner {

std::string_view to_string(Recompute recompute) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "selective", "full"};
  return kNames.at(static_cast<std::size_t>(recompute));
}

std::string_view to_string(State state) {
  return state == State::f32 ? "f32" : "bf16";
}

std::string_view to_string(Offload offload) {
  return offload.activations ? (offload.optimiser ? "both" : "activations")
                             : (offload.optimiser ? "optimiser" : "none");
}

std::string text_of(const Layout& layout) {
  std::string text;
  const std::array<std::pair<const char*, int>, 7> axes = {{{"tp", layout.tp},
                                                            {"pp", layout.pp},
                                                            {"vp", layout.vp},
                                                            {"cp", layout.cp},
                                                            {"uly", layout.uly},
                                                            {"ep", layout.ep},
                                                            {"dp", layout.dp}}};
  for (const auto& [name, size] : axes) {
    if (size > 1) {
      text += std::string(name) + "=" + std::to_string(size) + ",";
    }
  }
  return text + "mb=" + std::to_string(layout.micro_batch);
}

std::string problem_of(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  const auto number = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  if (shape.heads % layout.tp != 0) {
    return number(shape.heads) + " heads cannot be divided by tp=" + number(layout.tp);
  }
  if (shape.heads % (layout.tp * layout.uly) != 0) {
    return number(shape.heads) +
           " heads cannot be divided by tp x uly = " + number(layout.tp * layout.uly);
  }
  if (layout.pp * layout.vp > shape.layers) {
    return number(shape.layers) + " layers are fewer than the parts of pp=" + number(layout.pp);
  }
  if (layout.ep > 1 && (!shape.has_experts() || shape.experts % layout.ep != 0)) {
    return number(shape.experts) + " experts cannot be divided by ep=" + number(layout.ep);
  }
  if (layout.stage_ranks() % layout.ep != 0) {
    return "ep=" + number(layout.ep) + " does not divide the ranks of a stage";
  }
  // Zigzag order cuts two parts for each rank of cp, which those of uly cut further.
  const double parts = (layout.cp > 1 ? 2.0 : 1.0) * layout.cp * layout.uly;
  if (std::fmod(task.sequence, parts) != 0) {
    return "a sequence of " + number(task.sequence) + " cannot be cut into " + number(parts) +
           " parts for the ranks of cp and uly";
  }
  const double count = microbatches(layout, task);
  if (count < 1 || count != std::floor(count)) {
    return "a batch of " + number(task.batch) + " is not a multiple of dp x micro-batch = " +
           number(static_cast<double>(layout.dp) * layout.micro_batch);
  }
  if (layout.vp > 1 && (layout.pp == 1 || std::fmod(count, layout.pp) != 0)) {
    return "an interleaved pipeline needs a multiple of pp=" + number(layout.pp) + " microbatches";
  }
  return {};
}

}  // namespace unisono::planner
