// Reads the JSON of NCCL Inspector, a profiler plugin of NCCL 2.28 and later (output formats v4.0
// to v4.3). Each process writes a file, with one object on each line:
//
//   {"header": {"id": "0xab", "rank": 0, "n_ranks": 2, ...},
//    "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1748030377748202,
//                 "hostname": "node0", "pid": 7, ...},
//    "coll_perf": {"coll": "AllReduce", "coll_sn": 3, "coll_msg_size_bytes": 4096,
//                  "coll_exec_time_us": 61, "coll_timing_source": "kernel_gpu", ...}}
//
// In v4.3 an object with "dump_stats" comes first, and its header and metadata also apply to the
// objects after it. With NCCL_INSPECTOR_DUMP_VERBOSE=1 "event_trace_ts" has the times of a call's
// kernels. Without this variable, only the time of the dump is known, and the call ended before it.
// "coll_sn" counts the calls of one collective on a communicator. The file does not contain calls
// that have not ended.
//
// source   ext-profiler/inspector of NCCL (inspector.cc, inspector_plugin.cc)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/json_document.h"
#include "imports/imports.h"
#include "imports/nccl_names.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kInspectorMark = "\"inspector_output_format_version\"";
constexpr double kMostRanksInspected = 1e6;
constexpr double kMostUs = 4e15;  // 2096

struct InspectedCall {
  std::string collective = {};
  std::int64_t sequence = 0;
  double bytes = 0;
  double took_us = 0;
  double start_us = 0;
  double end_us = 0;
  double issued_us = kUnknownUs;
  double dumped_us = 0;
  bool has_times = false;  // false: only the time of the dump is known
};

// A communicator on one of its ranks.
struct InspectedRank {
  std::string host = {};
  std::string process = {};
  std::string path = {};
  std::vector<InspectedCall> calls =
      {};  // in the order of the file, which is the order of their ends
};

struct InspectedCommunicator {
  std::string name = {};  // empty: not told
  std::map<int, InspectedRank> ranks = {};
  int size = 0;
};

