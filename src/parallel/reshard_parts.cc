// The parts of named targets: their layouts and memory.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/words.h"
#include "reshard/elements.h"
#include "unisono/error.hpp"
#include "unisono/parallel/reshard_names.hpp"

namespace unisono::parallel {
namespace {

// Returns the elements of a target that a part fills, in the target's coordinates.
ElementRanges region_of(const NamedTarget& target, const NamedPart& part) {
  ElementRanges region;
  for (const std::size_t length : target.tensor.shape) {
    region.push_back({{.first = 0, .count = length}});
  }
  if (part.index) {
    region[0] = {{.first = *part.index, .count = 1}};
  }
  if ((part.dim > 0 || !part.index) && !region.empty()) {
    region[part.dim] = {{.first = part.first, .count = part.count}};
  }
  return region;
}

// Converts elements to the coordinates of the part.
ElementRanges in_part(ElementRanges elements, const NamedPart& part) {
  if (part.first > 0) {
    for (Range& range : elements[part.dim]) {
      range.first -= part.first;
    }
  }
  if (part.index) {
    elements.erase(elements.begin());
  }
  return elements;
}

ElementRanges common_elements(const ElementRanges& a, const ElementRanges& b) {
  ElementRanges both;
  for (std::size_t dim = 0; dim < a.size(); ++dim) {
    both.push_back(common(a[dim], b[dim]));
  }
  return both;
}

bool is_empty(const ElementRanges& elements) {
  return std::ranges::any_of(elements, [](const auto& ranges) { return ranges.empty(); });
}

// Returns the elements at a mesh position. Errors name the tensor.
ElementRanges named_elements_at(const MeshLayout& layout, const NamedTensor& tensor, int position) {
  try {
    return elements_at(layout, tensor.shape, position);
  } catch (const Error& error) {
    throw Error(error.code(),
                "name map: tensor " + in_quotes(tensor.name) + ": " + std::string(error.message()));
  }
}

// Sets the lengths of the ranks' parts on the axes that divide a dimension. Returns false if no
// lengths fit.
bool set_lengths(MeshLayout& layout, std::size_t dim, std::size_t length,
                 const std::vector<ElementRanges>& wanted) {
  std::string axes;
  std::vector<AxisPlacement> placements;
  for (const AxisPlacement& how : layout.placements) {
    if (how.placement.kind == Placement::Kind::shard && how.placement.dim == dim) {
      axes += (axes.empty() ? "" : ",") + how.axis;
    } else {
      placements.push_back(how);
    }
  }
  if (axes.empty()) {
    return false;
  }
  axes = layout.mesh.canonical(axes);
  std::vector<std::size_t> parts(static_cast<std::size_t>(layout.mesh.size(axes)));
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    parts[static_cast<std::size_t>(layout.mesh.coordinate(position, axes))] =
        length_of(wanted[static_cast<std::size_t>(position)][dim]);
  }
  if (std::reduce(parts.begin(), parts.end()) != length) {
    return false;
  }
  placements.push_back(
      {.axis = axes, .placement = Shard(dim), .sections = {}, .parts = std::move(parts)});
  layout.placements = std::move(placements);
  return true;
}

bool gives(const MeshLayout& layout, const std::vector<std::size_t>& shape,
           const std::vector<ElementRanges>& wanted) {
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    const ElementRanges have = elements_at(layout, shape, position);
    const ElementRanges& want = wanted[static_cast<std::size_t>(position)];
    if (have != want && !(is_empty(have) && is_empty(want))) {
      return false;
    }
  }
  return true;
}

}  // namespace

NamedTensor tensor_of_part(const NamedPart& part, std::span<const NamedTensor> sources) {
  NamedTensor tensor = sources[part.source];
  const std::size_t dim = part.dim - (part.index && part.dim > 0 ? 1 : 0);
  if (dim < tensor.shape.size() && tensor.shape[dim] != part.count) {
    tensor.shape[dim] = part.count;
    tensor.name +=
        "[" + std::to_string(part.begin) + ":" + std::to_string(part.begin + part.count) + "]";
  }
  return tensor;
}

NamedTarget source_of_part(const NamedPart& part, std::span<const NamedTensor> sources) {
  return {.tensor = sources[part.source],
          .parts = {{.source = part.source,
                     .dim = part.dim - (part.index && part.dim > 0 ? 1 : 0),
                     .first = part.begin,
                     .begin = part.begin,
                     .count = part.count}}};
}

