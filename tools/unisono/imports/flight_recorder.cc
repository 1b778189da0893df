// Dumps of PyTorch's flight recorder: an entry for each call, with its group and number. A job of
// 1,024 ranks has up to two million entries, so the reader holds one entry at a time.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "imports/imports.h"
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

struct Entry {
  std::array<json, kFields> fields = {};
  std::string place = {};  // the innermost line of the program itself: "train.py:120"

  const json& operator[](Field field) const { return fields[field]; }
};

// Returns a time in nanoseconds; below 0: it has not happened, for which JSON has 0 and a pickle
// None.
double moment(const json& value) {
  const double ns = number(value, -1);
  return ns > 0 ? ns : -1;
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
double bytes_of(const json& sizes, const json& types, const TorchType& first) {
  if (!sizes.is_array() || !types.is_array() || sizes.size() != types.size()) {
    return elements(sizes) * first.bytes;
  }
  double bytes = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bytes += elements(sizes[i]) * type_named_by_torch(text(types[i])).bytes;
  }
  return bytes;
}

// Turns entries into calls.
class CallReader {
 public:
  explicit CallReader(const std::string& path) : rank_{.path = path} {
    rank_.has_seen_ends = true;
    rank_.account = {.source = "PyTorch's flight recorder", .unit = "call"};
  }

  void add(const Entry& entry) {
    const json& process_group = entry[kProcessGroup];
    const bool is_named = process_group.is_array() && process_group.size() == 2;
    const std::string group = is_named && text(process_group[1]) != kWorld ? text(process_group[0])
                                                                           : std::string("world");
    const std::string whole = text(entry[kName]);
    const std::string name = whole.substr(std::min(whole.find(':') + 1, whole.size()));
    const bool is_p2p = entry[kIsP2p].is_boolean() && entry[kIsP2p].get<bool>();
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
    const TorchType of_input = first_type(entry[kInputTypes]);
    const TorchType type = of_input.name.empty() ? first_type(entry[kOutputTypes]) : of_input;
    note_type(type, rank_.account);
    const double sent = bytes_of(entry[kInputSizes], entry[kInputTypes], type);
    const double received = bytes_of(entry[kOutputSizes], entry[kOutputTypes], type);
    const double created = number(entry[kCreated], 0);
    const double started = moment(entry[kStarted]);
    double completed = moment(entry[kCompleted]);
    const bool was_seen = completed >= 0;
    const std::string state = text(entry[kState]);
    if (!state.empty() && state != "scheduled" && state != "started" && state != "completed") {
      rank_.account.assume("the state of calls that are " + in_quotes(state) +
                           " is not known: their times count");
    }
    if (completed < 0 && state == "completed") {
      completed = is_kernel && started > 0 ? started : created;
      rank_.account.assume("calls without a completion time took no time");
    }
    const double took_ms = number(entry[kDuration], -1);
    if (is_kernel && was_seen && took_ms < 0) {
      rank_.account.assume(
          "calls took from when PyTorch's watchdog saw them begin to when it saw "
          "them end: TORCH_NCCL_ENABLE_TIMING=1 records how long they took");
    }
    // The recorder sees a kernel when it starts. It sees a call of a CPU backend only when it has
    // ended.
    const double start = is_kernel && started > 0 ? started : created;
    return {.group = group,
            .collective = collective,
            .dtype = type.name,
            .bytes = sent < 0 ? sent : std::max(sent, received),
            .start_us = start / 1000,
            .end_us = completed < 0 ? std::nullopt : std::optional(completed / 1000),
            .sequence = sequence_of(entry[kSequence]),
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
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*digits*/) override {
    return add(value);
  }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*items*/) override { return open(json::value_t::object); }
  bool start_array(std::size_t /*items*/) override { return open(json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }
  bool key(string_t& key) override {
    if (skipped_ > 0) {
      return true;
    }
    if (built_ > 0) {
      value_.key(key);
    } else {
      key_ = key;
      field_ = depth_ == kOfEntry ? field_of(key) : field_;
    }
    return true;
  }
  bool skips_next() override {
    return built_ == 0 && !is_path(json::value_t::object) && !is_path(json::value_t::array) &&
           place() == nullptr;
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
        return !is_object && field_ == kFrames;
      case kFrame:
        return is_object && entry_.place.empty();
      default:
        return false;
    }
  }

  // Returns where the next value belongs; nullptr if it does not count.
  json* place() {
    switch (depth_) {
      case kOfDocument:
        return key_ == "rank" ? &rank_ : key_ == "pg_config" ? &groups_ : nullptr;
      case kOfEntry:
        return field_ < kFrames ? &entry_.fields[field_] : nullptr;
      case kOfFrame:
        return key_ == "filename" ? &file_ : key_ == "line" ? &line_ : nullptr;
      default:
        return nullptr;
    }
  }

  bool open(json::value_t kind) {
    if (skipped_ > 0) {
      ++skipped_;
    } else if (built_ > 0) {
      value_.open(kind);
      ++built_;
    } else if (is_path(kind)) {
      return enter();
    } else if (json* const value = place()) {
      value_.begin(*value);
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
      calls_ = CallReader(path_);  // the last member of that name counts
    } else if (depth_ == kEntry) {
      entry_ = {};
    } else if (depth_ == kFrame) {
      file_ = line_ = {};
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
    } else if (--depth_ == kFrame) {
      add_frame();
    } else if (depth_ == kEntry) {
      calls_.add(entry_);
    }
    return true;
  }

  bool add(json scalar) {
    if (built_ > 0) {
      value_.add(std::move(scalar));
    } else if (json* const value = skipped_ > 0 ? nullptr : place()) {
      *value = std::move(scalar);
    } else if (skipped_ == 0) {
      add_other();
    }
    return true;
  }

  // An item of "entries" that is not an object says nothing of its call.
  void add_other() {
    if (depth_ == kEntry) {
      calls_.add({});
    }
  }

  void add_frame() {
    const std::string file = text(file_);
    if (!file.empty() && file.find("torch/") == std::string::npos) {
      entry_.place = file.substr(file.rfind('/') + 1) + ":" +
                     std::to_string(static_cast<std::int64_t>(number(line_, 0)));
    }
  }

  std::string path_;
  CallReader calls_;
  json rank_ = {};
  json groups_ = {};
  bool is_trace_ = false;
  bool has_entries_ = false;
  int depth_ = kDocument;
  int skipped_ = 0;       // containers that are open in a value that does not count
  int built_ = 0;         // containers that are open in a value that is built
  std::string key_ = {};  // of the next value
  Field field_ = kFields;
  Entry entry_ = {};
  json file_ = {};  // of a frame
  json line_ = {};
  ValueBuilder value_ = {};
};

}  // namespace

std::optional<ImportedRank> read_flight_recorder(const ImportFile& file) {
  DumpReader reader(file.path);
  if (!is_pickle(file.text)) {
    return json::sax_parse(file.text, &reader) ? reader.finish() : std::nullopt;
  }
  if (const std::string refusal = read_pickle(file.text, reader); !refusal.empty()) {
    refuse_import(file.path, refusal);
  }
  return reader.finish();
}

}  // namespace unisono::cli
