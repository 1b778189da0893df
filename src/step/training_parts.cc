#include "step/training_parts.h"

#include <algorithm>

namespace unisono::step {

using Linear = Node::Linear;

TrainingParts::TrainingParts(const estimate::ModelShape& model, const parallel::MeshShape& mesh,
                             const TrainingTask& wanted)
    : shape(model), task(wanted), build(model.name + ", a training step", mesh) {
  shares_keys = build.size("tp") > model.kv_heads;
}

std::size_t TrainingParts::sequences() const {
  const auto& pipeline = build.step().pipeline;
  return !pipeline ? task.sequences
                   : task.sequences / static_cast<std::size_t>(task.microbatches) *
                         pipeline->chains.size();
}

std::vector<UnitWeight> TrainingParts::embedding() const {
  return {{.name = "embedding",
           .dims = {"vocabulary", "width"},
           .cut = task.vocabulary ? "vocabulary" : "",
           .is_summed = task.sequence && !task.vocabulary}};
}

std::vector<UnitWeight> TrainingParts::layer(int number) const {
  const std::string prefix = "layer " + std::to_string(number) + " ";
  const auto norm = [&](const char* name) -> UnitWeight {
    return {.name = prefix + name, .dims = {"width"}, .is_summed = task.sequence};
  };
  const auto matrix = [&](const char* name, std::vector<std::string> dims,
                          const char* cut) -> UnitWeight {
    return {.name = prefix + name, .dims = std::move(dims), .cut = cut};
  };
  UnitWeight key = matrix("key", {"kv_heads", "dim", "width"}, shares_keys ? "" : "kv_heads");
  key.is_summed = shares_keys;
  UnitWeight value = key;
  value.name = prefix + "value";
  std::vector<UnitWeight> all = {norm("attention norm"),
                                 matrix("query", {"heads", "dim", "width"}, "heads"),
                                 key,
                                 value,
                                 matrix("attention output", {"width", "heads", "dim"}, "heads"),
                                 norm("inner norm"),
                                 matrix("up", {"hidden", "width"}, "hidden")};
  if (shape.gated) {
    all.push_back(matrix("gate", {"hidden", "width"}, "hidden"));
  }
  all.push_back(matrix("down", {"width", "hidden"}, "hidden"));
  return all;
}

std::vector<UnitWeight> TrainingParts::head() const {
  return {{.name = "norm", .dims = {"width"}, .is_summed = task.sequence},
          {.name = "output",
           .dims = {"vocabulary", "width"},
           .cut = task.vocabulary ? "vocabulary" : "",
           .is_summed = task.sequence && !task.vocabulary}};
}

void TrainingParts::by_rows(const std::string& name, std::vector<std::string> reads,
                            const std::string& write, std::vector<std::string> dims) {
  std::erase(dims, "width");
  build.pointwise(name, std::move(reads), write, std::move(dims));
}

void TrainingParts::sum(const std::string& name, std::vector<std::string> reads,
                        const std::string& write) {
  build.pointwise(name, std::move(reads), write, {"sequences", "places", "width"},
                  Linear::together);
}

void TrainingParts::product(const std::string& name, const std::string& x,
                            const std::string& weight, const std::string& y,
                            std::vector<std::string> dims) {
  activation(y, std::move(dims));
  build.product(name, x, weight, y);
}

void TrainingParts::weight_gradient(const std::string& weight, const std::string& x,
                                    const std::string& dy) {
  const std::vector<std::string> dims = build.step().find_tensor(weight)->dims;
  Node node{.kind = Node::Kind::compute,
            .name = "gradient of " + weight,
            .reads = {x, dy},
            .writes = {"d " + weight},
            .pointwise = dims,
            .summed = rows,
            .linear = Linear::each,
            .flops = 2};
  const bool is_of_keys = std::find(dims.begin(), dims.end(), "kv_heads") != dims.end();
  if (shares_keys && is_of_keys) {
    // Rows of other heads are zeros: a summand.
    std::erase(node.pointwise, "kv_heads");
    node.summed.emplace_back("kv_heads");
  }
  activation("d " + weight, dims);
  build.compute(std::move(node));
}

void TrainingParts::gain_gradient(const std::string& gain, const std::string& x,
                                  const std::string& dy) {
  activation("d " + gain, {"width"});
  build.compute(
      {.name = "gradient of " + gain, .reads = {x, dy}, .writes = {"d " + gain}, .summed = rows});
}

std::string TrainingParts::moved(const std::string& name, const std::string& tensor,
                                 const std::string& to_name, const std::string& axis,
                                 Placement from, Placement to) {
  if (!build.is_wide(axis)) {
    return tensor;
  }
  if (build.step().find_tensor(to_name) == nullptr) {
    activation(to_name, build.step().find_tensor(tensor)->dims);
  }
  build.redistribute(name, {tensor}, {to_name}, axis, std::move(from), std::move(to));
  return to_name;
}

void TrainingParts::enter(const std::string& x) {
  if (task.sequence) {
    build.redistribute("rows gathered", x, "tp", shard("places"), replicate());
  }
}

std::string TrainingParts::enter_backward(const std::string& dx) {
  build.redistribute("gradient summed", dx, "tp", partial(),
                     task.sequence ? shard("places") : replicate());
  return dx;
}

void TrainingParts::leave(const std::string& y) {
  build.redistribute("summed", y, "tp", partial(), task.sequence ? shard("places") : replicate());
}

std::string TrainingParts::leave_backward(const std::string& dy) {
  return task.sequence ? moved("gradient gathered", dy, dy + " of all rows", "tp", shard("places"),
                               replicate())
                       : dy;
}

}  // namespace unisono::step
