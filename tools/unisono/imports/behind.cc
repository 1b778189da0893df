// Diagnoses a hanging job from the order of its calls alone.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/rank_list.h"
#include "imports/imports.h"

namespace unisono::cli {
namespace {

struct Calls {
  std::map<int, std::vector<const ImportedCall*>> of = {};  // by rank
  std::size_t most() const {
    const auto count = [](const auto& one) { return one.second.size(); };
    return count(*std::ranges::max_element(of, {}, count));
  }
};

std::string called(const ImportedCall& call) {
  return fmt::format("{} of {:.0f} bytes", call.collective, call.bytes);
}

// "world, call 3: rank 0 all_reduce of 4 bytes, rank 1 broadcast of 4 bytes"
std::optional<std::string> first_difference(const std::string& group, const Calls& calls) {
  for (std::size_t number = 0; number < calls.most(); ++number) {
    const ImportedCall* one = nullptr;
    int rank_of_one = -1;
    for (const auto& [rank, list] : calls.of) {
      const ImportedCall* const other = number < list.size() ? list[number] : nullptr;
      if (one != nullptr && other != nullptr &&
          (one->collective != other->collective || one->bytes != other->bytes)) {
        return fmt::format("{}, call {}: rank {} {}, rank {} {}", group, number + 1, rank_of_one,
                           called(*one), rank, called(*other));
      }
      rank_of_one = one == nullptr ? rank : rank_of_one;
      one = one == nullptr ? other : one;
    }
  }
  return std::nullopt;
}

std::string behind(const std::string& group, const Calls& calls) {
  std::vector<int> late;
  std::size_t fewest = calls.most();
  for (const auto& [rank, list] : calls.of) {
    fewest = std::min(fewest, list.size());
  }
  for (const auto& [rank, list] : calls.of) {
    if (list.size() == fewest) {
      late.push_back(rank);
    }
  }
  return fmt::format("{}: {} {} begun {} of {} calls", group, ranks_text(late),
                     late.size() == 1 ? "has" : "have", fewest, calls.most());
}

}  // namespace

std::vector<std::string> who_is_behind(const std::vector<ImportedRank>& ranks) {
  std::map<std::string, Calls> groups;
  for (const ImportedRank& rank : ranks) {
    for (const auto& [name, members] : rank.groups) {
      if (std::ranges::find(members, rank.rank) != members.end()) {
        groups[name].of[rank.rank];
      }
    }
    for (const ImportedCall& call : rank.calls) {
      groups[call.group].of[rank.rank].push_back(&call);
    }
  }
  std::vector<std::string> all;
  for (const auto& [name, calls] : groups) {
    if (const auto difference = first_difference(name, calls)) {
      all.push_back(*difference);
    } else if (std::ranges::any_of(calls.of, [&calls](const auto& one) {
                 return one.second.size() < calls.most();
               })) {
      all.push_back(behind(name, calls));
    }
  }
  return all;
}

}  // namespace unisono::cli
