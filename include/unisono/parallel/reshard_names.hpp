// Name map: takes the tensors of a checkpoint to those of an engine that fuses some of them, such
// as q, k and v into one, or all experts of a layer into one. The map is data: a JSON file.
//
//   {"format": "unisono.names/1",
//    "rules": [{"from": ["layers.{layer}.q.weight", "layers.{layer}.k.weight"],
//               "to": "layers.{layer}.qk.weight", "join": 0},
//              {"from": ["layers.{layer}.experts.{expert}.up.weight"],
//               "to": "layers.{layer}.up.weight", "stack": "expert"}],
//    "leave_out": ["layers.{layer}.rotary.{any}"],
//    "others": "keep"}
//
// {word} stands for text without a dot. "join" puts tensors one after the other along a dimension
// of theirs. "stack" makes a new first dimension, which the word counts from 0. "others" says what
// becomes of names that no rule mentions: "keep" keeps them, "refuse" (the default) is an error.
// docs/guides/reshard.md has the whole form; examples/reshard/ has maps of known models.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/export.hpp"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/tensor.hpp"

namespace unisono::parallel {

// A tensor of a checkpoint or of an engine.
struct NamedTensor {
  std::string name = {};
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};
};

// The place of a source tensor in a target tensor.
struct NamedPart {
  std::size_t source = 0;                 // index of the source tensor
  std::optional<std::size_t> index = {};  // along the target's first dimension, if it is a stack
  std::size_t dim = 0;                    // of the target, along which parts are joined
  std::size_t first = 0;                  // along that dimension
};

// A tensor of the engine, and its parts.
struct NamedTarget {
  NamedTensor tensor = {};
  std::vector<NamedPart> parts = {};
};

// Threads: any.
class UNISONO_EXPORT NameMap {
 public:
  // Parses the JSON text. Errors: config, with the mistake and its place.
  static NameMap parse(std::string_view json);

  // Local. Returns the engine's tensors, in the order of their first sources.
  // Errors: usage with all mistakes: names without a rule, names without a partner, shapes or
  // dtypes that do not join, stacks with gaps, two tensors of one name.
  std::vector<NamedTarget> apply(std::span<const NamedTensor> sources) const;

 private:
  struct Rule {
    std::vector<std::string> from = {};
    std::string to = {};
    std::size_t join = 0;
    std::string stack = {};  // empty: no new dimension
  };
  std::vector<Rule> rules_ = {};
  std::vector<std::string> left_out_ = {};
  bool keeps_others_ = false;
};

// Local. Compares the result of apply() with the tensors that an engine has, all of them listed.
// Errors: usage with names on one side only, and other shapes or dtypes.
UNISONO_EXPORT void check_targets(std::span<const NamedTarget> targets,
                                  std::span<const NamedTensor> engine);

// Local. Returns the layout of a part, if its target has `layout`. A dimension that is joined is
// cut with the lengths of its parts as sections. Errors: usage if the target's layout cuts across
// its parts.
UNISONO_EXPORT MeshLayout layout_of_part(const NamedTarget& target, std::size_t part,
                                         std::span<const NamedTensor> sources,
                                         const MeshLayout& layout);

// The place of a part in a rank's memory of its target, of the shape that the rank has of the
// target.
struct LocalPart {
  std::optional<std::size_t> index = {};  // along the first dimension, if the target is a stack
  std::vector<Range> ranges = {};  // of each dimension; of the first one the index, in a stack
};

// Local. Returns the place of a part; nothing if the rank has no part in its layout.
UNISONO_EXPORT std::optional<LocalPart> local_part(const NamedTarget& target, std::size_t part,
                                                   std::span<const NamedTensor> sources,
                                                   const MeshLayout& layout, int rank);

// Local. Returns the part's memory. Pass it to Reshard::run() as the tensor of the part.
// Errors: usage if `memory` has another shape.
UNISONO_EXPORT Tensor view_of_part(const LocalPart& part, const Tensor& memory);

}  // namespace unisono::parallel
