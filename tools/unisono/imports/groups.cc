// Matches the groups in the files of several ranks. Each rank names its groups independently.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rank_list.h"
#include "imports/imports.h"

namespace unisono::cli {
namespace {

using Members = std::vector<int>;

void rename(ImportedRank& rank, const std::string& from, const std::string& to) {
  auto node = rank.groups.extract(from);
  node.key() = to;
  rank.groups.insert(std::move(node));
  rank.axes.emplace(to, from);
  if (auto axis = rank.axes.extract(from)) {
    rank.axes[to] = axis.mapped();
  }
  for (ImportedCall& call : rank.calls) {
    call.group = call.group == from ? to : call.group;
  }
}

// Groups of one name on several ranks are one group if they have the same members.
void separate_same_names(std::vector<ImportedRank>& ranks) {
  std::map<std::string, std::set<Members>> members;
  for (const ImportedRank& rank : ranks) {
    for (const auto& [name, list] : rank.groups) {
      members[name].insert(list);
    }
  }
  members.erase("world");
  std::erase_if(members, [](const auto& group) { return group.second.size() < 2; });
  for (ImportedRank& rank : ranks) {
    for (const auto& [name, lists] : members) {
      if (const auto own = rank.groups.find(name); own != rank.groups.end()) {
        rename(rank, name, fmt::format("{} ({})", name, ranks_text(own->second)));
      }
    }
  }
}

// Separates groups by backend: annotations do not contain their group, and each backend numbers its
// own calls.
void separate_backends(std::vector<ImportedRank>& ranks) {
  std::set<std::string> backends;
  for (const ImportedRank& rank : ranks) {
    for (const ImportedCall& call : rank.calls) {
      if (call.group == "world" && !call.backend.empty()) {
        backends.insert(call.backend);
      }
    }
  }
  if (backends.size() < 2) {
    return;
  }
  const auto device = std::ranges::find_if(backends, is_device_backend);
  const std::string first = device == backends.end() ? *backends.begin() : *device;
  for (ImportedRank& rank : ranks) {
    const Members world = rank.groups["world"];
    for (ImportedCall& call : rank.calls) {
      if (call.group == "world" && !call.backend.empty() && call.backend != first) {
        call.group = fmt::format("world ({})", call.backend);
        rank.groups[call.group] = world;
        rank.account.assume(fmt::format(
            "{}'s calls are in the group of all ranks, and {}'s in another", call.backend, first));
      }
    }
  }
}

// If no file lists the members of a group, its members are the ranks that call it.
void list_unlisted(std::vector<ImportedRank>& ranks) {
  std::map<std::string, std::set<int>> callers;
  std::set<std::string> listed = {"world"};
  for (const ImportedRank& rank : ranks) {
    for (const auto& [name, list] : rank.groups) {
      listed.insert(name);
    }
    for (const ImportedCall& call : rank.calls) {
      callers[call.group].insert(rank.rank);
    }
  }
  for (const auto& [name, of_it] : callers) {
    for (ImportedRank& rank : ranks) {
      if (!listed.contains(name) && of_it.contains(rank.rank)) {
        rank.groups[name] = Members(of_it.begin(), of_it.end());
        rank.account.assume(fmt::format(
            "group {} consists of the ranks that call it, because no file lists its members",
            name));
      }
    }
  }
}

}  // namespace

void settle_groups(std::vector<ImportedRank>& ranks) {
  separate_backends(ranks);
  separate_same_names(ranks);
  list_unlisted(ranks);
}

}  // namespace unisono::cli