class InspectorReader {
 public:
  void read(const ImportFile& file) {
    header_ = metadata_ = json();
    remaining_ = -1;
    path_ = file.path;
    line_ = 0;
    std::string_view rest = file.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      const bool is_cut = end == rest.size();
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++line_;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
        continue;
      }
      const json record = parse_json_document<json>(file.path, line);
      if (!record.is_object()) {
        if (!is_cut) {
          refuse("it is not a JSON object");
        }
        account_.leave_out(1, "in a line that is cut off");
        continue;
      }
      add(record);
    }
  }

  std::vector<ImportedRank> ranks() {
    find_world();
    if (world_ == communicators_.end()) {
      refuse_import(path_, "it has no collectives of NCCL Inspector");
    }
    constexpr std::size_t kMostPairs = 100'000'000;  // each rank lists all members
    if (world_->second.ranks.size() * static_cast<std::size_t>(world_->second.size) > kMostPairs) {
      refuse_import(path_, fmt::format("{} of {} ranks are more than can be read at once",
                                       world_->second.ranks.size(), world_->second.size));
    }
    std::map<int, ImportedRank> ranks;
    for (const auto& [rank, of_rank] : world_->second.ranks) {
      ImportedRank& made = ranks[rank];
      made = {.path = of_rank.path, .rank = rank, .host = of_rank.host};
      made.has_seen_ends = !is_verbose_;
      made.account = {.source = account_.source, .unit = account_.unit};
      for (int member = 0; member < world_->second.size; ++member) {
        made.groups["world"].push_back(member);
      }
    }
    for (auto& [id, communicator] : communicators_) {
      add_communicator(id, communicator, ranks);
    }
    std::vector<ImportedRank> all;
    for (auto& [rank, made] : ranks) {
      finish_calls(made);
      all.push_back(std::move(made));
    }
    account_.assume("only ended calls are there: NCCL Inspector records no others");
    all.front().account.add(account_);
    settle_groups(all);
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_import(path_, fmt::format("line {}: {}", line_, what));
  }

  double number_in(const json& object, const char* key, double most) const {
    const json& value = member(object, key);
    const double given = number(value, -1);
    if (!value.is_number() || given < 0 || given > most) {
      refuse(fmt::format("\"{}\" is missing, or not a number from 0 to {:g}", key, most));
    }
    return given;
  }
  std::string text_in(const json& object, const char* key) const {
    std::string given = text(member(object, key));
    if (given.empty()) {
      refuse(fmt::format("\"{}\" is missing, or not a text", key));
    }
    return given;
  }

  void add(const json& record) {
    if (record.contains("header") || record.contains("metadata")) {
      header_ = member(record, "header");
      metadata_ = member(record, "metadata");
      remaining_ = -1;
      const std::string version = text_in(metadata_, "inspector_output_format_version");
      if (!version.starts_with("v4.") || version.size() != 4 || version[3] > '3') {
        refuse(fmt::format("format {} of NCCL Inspector is not known; v4.0 to v4.3 are", version));
      }
      const json& stats = member(record, "dump_stats");
      if (stats.is_object()) {
        note_dropped(number(member(stats, "coll_dropped_since_last_dump"), 0));
        remaining_ = version == "v4.3" ? number_in(stats, "coll_records", 1e9) : -1;
        if (version != "v4.3") {
          header_ = metadata_ = json();
        }
        return;
      }
    } else if (header_.is_null()) {
      refuse("it has neither a header nor a dump_stats before it");
    }
    if (record.contains("p2p_perf")) {
      account_.leave_out(1, kSendsAndReceives);
    } else if (record.contains("proxy_trace")) {
      account_.leave_out(1, "of proxy threads");
    } else if (member(record, "coll_perf").is_object()) {
      if (!record.contains("header") && remaining_-- <= 0) {
        refuse("its dump_stats counts fewer collectives");
      }
      add_call(member(record, "coll_perf"));
    } else {
      refuse("it has none of coll_perf, p2p_perf, proxy_trace and dump_stats");
    }
  }

  void note_dropped(double count) { dropped_ += std::clamp(count, 0.0, 1e15); }

  void add_call(const json& call) {
    const std::string id = text_in(header_, "id");
    const int rank = static_cast<int>(number_in(header_, "rank", kMostRanksInspected));
    const int size = static_cast<int>(number_in(header_, "n_ranks", kMostRanksInspected));
    if (rank >= size) {
      refuse(fmt::format("rank {} of {} ranks", rank, size));
    }
    const std::string host = text_in(metadata_, "hostname");
    const std::string process =
        fmt::format("{}:{:.0f}", host, number_in(metadata_, "pid", kMostUs));
    InspectedCommunicator& communicator = communicators_[id];
    if (communicator.size != 0 && communicator.size != size) {
      refuse(fmt::format("communicator {} has {} ranks here and {} before", id, size,
                         communicator.size));
    }
    communicator.size = size;
    communicator.name = text(member(header_, "comm_name"));
    InspectedRank& of_rank = communicator.ranks[rank];
    if (!of_rank.process.empty() && (of_rank.process != process || of_rank.path != path_)) {
      refuse(fmt::format("rank {} of communicator {} is also {} in {}", rank, id, of_rank.process,
                         of_rank.path));
    }
    of_rank.host = host;
    of_rank.process = process;
    of_rank.path = path_;
    const std::string name = text_in(call, "coll");
    const NcclCollective* const collective = collective_named_by_nccl(name);
    if (collective == nullptr) {
      account_.leave_out(1, no_collective(name));
      return;
    }
    InspectedCall made{.collective = collective->name,
                       .sequence = static_cast<std::int64_t>(number_in(call, "coll_sn", kMostUs)),
                       .took_us = number_in(call, "coll_exec_time_us", kMostUs),
                       .dumped_us = number_in(metadata_, "dump_timestamp_us", kMostUs)};
    made.bytes = std::min(
        number_in(call, "coll_msg_size_bytes", 1e18) * (collective->is_counted_per_rank ? size : 1),
        kMostCallBytes);
    if (text(member(call, "coll_timing_source")) == "collective_cpu") {
      account_.assume("calls that no GPU clock timed took as long as the CPU saw them");
    }
    read_times(member(call, "event_trace_ts"), made);
    of_rank.calls.push_back(made);
  }

  void read_times(const json& times, InspectedCall& call) const {
    const json& kernels = member(times, "kernel_events");
    if (!kernels.is_array() || kernels.empty()) {
      return;
    }
    double begin = HUGE_VAL;
    double end = 0;
    for (const json& kernel : kernels) {
      const double start = number_in(kernel, "kernel_start_ts", kMostUs);
      const double stop = number_in(kernel, "kernel_stop_ts", kMostUs);
      if (stop < start) {
        refuse("a kernel stops before it starts");
      }
      begin = std::min(begin, start);
      end = std::max(end, stop);
    }
    call.start_us = begin;
    call.end_us = end;
    call.issued_us = number_in(times, "coll_start_ts", kMostUs);
    if (call.issued_us > begin) {
      refuse("a kernel starts before its collective");
    }
    call.has_times = true;
  }

  void find_world() {
    world_ = std::ranges::max_element(
        communicators_, [](const auto& a, const auto& b) { return a.second.size < b.second.size; });
    if (world_ == communicators_.end()) {
      return;
    }
    for (const auto& [rank, of_rank] : world_->second.ranks) {
      owners_[of_rank.process].insert(rank);
    }
    for (const auto& [id, communicator] : communicators_) {
      for (const auto& [rank, of_rank] : communicator.ranks) {
        for (const InspectedCall& call : of_rank.calls) {
          is_verbose_ = is_verbose_ && call.has_times;
        }
      }
    }
    if (!is_verbose_) {
      account_.assume(
          "calls ended when NCCL Inspector wrote them, and the calls of one dump ended one after "
          "the other: NCCL_INSPECTOR_DUMP_VERBOSE=1 records the times");
    }
    if (dropped_ > 0) {
      account_.assume(
          fmt::format("{:.0f} calls that NCCL Inspector dropped change nothing: a larger "
                      "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE keeps them",
                      dropped_));
    }
  }

  // Returns a negative number if it is unknown.
  int owner_of(const InspectedCommunicator& communicator, int rank) {
    if (&communicator == &world_->second) {
      return rank;
    }
    const InspectedRank& of_rank = communicator.ranks.at(rank);
    const auto found = owners_.find(of_rank.process);
    if (found != owners_.end() && found->second.size() == 1) {
      return *found->second.begin();
    }
    account_.leave_out(static_cast<std::int64_t>(of_rank.calls.size()),
                       found == owners_.end()
                           ? "of processes that are not in the largest communicator"
                           : "of smaller communicators of processes with several ranks");
    return -1;
  }

  // Returns the calls that every rank with a file has, in an order that agrees with all of them.
  std::set<std::pair<std::string, std::int64_t>> common(const InspectedCommunicator& communicator) {
    std::map<std::pair<std::string, std::int64_t>, std::size_t> counts;
    for (const auto& [rank, of_rank] : communicator.ranks) {
      std::set<std::pair<std::string, std::int64_t>> own;
      for (const InspectedCall& call : of_rank.calls) {
        if (!own.insert({call.collective, call.sequence}).second) {
          refuse_import(of_rank.path, fmt::format("{} #{} of rank {} is there twice",
                                                  call.collective, call.sequence, rank));
        }
        ++counts[{call.collective, call.sequence}];
      }
    }
    std::set<std::pair<std::string, std::int64_t>> all;
    for (const auto& [key, count] : counts) {
      if (count == communicator.ranks.size()) {
        all.insert(key);
      }
    }
    return all;
  }

  void add_communicator(const std::string& id, InspectedCommunicator& communicator,
                        std::map<int, ImportedRank>& ranks) {
    const bool is_world = &communicator == &world_->second;
    const std::string group = is_world ? "world" : "comm " + id;
    const auto kept = common(communicator);
    std::vector<std::pair<std::string, std::int64_t>> order;
    bool is_first = true;
    bool agrees = true;
    for (auto& [rank, of_rank] : communicator.ranks) {
      const auto left_out = std::erase_if(of_rank.calls, [&kept](const InspectedCall& call) {
        return !kept.contains({call.collective, call.sequence});
      });
      account_.leave_out(static_cast<std::int64_t>(left_out),
                         "that not all ranks with a file have: NCCL Inspector may keep only the "
                         "last one between two dumps");
      set_times(of_rank.calls);
      std::vector<std::pair<std::string, std::int64_t>> own;
      for (const InspectedCall& call : of_rank.calls) {
        own.emplace_back(call.collective, call.sequence);
      }
      agrees = agrees && (is_first || own == order);
      order = is_first ? own : order;
      is_first = false;
    }
    std::map<int, int> owners;  // by rank of the communicator
    for (const auto& [rank, of_rank] : communicator.ranks) {
      if (!agrees) {
        account_.leave_out(static_cast<std::int64_t>(of_rank.calls.size()),
                           "of communicators whose ranks ended them in different orders");
      } else if (const int owner = owner_of(communicator, rank); owner >= 0) {
        owners[rank] = owner;
      }
    }
    const bool is_whole = owners.size() == static_cast<std::size_t>(communicator.size);
    for (const auto& [rank, owner] : owners) {
      ImportedRank& made = ranks.at(owner);
      for (const auto& [other, member] : owners) {
        if (is_whole && !is_world) {
          made.groups[group].push_back(member);
        }
      }
      if (!communicator.name.empty() && !is_world) {
        made.axes[group] = communicator.name;
      }
      for (const InspectedCall& call : communicator.ranks.at(rank).calls) {
        made.calls.push_back({.group = group,
                              .collective = call.collective,
                              .bytes = call.bytes,
                              .start_us = call.start_us,
                              .end_us = call.end_us,
                              .issued_us = call.issued_us,
                              .took_us = call.took_us});
      }
    }
  }

  // Without recorded times, the calls of one communicator are assumed to end one after the other,
  // and the last one at the time of the dump.
  static void set_times(std::vector<InspectedCall>& calls) {
    double next_us = HUGE_VAL;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if (!call->has_times) {
        call->end_us = std::min(call->dumped_us, next_us);
        call->start_us = call->end_us - call->took_us;
      }
      next_us = call->start_us;
    }
    std::ranges::stable_sort(calls, {}, &InspectedCall::start_us);
  }

  std::map<std::string, InspectedCommunicator> communicators_;  // by id
  std::map<std::string, InspectedCommunicator>::iterator world_ = communicators_.end();
  std::map<std::string, std::set<int>> owners_;  // by process: its ranks in the job
  Account account_ = {.source = "NCCL Inspector", .unit = "record"};
  json header_ = {};
  json metadata_ = {};
  double remaining_ = -1;  // collectives of the current dump that are still to be read
  double dropped_ = 0;
  bool is_verbose_ = true;
  std::string path_;
  std::size_t line_ = 0;
};

}  // namespace

bool is_nccl_inspector(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 12;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.substr(first, kLooked).find(kInspectorMark) != std::string_view::npos;
}

std::vector<ImportedRank> read_nccl_inspector(const std::vector<ImportFile>& files) {
  InspectorReader reader;
  for (const ImportFile& file : files) {
    reader.read(file);
  }
  return reader.ranks();
}

}  // namespace unisono::cli
