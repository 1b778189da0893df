// Reads NCCL's output with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL, of any number of ranks
// in any number of files. The relevant lines:
//
//   HOST:PID:TID [DEVICE] NCCL INFO ... comm 0x1 rank 0 nranks 2 ... commId 0xab ...
//   HOST:PID:TID [DEVICE] NCCL INFO AllReduce: opCount 1d sendbuff ... count 64 datatype 7 op 0
//       root 0 comm 0x1 [nranks=2] ...
//
// The commId of a communicator identifies it on all ranks; its address (comm) identifies it on one
// rank. A communicator that was split from another one may have no commId. It is identified by its
// parent, the number of the split and the color. The lines have no times: the order of a rank's
// lines is the order of its calls. A rank is identified by its host, process and device. In
// containers several ranks may have the same host, process and device. There a rank is identified
// by its communicator of all ranks, and by the communicators that were split from this
// communicator.
//
// Lines that cannot be read are left out, and the report counts them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

#include "base/words.h"
#include "cli/failure.h"
#include "imports/imports.h"
#include "imports/nccl_names.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kMark = "NCCL INFO ";
constexpr std::string_view kCall = ": opCount ";
constexpr std::int64_t kMostRanks = 1'000'000;

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what,
                   "give NCCL's output with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL, of "
                   "all ranks from their start",
                   "unisono help trace");
}

// Returns the word after " KEY "; empty: there is none.
std::string_view word_after(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t begin = at + key.size();
    if ((at == 0 || line[at - 1] == ' ') && begin < line.size() && line[begin] == ' ') {
      const std::string_view rest = line.substr(begin + 1);
      return rest.substr(0, rest.find_first_of(" ,"));
    }
  }
  return {};
}

// Returns a negative number if there is no number.
std::int64_t number_after(std::string_view line, std::string_view key) {
  const std::string_view word = word_after(line, key);
  std::int64_t value = -1;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  return read.ec == std::errc() && read.ptr == word.data() + word.size() ? value : -1;
}

struct NcclType {
  const char* name;
  int bytes;
};
// By number: ncclDataType_t.
constexpr std::array<NcclType, 12> kTypes = {{{"i8", 1},
                                              {"u8", 1},
                                              {"i32", 4},
                                              {"u32", 4},
                                              {"i64", 8},
                                              {"u64", 8},
                                              {"f16", 2},
                                              {"f32", 4},
                                              {"f64", 8},
                                              {"bf16", 2},
                                              {"f8e4m3", 1},
                                              {"f8e5m2", 1}}};

struct Line {
  std::string place = {};  // HOST:PID[DEVICE]
  std::string_view text = {};
  std::size_t file = 0;
};

// Returns a line without text if it is not a line of NCCL.
Line parse_line(std::string_view line) {
  const std::size_t mark = line.rfind(kMark);
  if (mark == std::string_view::npos) {
    return {};
  }
  std::string_view head = line.substr(0, mark);
  const std::size_t bracket = head.rfind('[');
  if (bracket == std::string_view::npos || bracket < 2) {
    return {};
  }
  const std::string_view device = head.substr(bracket, head.find(']', bracket) - bracket + 1);
  head = head.substr(0, bracket - 1);
  head = head.substr(head.find_last_of(" \t>") + 1);  // launchers write before it
  head.remove_prefix(head.starts_with(':') ? 1 : 0);
  return {.place = std::string(head.substr(0, head.rfind(':'))) + std::string(device),
          .text = line.substr(mark + kMark.size())};
}

struct Communicator {
  std::string place = {};
  std::size_t file = 0;
  std::string id = {};
  std::int64_t rank = -1;
  std::int64_t ranks = 0;
  std::string bus = {};                  // of its device; empty: not told
  const Communicator* parent = nullptr;  // the communicator from which it was split
  int owner = -1;                        // the rank of the job, once all are known
};

