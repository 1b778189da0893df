#include "step/training_units.h"

#include <utility>

namespace unisono::step {
namespace {

using Names = std::vector<std::string>;
using Linear = Node::Linear;

Placements over_shards(Placements placement) {
  for (const std::string& axis : axis_names(kShardAxes)) {
    placement[axis] = shard("width");
  }
  return placement;
}

}  // namespace

Units::Units(TrainingParts& parts) : p_(parts), build_(parts.build) {
  all_.push_back(parts.embedding());
  for (int layer = 0; layer < parts.shape.layers; ++layer) {
    all_.push_back(parts.layer(layer));
  }
  all_.push_back(parts.head());
  for (const std::vector<UnitWeight>& unit : all_) {
    for (const UnitWeight& weight : unit) {
      add(weight);
    }
  }
}

void Units::gather(std::size_t unit) {
  if (p_.task.zero == 3) {
    build_.redistribute("weights gathered", stored(unit), names(unit), kShardAxes, shard("width"),
                        replicate());
  }
}

void Units::reduce(std::size_t unit) {
  Names gradients;
  for (const UnitWeight& weight : all_[unit]) {
    gradients.push_back("d " + weight.name);
    if (weight.is_summed) {
      build_.redistribute("gradient summed", gradients.back(), "tp", partial(), replicate());
    }
  }
  build_.redistribute("gradients summed", gradients, gradients, kShardAxes, partial(),
                      p_.task.zero == 0 ? replicate() : shard("width"));
  build_.redistribute("gradients summed", gradients, gradients, "rep", partial(), replicate());
}

void Units::add_squares(std::size_t begin, std::size_t end, const std::string& sum) {
  Names squares;
  build_.element_bytes(8);
  for (std::size_t unit = begin; unit < end; ++unit) {
    for (const UnitWeight& weight : all_[unit]) {
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
  build_.activation(sum, {"one"});
  build_.element_bytes(p_.task.element_bytes);
  if (!squares.empty()) {
    build_.pointwise("norm", squares, sum, {"one"}, Linear::together);
  }
}

void Units::sum_norm(const std::string& name, const std::string& axes) {
  if (p_.task.zero != 0) {
    build_.redistribute("norm summed", kNorm, kShardAxes, partial(), replicate());
  }
  build_.redistribute(name, kNorm, axes, partial(), replicate());
}

void Units::update(std::size_t begin, std::size_t end) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    for (const UnitWeight& weight : all_[unit]) {
      update(weight);
    }
  }
  for (std::size_t unit = begin; unit < end; ++unit) {
    if (p_.task.zero == 1 || p_.task.zero == 2) {
      build_.redistribute("weights gathered", names(unit), names(unit), kShardAxes, shard("width"),
                          replicate());
    }
  }
}

Names Units::names(std::size_t unit) const {
  Names all;
  for (const UnitWeight& weight : all_[unit]) {
    all.push_back(weight.name);
  }
  return all;
}

Names Units::stored(std::size_t unit) const {
  Names all;
  for (const UnitWeight& weight : all_[unit]) {
    all.push_back(stored_name(weight));
  }
  return all;
}

std::string Units::stored_name(const UnitWeight& weight) const {
  return is_sharded() ? weight.name + " stored" : weight.name;
}

void Units::add(const UnitWeight& weight) {
  const Placements cut = weight.cut.empty() ? Placements{} : Placements{{"tp", shard(weight.cut)}};
  build_.weight(stored_name(weight), weight.dims, is_sharded() ? over_shards(cut) : cut, false);
  if (is_sharded()) {
    build_.activation(weight.name, weight.dims);
  }
  build_.element_bytes(4);
  for (const char* state : {"mean of ", "variance of "}) {
    build_.weight(state + weight.name, weight.dims, p_.task.zero == 0 ? cut : over_shards(cut),
                  false);
  }
  build_.element_bytes(p_.task.element_bytes);
  build_.step().results.push_back(
      {.tensor = stored_name(weight),
       .placement = build_.step().find_tensor(stored_name(weight))->placement});
}

void Units::update(const UnitWeight& weight) {
  const std::string own = p_.task.zero == 1 || p_.task.zero == 2
                              ? p_.moved("own part", weight.name, weight.name + " here", kShardAxes,
                                         replicate(), shard("width"))
                              : stored_name(weight);
  build_.compute(
      {.name = "update of " + weight.name,
       .reads = {own, "d " + weight.name, "mean of " + weight.name, "variance of " + weight.name,
                 kNorm},
       .writes = {stored_name(weight), "mean of " + weight.name, "variance of " + weight.name},
       .pointwise = weight.dims});
}

}  // namespace unisono::step
