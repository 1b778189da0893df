// Dumps of PyTorch's flight recorder: an entry for each call, with its group and number. A job of
// 1,024 ranks has up to two million entries, so the reader holds one entry at a time.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "imports/imports.h"
#include "imports/json_events.h"
#include "imports/pickle.h"
#include "imports/torch_values.h"
#include "imports/value_events.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kWorld = "default_pg";

// The members of an entry that count; the rest is skipped.
enum Field : std::size_t {
  kProcessGroup,
  kName,
  kIsP2p,
  kInputTypes,
  kInputSizes,
  kOutputTypes,
  kOutputSizes,
  kCreated,
  kStarted,
  kCompleted,
  kState,
  kDuration,
  kSequence,
  kFrames,
  kFields
};
constexpr std::array<std::string_view, kFields> kFieldNames = {"process_group",
                                                               "profiling_name",
                                                               "is_p2p",
                                                               "input_dtypes",
                                                               "input_sizes",
                                                               "output_dtypes",
                                                               "output_sizes",
                                                               "time_created_ns",
                                                               "time_discovered_started_ns",
                                                               "time_discovered_completed_ns",
                                                               "state",
                                                               "duration_ms",
                                                               "collective_seq_id",
                                                               "frames"};

Field field_of(std::string_view name) {
  const auto found = std::ranges::find(kFieldNames, name);
  return static_cast<Field>(std::distance(kFieldNames.begin(), found));
}

// A value of an entry. The items of a list follow it.
struct EntryItem {
  enum class Kind { none, boolean, number, text, list } kind = Kind::none;
  double number = 0;  // also of a boolean
  std::string_view text = {};
  std::size_t end = 0;  // the place behind its last item
};

// The fields of a call. The items of all entries use the same memory.
class Entry {
 public:
  std::string place = {};  // the innermost line of the program itself: "train.py:120"

  void clear() {
    items_.resize(1);  // of missing fields
    fields_ = {};
    place.clear();
  }
  void begin(Field field) { fields_[field] = items_.size(); }
  // Returns the place of the new item.
  std::size_t add(EntryItem item) {
    item.end = items_.size() + 1;
    items_.push_back(item);
    return items_.size() - 1;
  }
  void close(std::size_t list) { items_[list].end = items_.size(); }

  // Returns the place of a field's value.
  std::size_t at(Field field) const { return fields_[field]; }
  const EntryItem& operator[](std::size_t at) const { return items_[at]; }
  const EntryItem& operator[](Field field) const { return items_[fields_[field]]; }
  double number(Field field, double fallback) const {
    const EntryItem& item = (*this)[field];
    return item.kind == EntryItem::Kind::number && std::isfinite(item.number) ? item.number
                                                                              : fallback;
  }
  // Returns the places of the items of a list.
  std::vector<std::size_t> items(std::size_t list) const {
    std::vector<std::size_t> places;
    for (std::size_t at = list + 1; at < items_[list].end; at = items_[at].end) {
      places.push_back(at);
    }
    return places;
  }

 private:
  std::vector<EntryItem> items_ = {{}};
  std::array<std::size_t, kFields> fields_ = {};
};

// Returns a time in nanoseconds; below 0: it has not happened, for which JSON has 0 and a pickle
// None.
double moment(const Entry& entry, Field field) {
  const double ns = entry.number(field, -1);
  return ns > 0 ? ns : -1;
}

// Returns the total number of elements of tensors, as elements() of torch_values.h.
double elements_of(const Entry& entry, std::size_t dims, int depth = 0) {
  constexpr int kDeepestDims = 16;
  if (entry[dims].kind != EntryItem::Kind::list || depth > kDeepestDims) {
    return 0;
  }
  bool is_tensor = dims + 1 < entry[dims].end;
  double product = 1;
  double sum = 0;
  for (std::size_t at = dims + 1; at < entry[dims].end; at = entry[at].end) {
    is_tensor = is_tensor && entry[at].kind == EntryItem::Kind::number;
    product *= std::isfinite(entry[at].number) ? entry[at].number : 0;
    sum += elements_of(entry, at, depth + 1);
  }
  return is_tensor ? product : sum;
}

// Returns the type of the first tensor of a list.
TorchType first_type_of(const Entry& entry, Field types) {
  const std::size_t list = entry.at(types);
  const bool is_any = entry[list].kind == EntryItem::Kind::list && list + 1 < entry[list].end;
  return type_named_by_torch(is_any ? entry[list + 1].text : std::string_view());
}

// A send or a receive between two places in the list of a group's members.
struct Message {
  std::size_t from = 0;
  std::size_t to = 0;
};