// The ranks of each communicator. The ranks of the largest communicator are the ranks of the job.
class Communicators {
 public:
  // Returns true if the line describes a communicator.
  bool add(const Line& line) {
    const std::string_view address = word_after(line.text, "comm");
    const std::int64_t rank = number_after(line.text, "rank");
    const std::int64_t ranks = number_after(line.text, "nranks");
    if (address.empty() || rank < 0 || ranks <= rank || ranks > kMostRanks) {
      return false;
    }
    const Communicator* const parent = find(line, word_after(line.text, "parent"));
    const std::string id = id_in(line, parent);
    if (id.empty() && !word_after(line.text, "parent").empty()) {
      return false;  // it cannot be distinguished from other splits
    }
    Communicator*& latest = latest_[{line.place, std::string(address), line.file}];
    const bool is_known = latest != nullptr && latest->rank == rank && latest->ranks == ranks &&
                          (id.empty() || latest->id == id);
    if (is_known) {
      return true;
    }
    if (latest != nullptr && !id.empty() && latest->id == id && latest->rank != rank) {
      refuse(
          fmt::format("{} is rank {} and rank {} of one communicator, at one address: these are "
                      "two processes in containers, and their lines cannot be told apart; give one "
                      "file per rank (NCCL_DEBUG_FILE)",
                      line.place, latest->rank, rank));
    }
    // Or a new one, which has the address of a closed communicator.
    latest = &all_.emplace_back(Communicator{.place = line.place,
                                             .file = line.file,
                                             .id = id,
                                             .rank = rank,
                                             .ranks = ranks,
                                             .bus = std::string(word_after(line.text, "busId")),
                                             .parent = parent});
    by_place_[{line.place, std::string(address)}] = latest;
    return true;
  }
  // Returns the communicator of the same file, or else of another file of the place; Returns
  // nullptr if no line has described it.
  const Communicator* find(const Line& line, std::string_view address) const {
    const auto own = latest_.find({line.place, std::string(address), line.file});
    if (own != latest_.end() && own->second != nullptr) {
      return own->second;
    }
    const auto known = by_place_.find({line.place, std::string(address)});
    return known == by_place_.end() ? nullptr : known->second;
  }

  // Determines the owner of each communicator: a rank of the job. REQUIRES: there is a
  // communicator.
  void settle() {
    const Communicator* world = nullptr;
    for (const Communicator& one : all_) {
      world = world == nullptr || one.ranks > world->ranks ? &one : world;
    }
    world_ = world->id;
    for (Communicator& one : all_) {
      if (one.id == world_ && one.ranks == world->ranks) {
        one.owner = static_cast<int>(one.rank);
        worlds_[one.place].push_back(&one);
      }
    }
    for (Communicator& one : all_) {
      one.owner = one.owner >= 0 ? one.owner : owner_of(one);
    }
  }
  // Returns, by rank of the job, the file that contains its communicator of all ranks.
  std::map<int, std::size_t> files() const {
    std::map<int, std::size_t> files;
    for (const auto& [place, worlds] : worlds_) {
      for (const Communicator* one : worlds) {
        files.emplace(one->owner, one->file);
      }
    }
    return files;
  }
  // Returns the communicators for which all ranks have a log.
  std::map<std::string, std::vector<int>> groups() const {
    struct Seen {
      std::int64_t ranks = 0;
      std::map<std::int64_t, int> owners = {};  // by rank
    };
    std::map<std::string, Seen> all;
    for (const Communicator& one : all_) {
      if (one.owner < 0) {
        continue;
      }
      Seen& seen = all[name_of(one)];
      seen.ranks = std::max(seen.ranks, one.ranks);
      const auto [owner, is_new] = seen.owners.emplace(one.rank, one.owner);
      if (!is_new && owner->second != one.owner) {
        refuse("the log does not distinguish communicators: its lines have no commId");
      }
    }
    std::map<std::string, std::vector<int>> groups;
    for (const auto& [name, seen] : all) {
      if (static_cast<std::int64_t>(seen.owners.size()) == seen.ranks) {
        const auto owners = std::views::values(seen.owners);
        groups[name].assign(owners.begin(), owners.end());
      }
    }
    groups["world"].resize(static_cast<std::size_t>(all["world"].ranks));
    std::ranges::generate(groups["world"], [rank = 0]() mutable { return rank++; });
    return groups;
  }
  // Returns by rank the role of each of its communicators. Ranks that do the same work make the
  // same kinds of communicators in the same order.
  std::map<int, std::map<std::string, std::string>> axes() const {
    std::map<int, std::map<std::string, std::string>> axes;
    for (const Communicator& one : all_) {
      auto& own = axes[one.owner];
      own.emplace(name_of(one), fmt::format("communicator {} of each rank, of {} ranks",
                                            own.size() + 1, one.ranks));
    }
    return axes;
  }
  std::string name_of(const Communicator& one) const {
    return one.id == world_ ? "world" : "comm " + one.id;
  }

