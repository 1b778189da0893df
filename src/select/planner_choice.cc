// Chooses the algorithm of a call: the user's choice, else the measured or simulated choice, else
// the built-in choice.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/collectives.h"
#include "select/choice.h"
#include "select/planner.h"
#include "select/profile.h"
#include "select/user_schedule.h"

namespace unisono::comm {
namespace {

// Below this size sums stay exact if only the communicator has a max_error.
constexpr double kLeastEncodedBytes = 16 << 10;

}  // namespace

Planner::Choice Planner::choose_user(const Call& call, const std::string& path) {
  std::shared_ptr<const UserSchedule>& user = user_schedules_[path];
  if (user == nullptr) {
    user = std::make_shared<const UserSchedule>(load_user_schedule(path));
  }
  const int root = is_rooted(call.collective) ? call.root : 0;
  const std::string why = refusal(*user, call.collective, caller_.ranks, root);
  if (!why.empty()) {
    refuse(call, why, "a schedule file is for one collective, number of ranks and root");
  }
  return {.shape = {.ranks = caller_.ranks, .root = root}, .name = user->name, .user = user};
}

std::string_view Planner::profiled(const Call& call, bool reproducible) const {
  const auto bytes = vector_bytes(call, caller_.ranks);
  const cost::Choice* found =
      bytes ? profile_.choices().find(plain_form(call.collective), caller_.ranks, *bytes) : nullptr;
  if (found == nullptr || found->algorithm.empty()) {
    return {};
  }
  const Algorithm* algorithm = find_algorithm(call.collective, found->algorithm);
  if (reproducible && (algorithm == nullptr || !algorithm->rank_order)) {
    return {};
  }
  return if_it_serves(call, found->algorithm);
}

bool Planner::is_reproducible(const Call& call) const {
  return named(call) == kReproducible;
}

int Planner::most_threads(const Call& call, int threads) const {
  const auto bytes = hosts_.several() ? std::nullopt : vector_bytes(call, caller_.ranks);
  const cost::ThreadChoice* found =
      bytes ? profile_.choices().find_threads(plain_form(call.collective), caller_.ranks, *bytes)
            : nullptr;
  return found == nullptr ? threads : std::min(threads, found->threads);
}

std::string_view Planner::modelled(const Call& call, bool reproducible) {
  const auto bytes = vector_bytes(call, caller_.ranks);
  return bytes
             ? if_it_serves(call, hosts_.choose(plain_form(call.collective), *bytes, reproducible))
             : std::string_view();
}

// A choice made for other rank counts or for plain forms need not be valid here.
std::string_view Planner::if_it_serves(const Call& call, const std::string& name) const {
  if (name.empty()) {
    return {};
  }
  const Algorithm* algorithm = find_algorithm(call.collective, name);
  if (algorithm == nullptr) {
    return {};
  }
  const Shape shape{.ranks = caller_.ranks,
                    .root = is_rooted(call.collective) ? call.root : 0,
                    .parameters = parse_parameters(*algorithm, name)};
  return inability(call, *algorithm, shape).empty() ? std::string_view(name) : std::string_view();
}

std::string Planner::inability(const Call& call, const Algorithm& algorithm,
                               const Shape& shape) const {
  if (!can_serve(algorithm, shape)) {
    return "does not support " + std::to_string(caller_.ranks) + " ranks (" +
           std::string(algorithm.limits) + ")";
  }
  return is_v_form(call.collective) && !algorithm.allows_v ? "does not support the v-form" : "";
}

std::string_view Planner::named(const Call& call) const {
  const auto forced = forced_.find(plain_form(call.collective));
  return !call.algorithm.empty() || forced == forced_.end() ? call.algorithm
                                                            : std::string_view(forced->second);
}

// Refuses a call whose own max_error is not possible. The communicator's default is only ignored in
// that case.
void Planner::check_max_error(const Call& call) const {
  if (detail::has_own_max_error(call)) {
    if (const Refused refused = refusal_of_max_error(call, call.max_error); !refused.what.empty()) {
      refuse(call, refused.what, refused.hint);
    }
  }
}

std::optional<Planner::Choice> Planner::choose_encoded(const Call& call) {
  Refused refused;
  if (detail::has_own_max_error(call)) {
    const auto choice = try_encoded(call, call.max_error, refused);
    if (!choice.has_value()) {
      refuse(call, refused.what, refused.hint);
    }
    return choice;
  }
  // Data that is only moved arrives unchanged unless the call asks for encoding. Short sums stay
  // exact too, because their messages cost more than their bytes.
  const bool asked = call.max_error == kInheritedMaxError && max_error_ != 0 &&
                     reduces(call.collective) &&
                     vector_bytes(call, caller_.ranks).value_or(0) >= kLeastEncodedBytes;
  return asked && refusal_of_max_error(call, max_error_).what.empty()
             ? try_encoded(call, max_error_, refused)
             : std::nullopt;
}

// Returns the named algorithm, if the proof lets it be encoded; else the fastest algorithm that can
// be.
std::optional<Planner::Choice> Planner::try_encoded(const Call& call, double max_error,
                                                    Refused& refused) {
  const std::string_view name = named(call);
  if (has_fixed_order(name)) {
    refused = {
        "a reproducible result cannot be encoded, because its bits must not depend on the hosts",
        "remove max_error, or \"" + std::string(name) + "\""};
    return std::nullopt;
  }
  const MoveCode code = code_for(max_error);
  Choice choice;
  if (name.empty()) {
    choice.shape = {.ranks = caller_.ranks, .root = is_rooted(call.collective) ? call.root : 0};
    choice.why = Explanation::Why::max_error;
    choice.encoded = hosts_.choose_encoded(
        {.collective = call.collective, .root = choice.shape.root, .code = code},
        vector_bytes(call, caller_.ranks).value_or(0));
  } else {
    choice = choose_named(call, name);
    choice.why = call.algorithm.empty() ? Explanation::Why::option : Explanation::Why::call;
    choice.encoded = &encode(choice, code);
  }
  if (choice.encoded == nullptr || choice.encoded->schedule == nullptr) {
    const bool is_named = choice.encoded != nullptr;
    refused =
        is_named
            ? Refused{choice.name + " cannot be encoded between hosts: " + choice.encoded->why_not,
                      "remove the algorithm or the max_error"}
            : Refused{"no algorithm of " + std::string(to_string(call.collective)) +
                          " can be encoded between these hosts",
                      "remove max_error"};
    return std::nullopt;
  }
  choice.name = choice.encoded->title;
  return choice;
}

const cost::EncodedAlgorithm& Planner::encode(const Choice& choice, MoveCode code) {
  std::string name = choice.name;
  name += choice.user == nullptr ? "" : "#" + std::to_string(choice.user->content);
  const Collective collective =
      choice.user != nullptr ? choice.user->schedule.collective : choice.algorithm->collective;
  const std::string key = std::string(to_string(collective)) + "/" + name + "/" +
                          std::to_string(choice.shape.root) + "+" + std::string(to_string(code));
  const auto [entry, fresh] = encoded_.try_emplace(key);
  if (fresh) {
    entry->second = cost::encode_proved(choice.user != nullptr
                                            ? choice.user->schedule
                                            : build_schedule(*choice.algorithm, choice.shape),
                                        choice.name, hosts_.hosts(), code);
  }
  return entry->second;
}

Planner::Choice Planner::choose(const Call& call) {
  if (hosts_.several()) {
    if (auto encoded = choose_encoded(call)) {
      return *std::move(encoded);
    }
  }
  using Why = Explanation::Why;
  std::string_view name = named(call);
  Why why = call.algorithm.empty() ? Why::option : Why::call;
  const bool reproducible = is_reproducible(call);
  if (name.empty() || reproducible) {
    const bool in_order = reproducible && reduces(call.collective);
    Why found = hosts_.several() ? Why::model : Why::profile;
    name = hosts_.several() ? modelled(call, in_order) : profiled(call, in_order);
    if (name.empty()) {
      found = Why::built_in;
      name = default_algorithm(call.collective, caller_.ranks, call.count * moved_size(call),
                               in_order);
    }
    why = reproducible ? why : found;
  }
  Choice choice = choose_named(call, name);
  choice.why = why;
  return choice;
}

Planner::Choice Planner::choose_named(const Call& call, std::string_view name) {
  if (is_user_schedule(name)) {
    return choose_user(call, std::string(name));
  }
  const Algorithm* algorithm = find_algorithm(call.collective, name);
  if (algorithm == nullptr) {
    refuse(call, unfit_algorithm(call.collective, name),
           "there are: " + list_algorithms(call.collective));
  }
  const Shape shape{.ranks = caller_.ranks,
                    .root = is_rooted(call.collective) ? call.root : 0,
                    .parameters = parse_parameters(*algorithm, name)};
  if (const std::string reason = inability(call, *algorithm, shape); !reason.empty()) {
    refuse(call, std::string(name) + " " + reason,
           "there are: " + list_algorithms(call.collective));
  }
  return {.algorithm = algorithm, .shape = shape, .name = full_name(*algorithm, shape)};
}

}  // namespace unisono::comm