// Reads "send 0->1" and "recv 1<-0"; nothing if the name does not give both places.
std::optional<Message> message_of(std::string_view name) {
  const std::size_t space = std::min(name.find(' '), name.size() - 1);
  const std::size_t arrow = std::min(name.find("->"), name.find("<-"));
  if (arrow == std::string_view::npos || arrow < space) {
    return std::nullopt;
  }
  const auto place = [](std::string_view digits) {
    std::size_t number = std::string_view::npos;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  };
  Message message{.from = place(name.substr(space + 1, arrow - space - 1)),
                  .to = place(name.substr(arrow + 2))};
  if (name[arrow] == '<') {
    std::swap(message.from, message.to);
  }
  return message;
}

// A coalesced call may have tensors of several types.
double bytes_of(const Entry& entry, Field sizes, Field types, const TorchType& first) {
  const std::size_t size_list = entry.at(sizes);
  const std::size_t type_list = entry.at(types);
  if (entry[size_list].kind != EntryItem::Kind::list ||
      entry[type_list].kind != EntryItem::Kind::list) {
    return elements_of(entry, size_list) * first.bytes;
  }
  double bytes = 0;
  std::size_t type = type_list + 1;
  std::size_t size = size_list + 1;
  for (; size < entry[size_list].end && type < entry[type_list].end;
       size = entry[size].end, type = entry[type].end) {
    bytes += elements_of(entry, size) * type_named_by_torch(entry[type].text).bytes;
  }
  return size == entry[size_list].end && type == entry[type_list].end
             ? bytes
             : elements_of(entry, size_list) * first.bytes;
}

// Turns entries into calls.
class CallReader {
 public:
  explicit CallReader(const std::string& path) : rank_{.path = path} {
    rank_.has_seen_ends = true;
    rank_.account = {.source = "PyTorch's flight recorder", .unit = "call"};
  }

  void add(const Entry& entry) {
    const std::string group = group_of(entry);
    const std::string whole(entry[kName].text);
    const std::string name = whole.substr(std::min(whole.find(':') + 1, whole.size()));
    const bool is_p2p = entry[kIsP2p].kind == EntryItem::Kind::boolean && entry[kIsP2p].number != 0;
    const bool is_kernel = is_device_backend(whole.substr(0, whole.find(':')));
    if (is_p2p || name.starts_with("send") || name.starts_with("recv")) {
      add_message(entry, group, name, is_kernel);
      return;
    }
    const std::string collective = known_collective(name, rank_);
    if (!collective.empty()) {
      rank_.calls.push_back(call_of(entry, group, collective, is_kernel));
    }
  }

  // The groups may come behind the entries.
  ImportedRank finish(const json& rank, const json& groups) {
    rank_.rank = rank_said(rank, rank_.path);
    for (const auto& [id, group] : groups.items()) {
      const std::string about = text(member(group, "desc"));
      const std::string name = about == kWorld ? "world" : id;
      rank_.groups[name] = ranks_in(member(group, "ranks"));
      if (about != kWorld && about != "undefined" && !about.empty()) {
        rank_.axes[name] = about;
      }
    }
    std::erase_if(rank_.groups, [](const auto& group) { return group.second.empty(); });
    name_messages();
    finish_calls(rank_);
    return std::move(rank_);
  }

 private:
  static std::string group_of(const Entry& entry) {
    const std::vector<std::size_t> names = entry[kProcessGroup].kind == EntryItem::Kind::list
                                               ? entry.items(entry.at(kProcessGroup))
                                               : std::vector<std::size_t>();
    return std::string(names.size() == 2 && entry[names[1]].text != kWorld ? entry[names[0]].text
                                                                           : "world");
  }

  void add_message(const Entry& entry, const std::string& group, const std::string& name,
                   bool is_kernel) {
    const std::optional<Message> message = message_of(name);
    if (!message) {
      rank_.account.leave_out(1, kSendsAndReceives);
      return;
    }
    messages_.push_back(*message);
    rank_.messages.push_back(call_of(entry, group, name.substr(0, name.find(' ')), is_kernel));
  }

