// Reads an answer of NCCL's RAS (`ncclras`, `ncclras -v`, `ncclras -f json`; NCCL 2.26 and later,
// JSON from 2.28.7 on). For each communicator and rank, the answer counts the calls of each
// collective that the rank has launched. It also names the ranks that did not answer. As text, it
// lists only the ranks that differ from most ranks:
//
//   Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
//       #  in group  per comm  per node  per comm  in group
//       0         1         4         8        32        32   RUNNING  MISMATCH
//   #0-0 (27a079b828ff1a75) MISMATCH
//     Communicator ranks have different AllReduce operation counts
//     31 ranks have launched up to operation 6650
//     Rank 7 has launched up to operation 6649 -- GPU 7 managed by process 483079 on node 10.0.0.1
//   #0-0 (27a079b828ff1a75) INCOMPLETE
//     Missing communicator data from 1 rank
//     Rank 21 -- GPU 5 managed by process 3487984 on node 10.0.0.3
//
// The answer does not contain sizes, times or the order of different collectives. The reader makes
// calls from the counts: for each collective, the last call that all ranks launched, and the calls
// that only some ranks launched.
//
// source   src/ras/client_support.cc of NCCL
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cli/json_document.h"
#include "imports/imports.h"
#include "imports/nccl_names.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRanksOfRas = 10'000;  // each rank lists all members
constexpr std::int64_t kMostBehind = 16;          // calls of one kind that a verdict needs

struct RasRank {
  std::string place = {};  // process and device; empty: not told
  std::string host = {};
  bool has_answered = true;
  std::map<std::string, std::int64_t> counts = {};  // by collective
};

struct RasCommunicator {
  std::string id = {};
  std::int64_t size = 0;
  std::map<int, RasRank> ranks = {};
};

// Removes the number at the beginning of `text` and returns it; empty: `text` begins with no
// number.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  const bool is_there = text.starts_with(word);
  text.remove_prefix(is_there ? word.size() : 0);
  return is_there;
}

class RasReader {
 public:
  explicit RasReader(const std::string& path) : path_(path) {}

  void read_json(const json& answer) {
    const json& list = member(answer, "communicators");
    const double count = number(member(answer, "communicators_count"), -1);
    if (!list.is_array() || count != static_cast<double>(list.size())) {
      refuse("\"communicators_count\" is not the number of its communicators");
    }
    for (const json& one : list) {
      read_communicator(one);
    }
  }

  void read_text(std::string_view answer) {
    while (!answer.empty()) {
      const std::size_t end = std::min(answer.find('\n'), answer.size());
      std::string_view line = answer.substr(0, end);
      line.remove_suffix(line.ends_with('\r') ? 1 : 0);
      read_line(line);
      answer.remove_prefix(std::min(end + 1, answer.size()));
    }
    finish_communicator();
    if (sizes_.empty()) {
      refuse("its table of communicators is missing");
    }
    const auto& [size, comms] = sizes_.front();
    if (comms != 1) {
      refuse(
          fmt::format("its largest communicators, {} of {} ranks, do not show which ranks of the "
                      "job they have: give the answer as JSON (ncclras -f json)",
                      comms, size));
    }
    add_world_of_text(size);
  }