MeshLayout layout_of_part(const NamedTarget& target, std::size_t part,
                          std::span<const NamedTensor> sources, const MeshLayout& layout) {
  const NamedPart& place = target.parts.at(part);
  const NamedTensor source = tensor_of_part(place, sources);
  const ElementRanges region = region_of(target, place);
  const bool is_whole =
      place.dim >= target.tensor.shape.size() || place.count == target.tensor.shape[place.dim];
  // The layout of the ranks that hold some of the part. The mesh omits axes that divide a stack.
  MeshLayout made{.mesh = layout.mesh};
  std::string cuts_stack;
  bool lacks_sections = false;
  for (const AxisPlacement& how : layout.placements) {
    const bool shards = how.placement.kind == Placement::Kind::shard;
    if (place.index && shards && how.placement.dim == 0) {
      cuts_stack += "," + how.axis + ",";
      continue;
    }
    made.placements.push_back(how);
    lacks_sections =
        lacks_sections || (shards && how.placement.dim == place.dim && target.sections.size() > 1 &&
                           how.sections.empty() && how.parts.empty());
    if (shards && how.placement.dim == place.dim && !is_whole) {
      made.placements.back().sections.clear();
      made.placements.back().parts.clear();
    }
    if (shards && place.index) {
      --made.placements.back().placement.dim;
    }
  }
  std::vector<ElementRanges> wanted;
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    ElementRanges elements =
        common_elements(named_elements_at(layout, target.tensor, position), region);
    if (cuts_stack.empty() || !elements[0].empty()) {
      made.ranks.push_back(layout.rank_at(position));
      wanted.push_back(in_part(std::move(elements), place));
    }
  }
  const auto refuse = [&] {
    std::string lengths;
    for (const std::size_t length : target.sections) {
      lengths += (lengths.empty() ? "sections=" : "+") + std::to_string(length);
    }
    throw Error(ErrorCode::usage, "name map: layout " + in_quotes(layout.text()) + " of " +
                                      in_quotes(target.tensor.name) + " cuts across " +
                                      in_quotes(source.name) +
                                      "\ngive the lengths of its parts as sections: shard(" +
                                      std::to_string(place.dim) + "," +
                                      (lengths.empty() ? "sections=4096+2*1024" : lengths) + ")");
  };
  if (!cuts_stack.empty()) {
    std::string mesh;
    for (const Axis& axis : layout.mesh.axes()) {
      if (cuts_stack.find("," + axis.name + ",") == std::string::npos) {
        mesh += (mesh.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
      }
    }
    made.mesh = MeshShape::parse(mesh.empty() ? "rank=1" : mesh);
    if (static_cast<std::size_t>(made.mesh.ranks()) != made.ranks.size()) {
      refuse();
    }
  }
  const std::size_t dim = place.dim - (place.index && place.dim > 0 ? 1 : 0);
  if (!gives(made, source.shape, wanted) &&
      (is_whole || lacks_sections || !set_lengths(made, dim, source.shape[dim], wanted) ||
       !gives(made, source.shape, wanted))) {
    refuse();
  }
  return made;
}

std::optional<LocalPart> local_part(const NamedTarget& target, std::size_t part,
                                    const MeshLayout& layout, int rank) {
  const NamedPart& place = target.parts.at(part);
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    if (layout.rank_at(position) != rank) {
      continue;
    }
    const ElementRanges held = named_elements_at(layout, target.tensor, position);
    const ElementRanges own = common_elements(held, region_of(target, place));
    if (place.index && own[0].empty()) {
      return std::nullopt;
    }
    LocalPart local{.target = target.tensor.name, .shape = parallel::shape_of(held)};
    for (std::size_t dim = 0; dim < held.size(); ++dim) {
      local.ranges.push_back(
          {.first = own[dim].empty() ? 0 : index_in(held[dim], own[dim].front().first),
           .count = length_of(own[dim])});
    }
    if (place.index) {
      local.index = local.ranges[0].first;
    }
    return local;
  }
  return std::nullopt;
}

Tensor view_of_part(const LocalPart& part, const Tensor& memory) {
  if (memory.shape != part.shape) {
    const Tensor wanted = Tensor::packed(nullptr, memory.dtype, part.shape);
    throw Error(ErrorCode::usage, "name map: the memory of " + in_quotes(part.target) + " is " +
                                      memory.text() + ", and this rank's part is " + wanted.text() +
                                      "\ngive the memory of all its parts");
  }
  Tensor view = memory;
  for (std::size_t dim = 0; dim < part.ranges.size(); ++dim) {
    view = view.slice(dim, part.ranges[dim].first, part.ranges[dim].count);
  }
  if (part.index) {
    view.shape.erase(view.shape.begin());
    view.strides.erase(view.strides.begin());
  }
  return view;
}

}  // namespace unisono::parallel
