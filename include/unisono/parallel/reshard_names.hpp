// Name map: describes how the tensors of a checkpoint become the tensors of an engine. The engine
// may fuse tensors, such as q, k and v into one tensor, or all experts of a layer into one tensor.
// The map is data: a JSON file.
//
//   {"format": "unisono.names/1",
//    "rules": [{"from": ["layers.{layer}.q.weight", "layers.{layer}.k.weight"],
//               "to": "layers.{layer}.qk.weight", "join": 0},
//              {"from": ["layers.{layer}.experts.{expert}.up.weight"],
//               "to": "layers.{layer}.up.weight", "stack": "expert"}],
//    "leave_out": ["layers.{layer}.rotary.{any}"],
//    "others": "keep"}
//
// {word} stands for text without a dot. "join" concatenates tensors along this dimension. "stack"
// makes a new first dimension. The value of the word, from 0, is the index along this dimension.
// "others" applies to names that no rule mentions: "keep" keeps them, "refuse" (the default) makes
// them an error.
//
// "groups" interleaves: each joined tensor is cut into this number of slices, and the target has
// the first slices of all tensors, then the second slices. With "shares", the rule has one source,
// and this source is interleaved: each of its groups has these shares. The target has the first
// shares of all groups, then the second shares. "numbers" (of the map) computes a word from others,
// such as a layer's number from the stage and the number within it: {"layer": {"stage": 8, "local":
// 1}} is 8 * stage + local. docs/guides/reshard.md has the whole form; examples/reshard/ has maps
// of known models.
#pragma once

#include <cstddef>
#include <map>
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

// The place of a source tensor, or of a slice of it, in a target tensor.
struct NamedPart {
  std::size_t source = 0;                 // index of the source tensor
  std::optional<std::size_t> index = {};  // along the target's first dimension, if it is a stack
  std::size_t dim = 0;                    // of the target, along which parts are joined
  std::size_t first = 0;                  // along that dimension
  std::size_t begin = 0;                  // of the slice, along the same dimension of the source
  std::size_t count = 0;                  // of the slice, or of the whole source
};

// A tensor of the engine, and its parts.
struct NamedTarget {
  NamedTensor tensor = {};
  std::vector<NamedPart> parts = {};
  // Lengths of consecutive sections of the joined dimension, such as q, k and v: a layout that cuts
  // this dimension needs these lengths. Empty if nothing is joined, or the target is interleaved.
  std::vector<std::size_t> sections = {};
};

// Describes how one name of the engine is made from names of a checkpoint.
struct NameRule {
  std::vector<std::string> from = {};
  std::string to = {};
  std::size_t join = 0;
  std::size_t groups = 1;
  std::vector<std::size_t> shares = {};  // of a source that is interleaved
  std::string stack = {};                // empty: no new dimension
};
// Words that are sums of other words, each times a factor.
using NameNumbers = std::map<std::string, std::map<std::string, std::size_t>, std::less<>>;

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
  std::vector<NameRule> rules_ = {};
  NameNumbers numbers_ = {};
  std::vector<std::string> left_out_ = {};
  bool keeps_others_ = false;
};

// Local. Compares the result of apply() with all tensors of an engine.
// Errors: usage, listing the names that only one side has, and tensors whose shapes or dtypes
// differ.
UNISONO_EXPORT void check_targets(std::span<const NamedTarget> targets,
                                  std::span<const NamedTensor> engine);

// Local. Returns a part as a tensor for Reshard: the part's source, or a slice of the source, named
// "name[0:512]".
UNISONO_EXPORT NamedTensor tensor_of_part(const NamedPart& part,
                                          std::span<const NamedTensor> sources);

// Local. Returns the source of a part as a target that has only this part. On the source's side,
// pass this target to layout_of_part() and local_part(), with part 0 and the source's layout.
UNISONO_EXPORT NamedTarget source_of_part(const NamedPart& part,
                                          std::span<const NamedTensor> sources);

// Local. Returns the layout of a part whose target has `layout`. If a layout cuts a joined
// dimension, the lengths of the parts are its sections. Errors: usage if the target's layout cuts
// across its parts.
UNISONO_EXPORT MeshLayout layout_of_part(const NamedTarget& target, std::size_t part,
                                         std::span<const NamedTensor> sources,
                                         const MeshLayout& layout);

// The place of a part in a rank's memory of its target.
struct LocalPart {
  std::string target = {};
  std::vector<std::size_t> shape = {};    // of that memory
  std::optional<std::size_t> index = {};  // along the first dimension, if the target is a stack
  std::vector<Range> ranges = {};  // of each dimension; of the first one the index, in a stack
};

// Local. Returns the place of a part; nothing if the rank has no part in its layout.
UNISONO_EXPORT std::optional<LocalPart> local_part(const NamedTarget& target, std::size_t part,
                                                   const MeshLayout& layout, int rank);

// Local. Returns the part's memory. Pass it to Reshard::run() as the tensor of the part.
// Errors: usage if `memory` has another shape.
UNISONO_EXPORT Tensor view_of_part(const LocalPart& part, const Tensor& memory);

}  // namespace unisono::parallel