  std::vector<ImportedRank> ranks() {
    const auto world = std::ranges::max_element(communicators_, {}, &RasCommunicator::size);
    if (world == communicators_.end()) {
      refuse("it has no communicators");
    }
    std::rotate(communicators_.begin(), world, world + 1);
    for (const auto& [rank, of_rank] : communicators_.front().ranks) {
      if (!of_rank.place.empty()) {
        owners_.emplace(of_rank.place, rank);
      }
    }
    std::map<int, ImportedRank> ranks;
    for (const auto& [rank, of_rank] : communicators_.front().ranks) {
      if (of_rank.has_answered) {
        ImportedRank& made = ranks[rank];
        made = {.path = path_, .rank = rank, .host = of_rank.host};
        made.has_times = false;
        made.has_sizes = false;
        made.account = {.source = account_.source, .unit = account_.unit};
      }
    }
    if (ranks.empty()) {
      refuse("no rank of its largest communicator has answered");
    }
    for (const bool is_common : {true, false}) {
      for (const RasCommunicator& communicator : communicators_) {
        add_calls(communicator, is_common, ranks);
      }
    }
    account_.assume("the last call that all ranks launched has not ended where a rank is missing");
    account_.assume("calls that only some ranks launched are ordered by the number of these ranks");
    std::vector<ImportedRank> all;
    for (auto& [rank, made] : ranks) {
      all.push_back(std::move(made));
    }
    all.front().account.add(account_);
    settle_groups(all);
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { refuse_import(path_, what); }

  std::int64_t whole(const json& object, const char* key, std::int64_t most) const {
    const json& value = member(object, key);
    if (!value.is_number_integer() || value.get<double>() < 0 ||
        value.get<double>() > static_cast<double>(most)) {
      refuse(fmt::format("\"{}\" is missing, or not a whole number from 0 to {}", key, most));
    }
    return value.get<std::int64_t>();
  }

  void read_communicator(const json& one) {
    RasCommunicator made{.id = text(member(one, "hash")),
                         .size = whole(one, "size", kMostRanksOfRas)};
    if (made.id.empty()) {
      refuse("a communicator has no \"hash\"");
    }
    for (const auto& [key, count] :
         {std::pair("ranks", "ranks_count"), std::pair("missing_ranks", "missing_ranks_count")}) {
      const json& list = member(one, key);
      if (!list.is_array() ||
          whole(one, count, kMostRanksOfRas) != static_cast<std::int64_t>(list.size())) {
        refuse(fmt::format("communicator {}: \"{}\" is not the number of its \"{}\"", made.id,
                           count, key));
      }
      for (const json& rank : list) {
        read_rank(rank, std::string_view(key) == "ranks", made);
      }
    }
    if (static_cast<std::int64_t>(made.ranks.size()) > made.size) {
      refuse(fmt::format("communicator {} has more ranks than its size", made.id));
    }
    communicators_.push_back(std::move(made));
  }

  void read_rank(const json& rank, bool has_answered, RasCommunicator& communicator) {
    const std::int64_t number = whole(rank, "rank", kMostRanksOfRas);
    RasRank made{.host = text(member(rank, "host")), .has_answered = has_answered};
    if (member(rank, "pid").is_number_integer() && member(rank, "pid") != -1) {
      made.place = fmt::format("{}:{}:{}", made.host, whole(rank, "pid", INT64_MAX / 2),
                               whole(rank, "nvml_dev", kMostRanksOfRas));
    }
    if (has_answered) {
      const json& counts = member(rank, "collective_counts");
      if (!counts.is_object()) {
        refuse(fmt::format("rank {} of {} has no \"collective_counts\"", number, communicator.id));
      }
      for (const auto& [name, count] : counts.items()) {
        made.counts[name] = whole(counts, name.c_str(), INT64_MAX / 2);
      }
      for (const char* state : {"init_state", "async_error"}) {
        constexpr std::int64_t kInProgress = 7;
        const std::int64_t code = whole(member(rank, "status"), state, 1000);
        if (code != 0 && code != kInProgress) {
          account_.leave_out(1, fmt::format("error of rank {} of {}: {} {}", number,
                                            communicator.id, state, code));
        }
      }
    }
    if (number >= communicator.size ||
        !communicator.ranks.emplace(static_cast<int>(number), std::move(made)).second) {
      refuse(fmt::format("communicator {} of {} ranks has rank {} twice, or cannot have it",
                         communicator.id, communicator.size, number));
    }
  }

  // --- the text ---------------------------------------------------------------------------------
  // Ranks that launched the same number of calls.
  struct Class {
    std::int64_t ranks = 0;
    std::int64_t count = 0;
    std::vector<int> listed = {};
  };

  void read_line(std::string_view line) {
    if (line.starts_with("#")) {
      read_heading(line);
      return;
    }
    const bool is_indented = line.starts_with("  ");
    if (is_table_) {
      read_row(line);
    }
    is_table_ = is_table_ ? !line.empty() : line.find("#  in group") != std::string_view::npos;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (is_indented && is_in_communicator_) {
      read_detail(line);
    } else if (is_indented && line.starts_with("Process ")) {
      account_.leave_out(1, "process that RAS could not reach");
    }
    is_in_communicator_ = is_in_communicator_ && (is_indented || line.empty());
  }

  void read_row(std::string_view line) {
    std::vector<std::int64_t> columns;
    for (std::size_t at = line.find_first_not_of(' '); at != std::string_view::npos;
         at = line.find_first_not_of(' ', at)) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      std::string_view word = line.substr(at, end - at);
      columns.push_back(take_number(word).value_or(-1));
      at = end;
    }
    constexpr std::size_t kColumns = 8;
    if (columns.size() == kColumns && columns[4] > kMostRanksOfRas) {
      refuse(fmt::format("a communicator of {} ranks is more than can be read", columns[4]));
    }
    if (columns.size() != kColumns || columns[0] != static_cast<std::int64_t>(sizes_.size()) ||
        columns[1] < 1 || columns[4] < 1) {
      if (line.find_first_not_of(" \r") != std::string_view::npos) {
        refuse("a row of its table of communicators is not as NCCL writes it");
      }
      return;
    }
    sizes_.emplace_back(columns[4], columns[1]);
  }

