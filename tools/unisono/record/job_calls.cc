#include "record/job_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "record/numbers.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

int place_of(std::map<std::string, int, std::less<>>& known, std::vector<std::string>* names,
             std::string_view text, std::size_t size) {
  const auto found = known.find(text);
  if (found != known.end()) {
    return found->second;
  }
  const int place = static_cast<int>(size);
  known.emplace(text, place);
  if (names != nullptr) {
    names->emplace_back(text);
  }
  return place;
}

void read_groups(const ordered_json& trace, JobCalls& job) {
  if (!trace.contains("groups")) {
    return;
  }
  const ordered_json& names = trace["groups"].at("name");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int group = job.group_of(names.at(i).get<std::string>());
    job.groups[static_cast<std::size_t>(group)].members =
        ranks_of(trace["groups"].at("ranks").at(i), "/groups/ranks");
  }
}

// Returns a text of a column; empty if there is none.
std::string text_at(const ordered_json& ops, const char* column, std::size_t row) {
  if (!ops.contains(column) || !ops[column].at(row).is_string()) {
    return {};
  }
  return ops[column].at(row).get<std::string>();
}

JobCall call_at(const ordered_json& trace, std::size_t row, JobCalls& job) {
  const ordered_json& ops = trace.at("ops");
  const std::string group = text_at(ops, "group", row);
  const std::string label = text_at(ops, "label", row);
  const std::int64_t number =
      whole_at(trace, "ops", "number", row, 0, std::numeric_limits<int>::max());
  JobCall call{.rank = rank_at(trace, "ops", "rank", row),
               .group = job.group_of(group.empty() ? "world" : group),
               .number = static_cast<int>(number),
               .shown = number,
               .what = job.name_of(ops.at("collective").at(row).get<std::string>()),
               .dtype = job.name_of(text_at(ops, "dtype", row)),
               .bytes = number_of(ops.at("bytes").at(row), "/ops/bytes"),
               .start_us = number_of(ops.at("start_us").at(row), "/ops/start_us"),
               .place = label.empty() ? -1 : job.name_of(label)};
  call.is_ended = !ops.at("end_us").at(row).is_null();
  if (call.is_ended) {
    call.end_us = number_of(ops["end_us"].at(row), "/ops/end_us");
    call.took_us = call.end_us - call.start_us;
  }
  return call;
}

}  // namespace

int JobCalls::name_of(std::string_view text) {
  return place_of(known_names_, &names, text, names.size());
}

int JobCalls::group_of(const std::string& name) {
  const int place = place_of(known_groups_, nullptr, name, groups.size());
  if (static_cast<std::size_t>(place) == groups.size()) {
    groups.push_back({.name = name, .axis = name.substr(0, name.find(" ("))});
  }
  return place;
}

std::string JobCalls::text_of(const JobCall& call) const {
  return fmt::format("{} #{} of {}", what(call), call.shown, group(call).name);
}

std::vector<JobMeeting> meetings_of(const JobCalls& job) {
  // Sorts copies of the keys: the calls lie far apart.
  struct Keyed {
    int group;
    int number;
    const JobCall* call;
  };
  std::vector<Keyed> all;
  for (const std::vector<JobCall>& calls : job.calls) {
    for (const JobCall& call : calls) {
      all.push_back({call.group, call.number, &call});
    }
  }
  std::ranges::stable_sort(all, {},
                           [](const Keyed& keyed) { return std::pair(keyed.group, keyed.number); });
  std::vector<JobMeeting> meetings;
  const Keyed* last = nullptr;
  for (const Keyed& keyed : all) {
    if (last == nullptr || last->group != keyed.group || last->number != keyed.number) {
      meetings.emplace_back();
    }
    meetings.back().calls.push_back(keyed.call);
    last = &keyed;
  }
  return meetings;
}

JobCalls job_calls_of(const ordered_json& trace) {
  JobCalls job;
  const std::int64_t ranks = whole_of(trace.at("ranks"), "/ranks", 0, 1'000'000);
  job.ranks = static_cast<int>(ranks);
  const auto count = static_cast<std::size_t>(ranks);
  job.calls.resize(count);
  job.hosts.resize(count);
  job.has_record.assign(count, true);
  job.has_lost.assign(count, false);
  read_groups(trace, job);
  const ordered_json dropped = trace.value("dropped_events", ordered_json::array());
  for (std::size_t rank = 0; rank < std::min(dropped.size(), count); ++rank) {
    job.has_lost[rank] = dropped.at(rank).get<double>() > 0;
  }
  const ordered_json doubts = trace.value("clock_uncertainty_us", ordered_json::array());
  const std::size_t rows = trace.contains("ops") ? trace["ops"].at("rank").size() : 0;
  for (std::size_t row = 0; row < rows; ++row) {
    JobCall call = call_at(trace, row, job);
    if (call.rank < 0 || call.rank >= job.ranks) {
      refuse_recording(fmt::format("/ops/rank/{} is no rank of it", row));
    }
    job.calls[static_cast<std::size_t>(call.rank)].push_back(call);
  }
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::vector<JobCall>& calls = job.calls[rank];
    std::stable_sort(calls.begin(), calls.end(),
                     [](const JobCall& a, const JobCall& b) { return a.start_us < b.start_us; });
    const bool has_clock = rank >= doubts.size() || !doubts.at(rank).is_null();
    job.has_record[rank] = has_clock || !calls.empty();
  }
  for (JobGroup& group : job.groups) {
    if (group.members.empty() && group.name == "world") {
      for (int rank = 0; rank < job.ranks; ++rank) {
        group.members.push_back(rank);
      }
    }
  }
  return job;
}

}  // namespace unisono::cli
