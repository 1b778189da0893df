#include "record/replay_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "record/numbers.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNoMember = "of a rank that its group does not have";
constexpr int kMostRanks = 65536;
constexpr double kGiB = 1073741824;
constexpr const char* kOlder = "of an earlier version, which did not record data types";

bool are_ranks(std::vector<int> members, int ranks) {
  std::sort(members.begin(), members.end());
  return !members.empty() && members.front() >= 0 && members.back() < ranks &&
         std::adjacent_find(members.begin(), members.end()) == members.end();
}

// Returns true if `count` is the length of one part of the vector.
bool is_in_parts(Collective collective) {
  return cut_of(collective) != VectorCut::none && !is_v_form(collective);
}

// Returns the count as in Call, from the longer buffer of a rank.
std::size_t count_of(const RecordedCall& call, bool is_root, std::uint64_t bytes) {
  const Collective collective = call.call.collective;
  const bool has_all = is_in_parts(collective) && (is_root || !is_rooted(collective));
  return bytes / size_of(call.call.dtype) / (has_all ? call.members.size() : 1);
}

// Returns the memory that all ranks need together: at most their input and output, the same again
// in messages and scratch, and, for each pair of ranks, lanes and the schedule's data.
double bytes_needed(const RecordedCall& call) {
  constexpr double kPair = 512;
  const double ranks = call.shape.ranks;
  const Collective collective = call.call.collective;
  const bool has_all = is_in_parts(collective) && !is_rooted(collective);
  const double vector =
      static_cast<double>(call.call.count) * static_cast<double>(size_of(call.call.dtype));
  return ranks * ranks * kPair + 4 * ranks * vector * (has_all ? ranks : 1);
}

double bytes_of_host() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