  // A message of a group of ranks 4 and 6 is of the group "4->6".
  void name_messages() {
    std::vector<ImportedCall> named;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      ImportedCall& call = rank_.messages[i];
      const auto [from, to] = messages_[i];
      const auto group = rank_.groups.find(call.group);
      if (group == rank_.groups.end() || std::max(from, to) >= group->second.size()) {
        rank_.account.leave_out(1, kSendsAndReceives);
        continue;
      }
      call.group = std::to_string(group->second[from]) + "->" + std::to_string(group->second[to]) +
                   (call.group == "world" ? "" : " in " + call.group);
      named.push_back(std::move(call));
    }
    rank_.messages = std::move(named);
  }

  ImportedCall call_of(const Entry& entry, const std::string& group, const std::string& collective,
                       bool is_kernel) {
    const TorchType of_input = first_type_of(entry, kInputTypes);
    const TorchType type = of_input.name.empty() ? first_type_of(entry, kOutputTypes) : of_input;
    note_type(type, rank_.account);
    const double sent = bytes_of(entry, kInputSizes, kInputTypes, type);
    const double received = bytes_of(entry, kOutputSizes, kOutputTypes, type);
    const double created = entry.number(kCreated, 0);
    const double started = moment(entry, kStarted);
    double completed = moment(entry, kCompleted);
    const bool was_seen = completed >= 0;
    const std::string_view state = entry[kState].text;
    if (!state.empty() && state != "scheduled" && state != "started" && state != "completed") {
      rank_.account.assume("the state of calls that are " + in_quotes(state) +
                           " is not known: their times count");
    }
    if (completed < 0 && state == "completed") {
      completed = is_kernel && started > 0 ? started : created;
      rank_.account.assume("calls without a completion time took no time");
    }
    const double took_ms = entry.number(kDuration, -1);
    if (is_kernel && was_seen && took_ms < 0) {
      rank_.account.assume(
          "the times of calls are from PyTorch's watchdog: "
          "TORCH_NCCL_ENABLE_TIMING=1 records how long they took");
    }
    // The recorder sees a kernel when it starts. It sees a call of a CPU backend only when it has
    // ended.
    const double start = is_kernel && started > 0 ? started : created;
    return {
        .group = group,
        .collective = collective,
        .dtype = type.name,
        .bytes = sent < 0 ? sent : std::max(sent, received),
        .start_us = start / 1000,
        .end_us = completed < 0 ? std::nullopt : std::optional(completed / 1000),
        .sequence = static_cast<std::int64_t>(std::clamp(entry.number(kSequence, -1), -1.0, 1e15)),
        .received = collective == "all_to_all" ? received : 0,
        .issued_us = created > 0 ? created / 1000 : kUnknownUs,
        .took_us = took_ms >= 0 && completed >= 0 ? took_ms * 1000 : kUnknownUs,
        .is_begun = !is_kernel || started > 0,
        .place = completed < 0 ? entry.place : std::string()};
  }

  ImportedRank rank_;
  std::vector<Message> messages_;  // of rank_.messages
};

// Follows the events of a document and hands over each entry.
class DumpReader final : public ValueSink {
 public:
  explicit DumpReader(const std::string& path) : path_(path), calls_(path) {}