  // "#0-0 (27a079b828ff1a75) MISMATCH"
  void read_heading(std::string_view line) {
    finish_communicator();
    line.remove_prefix(1);
    const std::optional<std::int64_t> group = take_number(line);
    const bool is_dash = take(line, "-");
    const std::optional<std::int64_t> place = take_number(line);
    if (!group || !is_dash || !place || !take(line, " (") || line.find(')') == line.npos ||
        *group < 0 || *group >= static_cast<std::int64_t>(sizes_.size())) {
      refuse("a communicator is not in its table");
    }
    is_in_communicator_ = true;
    group_ = *group;
  }

  void read_detail(std::string_view line) {
    constexpr std::string_view kCounts = " operation counts";
    if (take(line, "Communicator ranks have different ")) {
      finish_function();
      function_ = line.ends_with(kCounts)
                      ? std::string(line.substr(0, line.size() - kCounts.size()))
                      : std::string();
      is_missing_ = false;
      return;
    }
    if (line.starts_with("Missing communicator data from ")) {
      is_missing_ = true;
      return;
    }
    if (take(line, "Rank ")) {
      read_rank_line(line);
      return;
    }
    const std::optional<std::int64_t> ranks = take_number(line);
    if (ranks && take(line, " ranks have ") && !function_.empty()) {
      add_class(line, *ranks);
    } else {
      account_.leave_out(1, "line about the status of ranks");
    }
  }

  // "launched up to operation 64", "not launched any operations"
  void add_class(std::string_view line, std::int64_t ranks) {
    std::optional<std::int64_t> count;
    if (take(line, "launched up to operation ")) {
      count = take_number(line);
    } else if (line.starts_with("not launched any operations")) {
      count = 0;
    }
    if (!count || *count < 0 || ranks < 1) {
      refuse("a count of calls is not as NCCL writes it");
    }
    classes_.push_back({.ranks = ranks, .count = *count});
  }

  // "7 has launched up to operation 60 -- GPU ...", "7 -- GPU ..."
  void read_rank_line(std::string_view line) {
    const std::optional<std::int64_t> rank = take_number(line);
    if (!rank || *rank < 0 || *rank >= size_of_group()) {
      refuse("a rank is not one of its communicator");
    }
    if (is_missing_) {
      missing_.insert(static_cast<int>(*rank));
    } else if (take(line, " has ") && !function_.empty()) {
      add_class(line, 1);
      classes_.back().listed.push_back(static_cast<int>(*rank));
    } else if (!classes_.empty()) {
      classes_.back().listed.push_back(static_cast<int>(*rank));
    } else if (take(line, " reported ")) {
      account_.leave_out(1, fmt::format("error of rank {}: {}", *rank, line));
    } else {
      account_.leave_out(1, "line about the status of ranks");
    }
  }

  std::int64_t size_of_group() const { return sizes_[static_cast<std::size_t>(group_)].first; }

  void finish_communicator() {
    finish_function();
    if (group_ == 0) {
      missing_of_world_.insert(missing_.begin(), missing_.end());
    } else if (!missing_.empty()) {
      account_.leave_out(static_cast<std::int64_t>(missing_.size()), kSmaller);
    }
    missing_.clear();
    is_missing_ = false;
  }