 private:
  // "ncclCommSplit comm 0x2 rank 0 nranks 2 ... parent 0x1 splitCount 1 color 0 key 0": the number
  // of the split is also called childCount.
  static std::string id_in(const Line& line, const Communicator* parent) {
    std::string id(word_after(line.text, "commId"));
    const std::string_view color = word_after(line.text, "color");
    if (!id.empty() || parent == nullptr || color.empty()) {
      return id;
    }
    const std::string_view split = word_after(line.text, "splitCount");
    return fmt::format("{}, split {} color {}", parent->id,
                       split.empty() ? word_after(line.text, "childCount") : split, color);
  }

  // Returns the job's rank that owns the communicator, also if several ranks share one place;
  // Returns -1 if there is none.
  int owner_of(const Communicator& one) const {
    const auto at_place = worlds_.find(one.place);
    if (at_place == worlds_.end()) {
      return -1;
    }
    std::map<int, const Communicator*> ranks;  // of the place
    for (const Communicator* world : at_place->second) {
      ranks.emplace(world->owner, world);
    }
    if (ranks.size() > 1 && one.parent != nullptr && one.parent->owner >= 0) {
      return one.parent->owner;
    }
    if (ranks.size() > 1) {
      std::erase_if(ranks, [&](const auto& rank) { return rank.second->file != one.file; });
    }
    if (ranks.size() > 1) {
      std::erase_if(ranks, [&](const auto& rank) { return rank.second->bus != one.bus; });
    }
    if (ranks.size() != 1) {
      refuse(
          fmt::format("{} has several ranks, as in containers, and the log does not say which one "
                      "owns communicator {}; give one file per rank (NCCL_DEBUG_FILE)",
                      one.place, one.id));
    }
    return ranks.begin()->first;
  }

  std::deque<Communicator> all_;
  // By place, address and file.
  std::map<std::tuple<std::string, std::string, std::size_t>, Communicator*> latest_;
  std::map<std::pair<std::string, std::string>, const Communicator*> by_place_;
  std::map<std::string, std::vector<const Communicator*>> worlds_;  // by place
  std::string world_;
};