  // Returns nothing if the document is not a dump.
  std::optional<ImportedRank> finish() {
    // A rank that has called nothing has no entries.
    return !is_trace_ && (has_entries_ || groups_.is_object())
               ? std::optional(calls_.finish(rank_, groups_))
               : std::nullopt;
  }

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    return add({.kind = EntryItem::Kind::boolean, .number = value ? 1.0 : 0.0});
  }
  bool number(double value) override {
    return add({.kind = EntryItem::Kind::number, .number = value});
  }
  bool text(std::string_view value) override {
    return add({.kind = EntryItem::Kind::text, .text = value});
  }
  bool start_object() override { return open(json::value_t::object); }
  bool start_array() override { return open(json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string_view key) override {
    if (skipped_ > 0) {
      return true;
    }
    if (built_ > 0) {
      value_.key(key);
    } else if (depth_ == kOfEntry && open_.empty()) {
      field_ = field_of(key);
    } else if (depth_ != kOfEntry) {
      key_ = key;
      if (depth_ == kOfDocument && !keys_.insert(key_).second) {
        refuse_import(path_,
                      "key " + in_quotes(key_) +
                          " comes twice, and it is not clear which of the two values counts");
      }
    }
    return true;
  }
  bool skips_next() override {
    return skipped_ == 0 && built_ == 0 && open_.empty() && !is_path(json::value_t::object) &&
           !is_path(json::value_t::array) && !counts();
  }

 private:
  // The number of containers around a value.
  enum Depth { kDocument, kOfDocument, kEntry, kOfEntry, kFrame, kOfFrame };

  // Returns true if the next value leads to what counts and is such a container.
  bool is_path(json::value_t kind) const {
    const bool is_object = kind == json::value_t::object;
    switch (depth_) {
      case kDocument:
      case kEntry:
        return is_object;
      case kOfDocument:
        return !is_object && (key_ == "entries" || key_ == "traceEvents");
      case kOfEntry:
        return !is_object && field_ == kFrames && !is_completed();
      case kFrame:
        return is_object && entry_.place.empty();
      default:
        return false;
    }
  }

  // Returns true if the place of the call in the program does not count.
  bool is_completed() const { return entry_[kState].text == "completed"; }

  // Returns true if the next value belongs somewhere.
  bool counts() const {
    switch (depth_) {
      case kOfDocument:
        return key_ == "rank" || key_ == "pg_config";
      case kOfEntry:
        return field_ < kFrames;
      case kOfFrame:
        return key_ == "filename" || key_ == "line";
      default:
        return false;
    }
  }

  bool open(json::value_t kind) {
    if (skipped_ > 0) {
      ++skipped_;
    } else if (built_ > 0) {
      value_.open(kind);
      ++built_;
    } else if (open_.empty() && is_path(kind)) {
      return enter();
    } else if (depth_ == kOfEntry && counts()) {
      const bool is_list = kind == json::value_t::array;
      open_.push_back(add_item({.kind = is_list ? EntryItem::Kind::list : EntryItem::Kind::none}));
    } else if (depth_ == kOfDocument && counts()) {
      value_.begin(place());
      value_.open(kind);
      ++built_;
    } else {
      add_other();
      ++skipped_;
    }
    return true;
  }

  // Returns false for a trace of PyTorch's profiler.
  bool enter() {
    if (depth_ == kOfDocument) {
      is_trace_ = key_ == "traceEvents";
      has_entries_ = true;
    } else if (depth_ == kEntry) {
      entry_.clear();
    } else if (depth_ == kFrame) {
      file_ = {};
      line_ = 0;
    }
    ++depth_;
    return !is_trace_;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else if (built_ > 0) {
      value_.close();
      --built_;
    } else if (!open_.empty()) {
      entry_.close(open_.back());
      open_.pop_back();
    } else if (--depth_ == kFrame) {
      add_frame();
    } else if (depth_ == kEntry) {
      calls_.add(entry_);
    }
    return true;
  }

  bool add(const EntryItem& item) {
    if (skipped_ > 0) {
      return true;
    }
    if (built_ > 0) {
      value_.add(json_of(item));
    } else if (!counts()) {
      add_other();
    } else if (depth_ == kOfDocument) {
      place() = json_of(item);
    } else if (depth_ == kOfEntry) {
      add_item(item);
    } else if (key_ == "filename") {
      file_ = item.text;
    } else {
      line_ = std::isfinite(item.number) ? item.number : 0;
    }
    return true;
  }

  static json json_of(const EntryItem& item) {
    switch (item.kind) {
      case EntryItem::Kind::boolean:
        return item.number != 0;
      case EntryItem::Kind::number:
        return item.number;
      case EntryItem::Kind::text:
        return std::string(item.text);
      default:
        return nullptr;
    }
  }

  json& place() { return key_ == "rank" ? rank_ : groups_; }

  std::size_t add_item(const EntryItem& item) {
    if (open_.empty()) {
      entry_.begin(field_);
    }
    return entry_.add(item);
  }

  // An item of "entries" that is not an object says nothing of its call.
  void add_other() {
    if (depth_ == kEntry) {
      calls_.add({});
    }
  }

  void add_frame() {
    if (!file_.empty() && file_.find("torch/") == std::string_view::npos) {
      entry_.place = std::string(file_.substr(file_.rfind('/') + 1)) + ":" +
                     std::to_string(static_cast<std::int64_t>(line_));
    }
  }

  std::string path_;
  CallReader calls_;
  json rank_ = {};
  json groups_ = {};
  bool is_trace_ = false;
  bool has_entries_ = false;
  int depth_ = kDocument;
  int skipped_ = 0;                  // containers that are open in a value that does not count
  int built_ = 0;                    // containers that are open in a value that is built
  std::string key_ = {};             // of the next value
  std::set<std::string> keys_ = {};  // of the document
  Field field_ = kFields;
  Entry entry_ = {};
  std::vector<std::size_t> open_ = {};  // lists of the entry
  std::string_view file_ = {};          // of a frame
  double line_ = 0;
  ValueBuilder value_ = {};
};

}  // namespace

std::optional<ImportedRank> read_flight_recorder(const ImportFile& file) {
  DumpReader reader(file.path);
  if (!is_pickle(file.text)) {
    return read_json(file.text, reader) ? reader.finish() : std::nullopt;
  }
  if (const std::string refusal = read_pickle(file.text, reader); !refusal.empty()) {
    refuse_import(file.path, refusal);
  }
  return reader.finish();
}

}  // namespace unisono::cli
