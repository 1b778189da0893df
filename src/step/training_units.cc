#include "step/training_units.h"

#include <utility>

namespace unisono::step {
namespace {

using Names = std::vector<std::string>;
// The axes over which ZeRO shards: those that cut sequences or positions. Experts are sharded along
// ep.
constexpr const char* kShardAxes = "copy,dp,ep,cp,uly";
constexpr const char* kExpertShardAxes = "copy,dp,cp,uly";

const char* shard_axes(const UnitWeight& weight) {
  return weight.is_of_expert ? kExpertShardAxes : kShardAxes;
}

Placements over_shards(const UnitWeight& weight, Placements placement) {
  for (const std::string& axis : axis_names(shard_axes(weight))) {
    placement[axis] = shard(weight.sharded);
  }
  return placement;
}

// Changes the dimension of a shard.
Placement along(const Placement& placement, const std::string& dim) {
  return placement.kind == Placement::Kind::shard ? shard(dim) : placement;
}

std::string own_name(const UnitWeight& weight) {
  return weight.name;
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
    move(
        "weights gathered", unit, [&](const UnitWeight& one) { return stored_name(one); }, own_name,
        shard({}), replicate());
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
  const auto gradient = [](const UnitWeight& one) { return "d " + one.name; };
  move("gradients summed", unit, gradient, gradient, partial(),
       p_.task.zero == 0 ? replicate() : shard({}));
  build_.redistribute("gradients summed", gradients, gradients, "rep", partial(), replicate());
}

void Units::add_squares(std::size_t begin, std::size_t end, int stage, const std::string& sum) {
  Names squares;
  build_.element_bytes(kExactSumBytes);
  for (std::size_t unit = begin; unit < end; ++unit) {
    section("squares", unit, stage);
    for (const UnitWeight& weight : all_[unit]) {
      squares.push_back("squares of " + weight.name);
      add_squares(weight, squares.back());
    }
  }
  build_.activation(sum, {"one"});
  build_.element_bytes(p_.task.element_bytes);
  if (!squares.empty()) {
    build_.section("norm", stage);
    build_.pointwise("norm", squares, sum, {"one"}, Node::Linear::together);
  }
}

void Units::add_squares(const UnitWeight& weight, const std::string& made) {
  build_.activation(made, {"one"});
  build_.compute(
      {.name = "squares", .reads = {"d " + weight.name}, .writes = {made}, .summed = weight.dims});
  const auto once = [&](const char* axis) {
    build_.redistribute("counted once", {made}, {made}, axis, replicate(), partial(), "first");
  };
  if (weight.cut.empty()) {
    once("tp");
  }
  if (!weight.is_of_expert && p_.task.zero == 0) {
    once("ep");
  }
}

// The sections of equal layers differ only in the layer number.
void Units::section(const std::string& name, std::size_t unit, int stage) {
  const bool is_layer = unit != 0 && unit != last();
  const char* const end = unit == 0 ? " of embedding" : " of head";
  build_.section(is_layer ? name : name + end, stage, is_layer ? static_cast<int>(unit) - 1 : -1);
}

void Units::sum_norm(const std::string& name, const std::string& axes) {
  build_.redistribute("norm summed", kNorm, p_.task.zero == 0 ? "ep" : kShardAxes, partial(),
                      replicate());
  build_.redistribute(name, kNorm, axes, partial(), replicate());
}

void Units::update(std::size_t begin, std::size_t end, int stage) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    section("optimiser", unit, stage);
    for (const UnitWeight& weight : all_[unit]) {
      update(weight);
    }
    if (p_.task.zero == 1 || p_.task.zero == 2) {
      move("weights gathered", unit, own_name, own_name, shard({}), replicate());
    }
  }
}

void Units::move(const std::string& node, std::size_t unit, const NameOf& read,
                 const NameOf& written, Placement from, Placement to) {
  for (const bool is_of_expert : {false, true}) {
    Names sharded;
    for (const UnitWeight& weight : all_[unit]) {
      if (weight.is_of_expert == is_of_expert && !has_name(sharded, weight.sharded)) {
        sharded.push_back(weight.sharded);
      }
    }
    for (const std::string& dim : sharded) {
      Names reads;
      Names writes;
      for (const UnitWeight& weight : all_[unit]) {
        if (weight.is_of_expert == is_of_expert && weight.sharded == dim) {
          reads.push_back(read(weight));
          writes.push_back(written(weight));
        }
      }
      build_.redistribute((is_of_expert ? "expert " : "") + node, reads, writes,
                          is_of_expert ? kExpertShardAxes : kShardAxes, along(from, dim),
                          along(to, dim));
    }
  }
}

bool Units::is_sharded(const UnitWeight& weight) const {
  return p_.task.zero == 3 && build_.is_wide(shard_axes(weight));
}

std::string Units::stored_name(const UnitWeight& weight) const {
  return is_sharded(weight) ? weight.name + " stored" : weight.name;
}

void Units::add(const UnitWeight& weight) {
  Placements cut = weight.cut.empty() ? Placements{} : Placements{{"tp", shard(weight.cut)}};
  if (weight.is_of_expert) {
    cut["ep"] = shard("experts");
  }
  const Placements sharded = over_shards(weight, cut);
  build_.weight(stored_name(weight), weight.dims, is_sharded(weight) ? sharded : cut, false);
  if (is_sharded(weight)) {
    build_.activation(weight.name, weight.dims);
  }
  build_.element_bytes(4);
  for (const char* state : {"mean of ", "variance of "}) {
    build_.weight(state + weight.name, weight.dims, p_.task.zero == 0 ? cut : sharded, false);
  }
  build_.element_bytes(p_.task.element_bytes);
  build_.step().results.push_back(
      {.tensor = stored_name(weight),
       .placement = build_.step().find_tensor(stored_name(weight))->placement});
}

void Units::update(const UnitWeight& weight) {
  const std::string own = p_.task.zero == 1 || p_.task.zero == 2
                              ? p_.moved("own part", weight.name, weight.name + " here",
                                         shard_axes(weight), replicate(), shard(weight.sharded))
                              : stored_name(weight);
  build_.compute(
      {.name = "update of " + weight.name,
       .reads = {own, "d " + weight.name, "mean of " + weight.name, "variance of " + weight.name,
                 kNorm},
       .writes = {stored_name(weight), "mean of " + weight.name, "variance of " + weight.name},
       .pointwise = weight.dims});
}

}  // namespace unisono::step