class Log {
 public:
  // The lines of one file, in order.
  void read(std::string_view text, std::size_t file) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view whole = text.substr(0, end);
      Line line = parse_line(whole);
      line.file = file;
      const std::string_view before = whole.substr(0, whole.size() - line.text.size());
      if (before.find(kCall) != std::string_view::npos) {
        account_.leave_out(1, "in lines that two processes wrote into each other");
      }
      if (line.text.find(kCall) != std::string_view::npos) {
        take_call(line);
      } else {
        communicators_.add(line);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  std::vector<ImportedRank> ranks(const std::vector<ImportFile>& files) {
    refuse_if_empty();
    communicators_.settle();
    std::erase_if(calls_, [&](const Call& call) {
      const bool is_outside = call.communicator->owner < 0;
      account_.leave_out(is_outside ? 1 : 0,
                         "of processes that are not in the largest communicator");
      return is_outside;
    });
    refuse_if_empty();
    const auto groups = communicators_.groups();
    const std::map<int, std::size_t> files_of_ranks = communicators_.files();
    // Each rank lists all members.
    constexpr std::size_t kMostPairs = 100'000'000;
    if (files_of_ranks.size() * groups.at("world").size() > kMostPairs) {
      refuse(fmt::format("the log covers {} of {} ranks, more than can be read at once",
                         files_of_ranks.size(), groups.at("world").size()));
    }
    std::map<int, ImportedRank> ranks;
    for (const auto& [rank, file] : files_of_ranks) {
      ImportedRank& imported = ranks[rank];
      imported.path = files[file].path;
      imported.rank = rank;
      imported.has_times = false;
      imported.groups = groups;
      imported.account = {.source = account_.source, .unit = account_.unit};
    }
    auto axes = communicators_.axes();
    for (auto& [rank, own] : axes) {
      if (const auto known = ranks.find(rank); known != ranks.end()) {
        known->second.axes = std::move(own);
      }
    }
    for (const Call& call : calls_) {
      ranks.at(call.communicator->owner).calls.push_back(to_imported(call));
    }
    std::vector<ImportedRank> all;
    for (auto& [rank, imported] : ranks) {
      all.push_back(std::move(imported));
    }
    all.front().account = account_;
    return all;
  }

 private:
  struct Call {
    const NcclCollective* collective;
    const Communicator* communicator;
    std::int64_t count;
    NcclType type;
  };

  void refuse_if_empty() const {
    if (!calls_.empty()) {
      return;
    }
    std::string left_out;
    for (const Account::LeftOut& one : account_.left_out) {
      left_out += fmt::format("; {} left out: {}", one.count, one.why);
    }
    refuse("the log has no collectives that can be read" + left_out);
  }

  void take_call(const Line& line) {
    const std::string_view name = line.text.substr(0, line.text.find(':'));
    if (name == "Send" || name == "Recv") {
      account_.leave_out(1, kSendsAndReceives);
      return;
    }
    const NcclCollective* const collective = collective_named_by_nccl(name);
    const std::int64_t type = number_after(line.text, "datatype");
    const std::int64_t count = number_after(line.text, "count");
    if (collective == nullptr) {
      account_.leave_out(1, no_collective(name));
      return;
    }
    if (type < 0 || count < 0) {
      account_.leave_out(1, "in truncated lines");
      return;
    }
    if (type >= static_cast<std::int64_t>(kTypes.size())) {
      account_.leave_out(1, "of unknown types");
      return;
    }
    const Communicator* const known = communicators_.find(line, word_after(line.text, "comm"));
    if (known == nullptr) {
      account_.leave_out(1, "on communicators whose creation is missing");
      return;
    }
    if (const std::int64_t ranks = ranks_in_brackets(line.text);
        ranks >= 0 && ranks != known->ranks) {
      account_.leave_out(1, "whose number of ranks differs from their communicator's");
      return;
    }
    calls_.push_back({.collective = collective,
                      .communicator = known,
                      .count = count,
                      .type = kTypes[static_cast<std::size_t>(type)]});
  }

  // Returns the number in "[nranks=2]"; below 0: the number is missing.
  static std::int64_t ranks_in_brackets(std::string_view text) {
    constexpr std::string_view kRanks = "[nranks=";
    const std::size_t at = text.find(kRanks);
    std::int64_t ranks = -1;
    if (at != std::string_view::npos) {
      std::from_chars(text.data() + at + kRanks.size(), text.data() + text.size(), ranks);
    }
    return ranks;
  }

  ImportedCall to_imported(const Call& call) const {
    const double parts =
        call.collective->is_counted_per_rank ? static_cast<double>(call.communicator->ranks) : 1.0;
    return {.group = communicators_.name_of(*call.communicator),
            .collective = call.collective->name,
            .dtype = call.type.name,
            .bytes = std::min(static_cast<double>(call.count) * call.type.bytes * parts, 1e15)};
  }

  Communicators communicators_;
  std::vector<Call> calls_;
  Account account_ = {.source = "NCCL's log", .unit = "call"};
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  // A log with a lower level than NCCL_DEBUG=INFO contains no collectives, but is recognised too.
  constexpr std::array<std::string_view, 3> kMarks = {kMark, "NCCL WARN ", "NCCL version "};
  return std::ranges::any_of(
      kMarks, [text](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

std::vector<ImportedRank> read_nccl_logs(const std::vector<ImportFile>& files) {
  Log log;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_plain = files[i].text.find('\x1b') == std::string::npos;
    log.read(is_plain ? files[i].text : without_escapes(files[i].text), i);
  }
  return log.ranks(files);
}

}  // namespace unisono::cli