int RecordedCall::member(int world_rank) const {
  const auto found = std::find(members.begin(), members.end(), world_rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

std::string RecordedCall::label() const {
  return fmt::format("{} #{} {}", group, number, to_string(call.collective));
}

void RecordedCall::make_run() {
  const Algorithm& found = *find_algorithm(call.collective, algorithm);
  run = std::make_unique<engine::ReplayedOperation>(build_schedule(found, shape), call);
}

RecordedCalls::RecordedCalls(const ordered_json& trace) : trace_(trace), ops_(trace.at("ops")) {
  std::map<std::string, std::vector<int>> groups;
  const ordered_json& names = trace.at("groups").at("name");
  for (std::size_t i = 0; i < names.size(); ++i) {
    groups[names[i]] = ranks_of(trace["groups"].at("ranks").at(i), "/groups/ranks");
  }
  const auto ranks = static_cast<int>(whole_of(trace.at("ranks"), "/ranks", 1, kMostRanks));
  for (std::size_t row = 0; row < ops_.at("rank").size(); ++row) {
    const auto group = ops_.at("group").at(row).get<std::string>();
    const auto number = static_cast<std::uint64_t>(whole_at(trace, "ops", "number", row));
    const int world_rank = rank_at(trace, "ops", "rank", row);
    RecordedCall& call = calls_[{group, number}];
    call.group = group;
    call.number = number;
    call.members = groups.at(group);
    const int rank = call.member(world_rank);
    if (!are_ranks(call.members, ranks)) {
      call.left_out = "of a group whose members are not ranks of the recording";
    } else if (rank < 0) {
      call.left_out = kNoMember;
    } else if (call.parts.contains(rank)) {
      call.left_out = "that a rank has twice";
    }
    if (!call.left_out.empty()) {
      rows_.push_back({});
      continue;
    }
    const ordered_json& end = ops_.at("end_us").at(row);
    RecordedCall::Part part{.row = row, .begin_us = ops_.at("start_us").at(row).get<double>()};
    part.end_us = end.is_null() ? part.end_us : end.get<double>();
    call.parts[rank] = part;
    rows_.push_back({.call = &call, .rank = rank});
    auto& latest = latest_[{group, world_rank}];
    latest = std::max(latest, number);
  }
  read_peers();
  for (auto& [key, call] : calls_) {
    if (call.left_out.empty()) {
      call.left_out = prepare(call);
    }
    call.open = call.parts.size();
  }
}

// Finds the peers in the events. All collectives of a group use the same lanes.
void RecordedCalls::read_peers() {
  const ordered_json& events = trace_.at("events");
  for (std::size_t i = 0; i < events.at("op").size(); ++i) {
    RecordedCall* const call = rows_.at(count_at(trace_, "events", "op", i)).call;
    if (call == nullptr) {
      continue;
    }
    const ordered_json& peer = events.at("peer").at(i);
    if (!peer.is_null() && call->member(rank_at(trace_, "events", "peer", i)) < 0) {
      call->left_out = kNoMember;
    } else if (peer.is_null() && events.at("kind").at(i) == "send") {
      multicast_[call->group] = true;
    }
  }
}

// Returns why the call cannot be replayed; empty: it can.
std::string RecordedCalls::prepare(RecordedCall& call) const {
  const std::size_t first = call.parts.begin()->second.row;
  const auto text = [&](const char* column) {
    const ordered_json& value = ops_.at(column).at(first);
    return value.is_string() ? value.get<std::string>() : "";
  };
  if (!ops_.contains("dtype")) {
    return kOlder;
  }
  for (int rank = 0; rank < static_cast<int>(call.members.size()); ++rank) {
    if (!call.parts.contains(rank) && has_dropped(call, rank)) {
      return "before the first event that all ranks kept";
    }
  }
  for (const char* column : {"collective", "algorithm", "root", "dtype", "op"}) {
    for (const auto& [rank, part] : call.parts) {
      if (ops_.at(column).at(part.row) != ops_[column].at(first)) {
        return fmt::format("whose ranks do not have the same {}", column);
      }
    }
  }
  const auto collective = parse_collective(text("collective"));
  const auto dtype = parse_dtype(text("dtype"));
  if (!collective || !dtype) {
    return kOlder;
  }
  if (is_v_form(*collective)) {
    return "with a count for each rank, which is not recorded";
  }
  call.call.collective = *collective;
  call.call.dtype = *dtype;
  call.call.op = parse_reduce_op(text("op")).value_or(ReduceOp::sum);
  if (reduces(*collective) && kernels::find_reduce(*dtype, call.call.op) == nullptr) {
    return "with a function of the program's own";
  }
  if (reduces(*collective) && call.call.op == ReduceOp::premul_sum) {
    return "with a factor, which is not recorded";
  }
  call.algorithm = text("algorithm");
  if (call.algorithm.find('+') != std::string_view::npos) {
    return "with encoded moves";
  }
  const Algorithm* const algorithm = find_algorithm(*collective, call.algorithm);
  if (algorithm == nullptr) {
    return "with a schedule of the program's own";
  }
  const ordered_json& root = ops_["root"].at(first);
  call.shape = {.ranks = static_cast<int>(call.members.size()),
                .root = root.is_null() ? 0 : call.member(rank_at(trace_, "ops", "root", first))};
  if (call.shape.root < 0) {
    return kNoMember;
  }
  try {
    call.shape.parameters = parse_parameters(*algorithm, call.algorithm);
  } catch (const Error&) {
    return "with parameters that its algorithm does not take";
  }
  if (!can_serve(*algorithm, call.shape)) {
    return "with an algorithm that cannot serve so many ranks";
  }
  call.call.multicast = multicast_.contains(call.group);
  call.call.in_place.assign(call.members.size(), false);
  return measure(call);
}

// Returns why the buffers cannot be made; empty: they can.
std::string RecordedCalls::measure(RecordedCall& call) const {
  std::optional<std::size_t> count;
  for (const auto& [rank, part] : call.parts) {
    call.call.in_place[static_cast<std::size_t>(rank)] =
        ops_.at("in_place").at(part.row).get<bool>();
    const std::size_t mine =
        count_of(call, rank == call.shape.root, count_at(trace_, "ops", "bytes", part.row));
    if (count.value_or(mine) != mine) {
      return "whose ranks do not have the same count";
    }
    count = mine;
  }
  call.call.count = *count;
  const double needed = bytes_needed(call);
  if (needed > bytes_of_host()) {
    return fmt::format("for which this host would need {:.0f} GiB of memory",
                       std::ceil(needed / kGiB));
  }
  return "";
}

// Returns false if the rank did not reach the call.
bool RecordedCalls::has_dropped(const RecordedCall& call, int rank) const {
  const int world_rank = call.world_rank(rank);
  const auto latest = latest_.find({call.group, world_rank});
  if (latest != latest_.end()) {
    return latest->second > call.number;
  }
  const ordered_json dropped = trace_.value("dropped_events", ordered_json::array());
  const auto at = static_cast<std::size_t>(world_rank);
  return at < dropped.size() && dropped[at] != 0;
}

}  // namespace unisono::cli