  void finish_function() {
    if (group_ == 0 && !classes_.empty() && !function_.empty()) {
      if (!classes_of_world_.emplace(function_, classes_).second) {
        refuse(fmt::format("it counts {} of one communicator twice", function_));
      }
    } else if (!classes_.empty()) {
      account_.leave_out(static_cast<std::int64_t>(classes_.size()), kSmaller);
    }
    classes_.clear();
    function_.clear();
  }

  void add_world_of_text(std::int64_t size) {
    RasCommunicator world{.id = "world", .size = size};
    for (int rank = 0; rank < static_cast<int>(size); ++rank) {
      world.ranks[rank].has_answered = !missing_of_world_.contains(rank);
    }
    for (const auto& [function, classes] : classes_of_world_) {
      count_ranks(function, classes, world);
    }
    if (!missing_of_world_.empty() && classes_of_world_.empty()) {
      // The counts are equal, so the text does not contain them.
      for (auto& [rank, of_rank] : world.ranks) {
        of_rank.counts["AllReduce"] = 1;
      }
      account_.assume("ranks wait in an all_reduce: an answer as text has no equal counts");
    }
    communicators_.push_back(std::move(world));
  }

  // Ranks that are not listed belong to the class without listed ranks.
  void count_ranks(const std::string& function, const std::vector<Class>& classes,
                   RasCommunicator& world) const {
    const Class* unlisted = nullptr;
    std::int64_t sum = static_cast<std::int64_t>(missing_of_world_.size());
    std::set<int> listed;
    for (const Class& one : classes) {
      sum += one.ranks;
      if (one.listed.empty() && unlisted != nullptr) {
        refuse(
            fmt::format("it does not list which ranks launched how many {}: ask with "
                        "ncclras -v, or for JSON (ncclras -f json)",
                        function));
      }
      unlisted = one.listed.empty() ? &one : unlisted;
      if (!one.listed.empty() && static_cast<std::int64_t>(one.listed.size()) != one.ranks) {
        refuse(fmt::format("it counts {} ranks and lists {}", one.ranks, one.listed.size()));
      }
      for (const int rank : one.listed) {
        world.ranks[rank].counts[function] = one.count;
        if (!listed.insert(rank).second) {
          refuse(fmt::format("it counts {} of rank {} twice", function, rank));
        }
      }
    }
    if (sum != world.size) {
      refuse(fmt::format("it counts {} of {} ranks, and the communicator has {}", function, sum,
                         world.size));
    }
    for (auto& [rank, of_rank] : world.ranks) {
      if (unlisted != nullptr && !listed.contains(rank) && of_rank.has_answered) {
        of_rank.counts[function] = unlisted->count;
      }
    }
  }

  // --- calls ------------------------------------------------------------------------------------
  int owner_of(const RasCommunicator& communicator, int rank, const RasRank& of_rank) const {
    if (&communicator == &communicators_.front()) {
      return rank;
    }
    const auto found = owners_.find(of_rank.place);
    return of_rank.place.empty() || found == owners_.end() ? -1 : found->second;
  }

  // `is_common`: adds the calls that all ranks have; otherwise the calls that only some ranks have.
  void add_calls(const RasCommunicator& communicator, bool is_common,
                 std::map<int, ImportedRank>& ranks) {
    const bool is_world = &communicator == &communicators_.front();
    const std::string group = is_world ? "world" : "comm " + communicator.id;
    std::vector<std::pair<int, const RasRank*>> members;  // by owner
    std::map<std::string, std::int64_t> least;
    for (const auto& [rank, of_rank] : communicator.ranks) {
      members.emplace_back(owner_of(communicator, rank, of_rank), &of_rank);
      if (of_rank.has_answered) {
        for (const auto& [name, count] : of_rank.counts) {
          const auto [known, is_new] = least.emplace(name, count);
          known->second = std::min(known->second, count);
        }
      }
    }
    for (auto& [name, count] : least) {
      for (const auto& [owner, member] : members) {
        count = member->has_answered ? std::min(count, count_of(*member, name)) : count;
      }
    }
    if (std::ranges::any_of(members, [](const auto& one) { return one.first < 0; })) {
      account_.leave_out(is_common ? 1 : 0,
                         "communicator with ranks outside the largest communicator");
      return;
    }
    // Sorts calls that more ranks have first.
    using Item =
        std::tuple<std::int64_t, std::string, std::int64_t>;  // ranks that lack it, name, number
    std::set<Item> items;
    for (const auto& [name, count] : least) {
      if (collective_named_by_nccl(name) == nullptr) {
        account_.leave_out(is_common && count > 0 ? 1 : 0, no_collective(name));
        continue;
      }
      if (is_common && count > 0) {
        items.emplace(0, name, count);
      }
      for (std::int64_t behind = 1; !is_common && behind <= kMostBehind; ++behind) {
        const auto without =
            std::ranges::count_if(members, [&, number = count + behind](const auto& one) {
              return count_of(*one.second, name) < number;
            });
        if (without == static_cast<std::ptrdiff_t>(members.size())) {
          break;
        }
        items.emplace(without, name, count + behind);
      }
    }
    for (const auto& [owner, of_rank] : members) {
      if (!of_rank->has_answered || !ranks.contains(owner)) {
        continue;
      }
      ImportedRank& made = ranks.at(owner);
      if (made.groups[group].empty()) {
        for (const auto& [other, ignored] : members) {
          made.groups[group].push_back(other);
        }
      }
      for (const auto& [without, name, number] : items) {
        if (count_of(*of_rank, name) >= number) {
          made.calls.push_back({.group = group,
                                .collective = collective_named_by_nccl(name)->name,
                                .sequence = number});
        }
      }
    }
  }

