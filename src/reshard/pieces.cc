#include "reshard/pieces.h"

#include <algorithm>
#include <map>

#include "base/words.h"
#include "reshard/elements.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

// One dimension of all ranks' elements, with its positions grouped into classes that the same ranks
// hold.
struct Dimension {
  std::vector<std::vector<Range>> classes = {};
  std::vector<std::vector<bool>> has = {};  // per distinct list, per class
  std::vector<std::size_t> list = {};       // per rank, on both sides
};

Dimension classify(const std::vector<ElementRanges>& all, std::size_t dim) {
  Dimension dimension;
  std::vector<const std::vector<Range>*> lists;
  std::vector<std::size_t> bounds;
  for (const ElementRanges& elements : all) {
    const std::vector<Range>& ranges = elements[dim];
    const auto known =
        std::find_if(lists.begin(), lists.end(), [&](const auto* list) { return *list == ranges; });
    dimension.list.push_back(static_cast<std::size_t>(known - lists.begin()));
    if (known == lists.end()) {
      lists.push_back(&ranges);
      for (const Range& range : ranges) {
        bounds.push_back(range.first);
        bounds.push_back(range.first + range.count);
      }
    }
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  dimension.has.resize(lists.size());
  std::map<std::vector<bool>, std::size_t> known;
  std::vector<std::size_t> next(lists.size(), 0);  // first range that ends after the bound
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::vector<bool> having(lists.size());
    for (std::size_t k = 0; k < lists.size(); ++k) {
      const std::vector<Range>& ranges = *lists[k];
      while (next[k] < ranges.size() &&
             ranges[next[k]].first + ranges[next[k]].count <= bounds[i]) {
        ++next[k];
      }
      having[k] = next[k] < ranges.size() && ranges[next[k]].first <= bounds[i];
    }
    const auto [place, added] = known.try_emplace(having, dimension.classes.size());
    if (added) {
      dimension.classes.emplace_back();
      for (std::size_t k = 0; k < lists.size(); ++k) {
        dimension.has[k].push_back(having[k]);
      }
    }
    append(dimension.classes[place->second],
           {.first = bounds[i], .count = bounds[i + 1] - bounds[i]});
  }
  return dimension;
}

std::vector<ElementRanges> all_elements(const ReshardTensor& tensor) {
  std::vector<ElementRanges> all;
  for (const MeshLayout* layout : {&tensor.from, &tensor.to}) {
    for (int position = 0; position < layout->mesh.ranks(); ++position) {
      all.push_back(elements_at(*layout, tensor.shape, position));
    }
  }
  return all;
}

}  // namespace

std::vector<std::size_t> summands_of(const MeshLayout& layout) {
  std::vector<std::size_t> summands(static_cast<std::size_t>(layout.mesh.ranks()), 0);
  for (const AxisPlacement& how : layout.placements) {
    if (how.placement.kind == Placement::Kind::partial) {
      for (int position = 0; position < layout.mesh.ranks(); ++position) {
        std::size_t& summand = summands[static_cast<std::size_t>(position)];
        summand = summand * static_cast<std::size_t>(layout.mesh.size(how.axis)) +
                  static_cast<std::size_t>(layout.mesh.coordinate(position, how.axis));
      }
    }
  }
  return summands;
}

ReduceOp summation_of(const MeshLayout& layout) {
  const AxisPlacement* first = nullptr;
  for (const AxisPlacement& how : layout.placements) {
    if (how.placement.kind != Placement::Kind::partial) {
      continue;
    }
    first = first == nullptr ? &how : first;
    if (how.placement.op != first->placement.op || how.placement.op == ReduceOp::avg) {
      throw Error(ErrorCode::usage, "layout " + in_quotes(layout.text()) + ": axis " + how.axis +
                                        " is " + to_string(how.placement) +
                                        "\nall partial axes need one op: sum, prod, min or max");
    }
  }
  return first == nullptr ? ReduceOp::sum : first->placement.op;
}

std::string pieces_key(const ReshardTensor& tensor) {
  std::string key = tensor.from.text() + "|" + tensor.to.text();
  for (const std::size_t size : tensor.shape) {
    key += "|" + std::to_string(size);
  }
  return key;
}

std::vector<ReshardPiece> pieces_of(const ReshardTensor& tensor) {
  const std::vector<ElementRanges> all = all_elements(tensor);
  const auto sources = static_cast<std::size_t>(tensor.from.mesh.ranks());
  const std::vector<std::size_t> summands = summands_of(tensor.from);
  const std::size_t groups = *std::max_element(summands.begin(), summands.end()) + 1;
  std::vector<Dimension> dimensions;
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    dimensions.push_back(classify(all, dim));
    if (dimensions.back().classes.empty()) {
      return {};  // no elements
    }
  }
  std::vector<ReshardPiece> pieces;
  std::vector<std::size_t> at(dimensions.size(), 0);
  for (;;) {
    ReshardPiece piece{.holders = std::vector<std::vector<int>>(groups)};
    const auto has = [&](std::size_t who) {
      for (std::size_t dim = 0; dim < at.size(); ++dim) {
        if (!dimensions[dim].has[dimensions[dim].list[who]][at[dim]]) {
          return false;
        }
      }
      return true;
    };
    for (std::size_t who = sources; who < all.size(); ++who) {
      if (has(who)) {
        piece.targets.push_back(tensor.to.rank_at(static_cast<int>(who - sources)));
      }
    }
    if (!piece.targets.empty()) {
      for (std::size_t who = 0; who < sources; ++who) {
        if (has(who)) {
          piece.holders[summands[who]].push_back(tensor.from.rank_at(static_cast<int>(who)));
        }
      }
      for (std::size_t dim = 0; dim < at.size(); ++dim) {
        piece.elements.push_back(dimensions[dim].classes[at[dim]]);
      }
      for (const auto& holders : piece.holders) {
        if (holders.empty()) {
          throw Error(ErrorCode::usage, "no source rank has the elements " +
                                            elements_text(piece.elements) + ", which rank " +
                                            std::to_string(piece.targets.front()) +
                                            " needs\nlet the source's placements cover the tensor");
        }
      }
      pieces.push_back(std::move(piece));
    }
    std::size_t dim = at.size();
    while (dim > 0 && ++at[dim - 1] == dimensions[dim - 1].classes.size()) {
      at[--dim] = 0;
    }
    if (dim == 0) {
      return pieces;
    }
  }
}

}  // namespace unisono::parallel
