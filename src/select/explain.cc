// Implements Communicator::explain().
#include "unisono/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/bytes_text.h"
#include "cost/cost.h"
#include "select/choice.h"
#include "select/planner.h"
#include "select/profile.h"
#include "select/user_schedule.h"

namespace unisono {
namespace {

using Candidate = Explanation::Candidate;

// Formats with three digits: "12.3 us".
std::string time_text(double us) {
  const char* unit = "us";
  if (us >= 999.5) {
    us /= 1000;
    unit = "ms";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f %s", us >= 99.95 ? 0 : us >= 9.995 ? 1 : 2, us, unit);
  return text;
}

std::string padded(std::string text, std::size_t width, bool right) {
  const std::size_t missing = width > text.size() ? width - text.size() : 0;
  return right ? std::string(missing, ' ') + text : text + std::string(missing, ' ');
}

std::string reason_text(const Explanation& explanation) {
  switch (explanation.why) {
    case Explanation::Why::call:
      return "the call requests it";
    case Explanation::Why::option:
      return "UNISONO_ALGORITHM or ConnectOptions::algorithm forces it";
    case Explanation::Why::profile:
      return "the profile " + explanation.profile + " says so";
    case Explanation::Why::model:
      return "the fastest according to a model of these hosts";
    case Explanation::Why::max_error:
      return "the call's max_error allows encoded moves between hosts, which round each input and "
             "the result at most once";
    case Explanation::Why::built_in:
      return explanation.profile.empty() ? "the built-in choice, because there is no profile"
                                         : "the built-in choice, because the profile " +
                                               explanation.profile + " has no choice for this call";
  }
  return {};
}

// Returns the algorithms to list: each with its default parameters, those in the profile, and the
// chosen one (empty: the choice is not an algorithm).
std::vector<std::string> names_of(Collective collective, const cost::Machine* machine,
                                  const std::string& chosen) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective == collective) {
      add(std::string(algorithm->name));
    }
  }
  const std::string prefix = std::string(to_string(collective)) + "/";
  if (machine != nullptr) {
    for (const auto& [group, fitted] : machine->groups()) {
      if (group.starts_with(prefix)) {
        add(group.substr(prefix.size()));
      }
    }
  }
  if (!chosen.empty()) {
    add(chosen);
  }
  return names;
}

}  // namespace

std::string_view to_string(Explanation::Why why) {
  switch (why) {
    case Explanation::Why::call:
      return "call";
    case Explanation::Why::option:
      return "option";
    case Explanation::Why::profile:
      return "profile";
    case Explanation::Why::built_in:
      return "built_in";
    case Explanation::Why::model:
      return "model";
    case Explanation::Why::max_error:
      return "max_error";
  }
  return "?";
}

std::string Explanation::text() const {
  std::string text = std::string(to_string(collective)) + "  " + std::to_string(ranks) +
                     (ranks == 1 ? " rank  " : " ranks  ") + format_bytes(bytes) + "\n\n";
  std::size_t width = 9;
  for (const Candidate& candidate : candidates) {
    width = std::max(width, candidate.algorithm.size());
  }
  const auto line = [&](const std::string& name, const std::string& steps, const std::string& sent,
                        const std::string& time, bool is_chosen) {
    text += padded(name, width, false) + padded(steps, 7, true) + padded(sent, 11, true) +
            padded(time, 11, true) + (is_chosen ? "  <- chosen\n" : "\n");
  };
  line("algorithm", "steps", "sent/rank", "predicted", false);
  for (const Candidate& candidate : candidates) {
    line(candidate.algorithm, std::to_string(candidate.steps), format_bytes(candidate.sent_bytes),
         candidate.predicted_us < 0 ? "-" : time_text(candidate.predicted_us), candidate.chosen);
  }
  for (const Unable& one : unable) {
    text += one.algorithm + " " + one.reason + "\n";
  }
  return text + "\nwhy  " + reason_text(*this) + "\n";
}

namespace comm {

Explanation Planner::explain(const Call& call) {
  check_shape(call);
  const Choice choice = choose(call);
  const Collective collective = plain_form(call.collective);
  // In all_to_all_v each rank knows only its own sizes.
  double bytes = static_cast<double>(moved_size(call));
  if (const auto known = vector_bytes(call, caller_.ranks)) {
    bytes = *known;
  } else {
    std::size_t elements = 0;
    for (const std::size_t count : call.counts) {
      elements += count;
    }
    bytes *= static_cast<double>(elements);
  }
  Explanation result{.collective = call.collective,
                     .ranks = caller_.ranks,
                     .bytes = bytes,
                     .chosen = choice.name,
                     .why = choice.why,
                     .profile = profile_.path(),
                     .candidates = {},
                     .unable = {}};
  const cost::Machine* machine = profile_.machine();
  const bool listed = choice.user == nullptr && choice.encoded == nullptr;
  if (!listed) {
    const cost::Traffic moved = cost::traffic(
        choice.encoded != nullptr ? *choice.encoded->schedule : choice.user->schedule, bytes);
    result.candidates.push_back({.algorithm = choice.name,
                                 .steps = moved.steps,
                                 .sent_bytes = moved.sent_bytes,
                                 .predicted_us = -1,
                                 .chosen = true});
  }
  for (const std::string& name :
       names_of(collective, machine, listed ? choice.name : std::string())) {
    const Algorithm& algorithm = *find_algorithm(collective, name);
    const Shape shape{.ranks = caller_.ranks,
                      .root = choice.shape.root,
                      .parameters = parse_parameters(algorithm, name)};
    if (std::string reason = inability(call, algorithm, shape); !reason.empty()) {
      result.unable.push_back({.algorithm = name, .reason = std::move(reason)});
      continue;
    }
    const cost::Traffic moved = cost::traffic(build_schedule(algorithm, shape), bytes);
    const bool known = machine != nullptr && machine->knows(collective, name);
    result.candidates.push_back(
        {.algorithm = name,
         .steps = moved.steps,
         .sent_bytes = moved.sent_bytes,
         .predicted_us = known ? 1e6 * machine->time_s(collective, name, caller_.ranks, bytes) : -1,
         .chosen = name == choice.name});
  }
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.predicted_us >= 0 &&
                            (b.predicted_us < 0 || a.predicted_us < b.predicted_us);
                   });
  return result;
}

}  // namespace comm
}  // namespace unisono