  static std::int64_t count_of(const RasRank& rank, const std::string& name) {
    const auto found = rank.counts.find(name);
    return !rank.has_answered || found == rank.counts.end() ? 0 : found->second;
  }

  static constexpr const char* kSmaller =
      "of smaller communicators, whose ranks an answer as text does not connect to the job's";

  std::string path_;
  Account account_ = {.source = "NCCL's RAS", .unit = "item"};
  std::vector<RasCommunicator> communicators_;  // the largest first, after ranks() has begun
  std::map<std::string, int> owners_;           // by place: the rank of the job
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes_;  // by row: ranks, communicators
  std::map<std::string, std::vector<Class>> classes_of_world_;
  std::set<int> missing_of_world_;
  std::vector<Class> classes_;
  std::set<int> missing_;
  std::string function_;
  std::int64_t group_ = 0;
  bool is_table_ = false;
  bool is_in_communicator_ = false;
  bool is_missing_ = false;
};

// NCCL 2.28.9 leaves out commas between the keys of missing ranks.
std::string with_commas(std::string_view text) {
  std::string whole;
  std::size_t last = std::string::npos;  // in `whole`: the last character that is not a space
  for (const char sign : text) {
    const bool is_space = sign == ' ' || sign == '\n' || sign == '\r' || sign == '\t';
    const bool ends_value =
        last != std::string::npos &&
        (whole[last] == '"' || whole[last] == 'e' || (whole[last] >= '0' && whole[last] <= '9')) &&
        whole.find('\n', last) != std::string::npos;
    if (sign == '"' && ends_value) {
      whole.insert(last + 1, ",");
    }
    whole += sign;
    last = is_space ? last : whole.size() - 1;
  }
  return whole;
}

}  // namespace

bool is_nccl_ras(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 12;
  const std::string_view head = text.substr(0, kLooked);
  return head.find("\"communicators_count\"") != std::string_view::npos ||
         (head.find("Job summary\n") != std::string_view::npos &&
          text.find("\nCommunicators...") != std::string_view::npos);
}

std::vector<ImportedRank> read_nccl_ras(const ImportFile& file) {
  RasReader reader(file.path);
  const std::size_t brace = file.text.find('{');
  if (file.text.substr(0, std::min<std::size_t>(file.text.size(), 1 << 12))
          .find("\"communicators_count\"") == std::string::npos) {
    reader.read_text(file.text);
    return reader.ranks();
  }
  // Output of telnet and netcat begins with "OK".
  const std::string_view text =
      std::string_view(file.text).substr(std::min(brace, file.text.size()));
  json answer = parse_json_document<json>(file.path, text);
  if (answer.is_discarded()) {
    answer = parse_json_document<json>(file.path, with_commas(text));
  }
  if (!answer.is_object()) {
    refuse_import(file.path, "its JSON is not valid or truncated");
  }
  reader.read_json(answer);
  return reader.ranks();
}

}  // namespace unisono::cli
