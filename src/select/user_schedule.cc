#include "select/user_schedule.h"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "schedule/json.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::usage,
              what + "\n`unisono verify FILE` lists everything that is wrong with it");
}

std::string shape_text(Collective collective, int ranks, int root) {
  return std::string(to_string(collective)) + " of " + std::to_string(ranks) + " ranks" +
         (is_rooted(collective) ? " from root " + std::to_string(root) : "");
}

}  // namespace

bool is_user_schedule(std::string_view algorithm) {
  return algorithm.ends_with(".json");
}

UserSchedule load_user_schedule(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad() || text.empty()) {
    throw Error(ErrorCode::usage, "cannot read the schedule " + path +
                                      "\ncheck that it exists, is not empty and can be read; "
                                      "relative paths start at the ranks' working folder");
  }
  Parsed<Schedule> parsed = parse_schedule_json(text);
  if (!parsed) {
    refuse(path + place_in(text, parsed.position) + ": " + parsed.message);
  }
  const std::vector<Finding> findings = verify(*parsed.value);
  if (!findings.empty()) {
    refuse(path + " is not a valid schedule: " + to_text(findings.front()) +
           (findings.size() > 1 ? ", and " + std::to_string(findings.size() - 1) + " more" : ""));
  }
  Hash hash;
  hash.add(std::string_view(text));
  return {.schedule = std::move(*parsed.value),
          .name = path.substr(path.rfind('/') + 1),
          .content = hash.value()};
}

std::string refusal(const UserSchedule& user, Collective collective, int ranks, int root) {
  const Schedule& schedule = user.schedule;
  const bool fits = schedule.collective == collective && schedule.ranks == ranks &&
                    (!is_rooted(collective) || schedule.root == root);
  return fits ? ""
              : user.name + " is for " +
                    shape_text(schedule.collective, schedule.ranks, schedule.root) + ", not for " +
                    shape_text(collective, ranks, root);
}

}  // namespace unisono::comm
