#include "network_model/simulator/workload_groups.h"

#include <numeric>
#include <utility>

#include "base/words.h"

namespace unisono::network_model {

WorkloadGroups::WorkloadGroups(const JsonNode& document, int ranks) : ranks_(ranks), met_(ranks) {
  const auto groups = document.find("groups");
  for (std::size_t i = 0; groups && i < groups->keys().size(); ++i) {
    named_.emplace(groups->keys()[i], read(groups->member(i)));
  }
}

Family WorkloadGroups::of(const JsonNode& item) {
  const auto group = item.find("group");
  if (!group) {
    Family all(1, std::vector<int>(static_cast<std::size_t>(ranks_)));
    std::iota(all[0].begin(), all[0].end(), 0);
    return all;
  }
  if (!group->is(JsonValue::Kind::text)) {
    return family_of(read(*group));
  }
  const auto found = named_.find(group->text());
  if (found == named_.end()) {
    group->fail("there is no group " + in_quotes(group->text()));
  }
  return family_of(found->second);
}

WorkloadGroups::Groups WorkloadGroups::read(const JsonNode& groups) {
  if (groups.is(JsonValue::Kind::object)) {
    return rule_of(groups);
  }
  Family family;
  const bool is_family = groups.size() > 0 && groups.item(0).is(JsonValue::Kind::array);
  for (std::size_t i = 0; i < (is_family ? groups.size() : 1); ++i) {
    family.push_back(ranks_of(is_family ? groups.item(i) : groups));
  }
  for (const std::vector<int>& group : family) {
    met_.remove(group);
  }
  return family;
}

GroupRule WorkloadGroups::rule_of(const JsonNode& node) const {
  node.allow_only({"size", "stride"});
  const auto size = static_cast<int>(node.at("size").whole(1, ranks_));
  const auto given = node.find("stride");
  const auto stride = given ? static_cast<int>(given->whole(1, ranks_)) : 1;
  if (ranks_ % (std::int64_t{size} * stride) != 0) {
    node.fail("groups of " + std::to_string(size) + " with stride " + std::to_string(stride) +
              " do not divide " + std::to_string(ranks_) + " ranks");
  }
  return {.size = size, .stride = stride};
}

Family WorkloadGroups::family_of(const Groups& groups) const {
  if (const auto* family = std::get_if<Family>(&groups)) {
    return *family;
  }
  const auto [size, stride] = std::get<GroupRule>(groups);
  Family family;
  for (int first = 0; first < ranks_; first += size * stride) {
    for (int shift = 0; shift < stride; ++shift) {
      std::vector<int>& group = family.emplace_back();
      for (int i = 0; i < size; ++i) {
        group.push_back(first + shift + i * stride);
      }
    }
  }
  return family;
}

std::vector<int> WorkloadGroups::ranks_of(const JsonNode& list) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode entry = list.item(i);
    const auto rank = static_cast<int>(entry.whole(0, ranks_ - 1));
    if (!met_.add(rank)) {
      entry.fail("rank " + std::to_string(rank) + " comes twice");
    }
    ranks.push_back(rank);
  }
  if (ranks.empty()) {
    list.fail("a group needs at least one rank");
  }
  return ranks;
}

}  // namespace unisono::network_model
