#include "record/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "record/numbers.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kMostTimelineRanks = 4096;  // the limit of the page
constexpr const char* kWorld = "world";

// A group of columns of one length.
class ColumnTable {
 public:
  // The last `optional` columns may be absent.
  ColumnTable(const ordered_json& document, const char* name,
              std::initializer_list<const char*> columns, std::size_t optional = 0)
      : name_(name) {
    if (!document.contains(name)) {
      return;  // a recording may lack some of them
    }
    const ordered_json& group = document[name];
    for (const char* column : columns) {
      const auto rest = columns.end() - std::find(columns.begin(), columns.end(), column);
      if (group.is_object() && !group.contains(column) &&
          static_cast<std::size_t>(rest) <= optional) {
        continue;
      }
      if (!group.is_object() || !group.contains(column) || !group[column].is_array()) {
        refuse_recording(fmt::format("/{}/{} is missing", name, column));
      }
      columns_[column] = &group[column];
      rows_ = columns_.size() == 1 ? group[column].size() : rows_;
      if (group[column].size() != rows_) {
        refuse_recording(
            fmt::format("/{}/{} has another length than the columns before", name, column));
      }
    }
  }
  std::size_t rows() const { return rows_; }
  bool has(const char* column) const { return columns_.contains(column); }
  double number(const char* column, std::size_t row) const {
    return number_of(at(column, row), place(column, row));
  }
  // Returns a number of the column unchanged, for readers of the result.
  ordered_json figure(const char* column, std::size_t row) const {
    return columns_.contains(column) ? plain_number(number(column, row)) : ordered_json(0);
  }
  int whole(const char* column, std::size_t row, int most) const {
    return static_cast<int>(whole_of(at(column, row), place(column, row), 0, most));
  }
  std::string text(const char* column, std::size_t row, const char* absent = "") const {
    if (!columns_.contains(column)) {
      return absent;
    }
    const ordered_json& value = at(column, row);
    if (!value.is_string()) {
      refuse_recording(place(column, row) + " is not text");
    }
    return value.get<std::string>();
  }
  bool none(const char* column, std::size_t row) const { return at(column, row).is_null(); }

 private:
  std::string place(const char* column, std::size_t row) const {
    return fmt::format("/{}/{}/{}", name_, column, row);
  }
  const ordered_json& at(const char* column, std::size_t row) const {
    return (*columns_.at(column))[row];
  }

  const char* name_;
  std::map<std::string, const ordered_json*> columns_;
  std::size_t rows_ = 0;
};

// Rounds a time for readers, which multiply beginnings and durations separately by 1000 and cut off
// fractions of a nanosecond. Without this, a slice could end a nanosecond before a slice inside it,
// and the reader would drop the inner slice.
ordered_json trace_us(double us) {
  const double ns = std::round(us * 1000);
  double shown = ns / 1000;
  while (shown * 1000 < ns) {
    shown = std::nextafter(shown, std::numeric_limits<double>::infinity());
  }
  return plain_number(shown);
}

// A row of the result, with its sort key. Rows are sorted by time. At the same time slices come
// first, outer slices before inner ones; arrows follow, because readers attach an arrow to the
// latest slice.
struct TimelineRow {
  enum class Kind : std::uint8_t { name, slice, departure, arrival };
  Kind kind = Kind::name;
  double ns = -1;
  double duration_ns = 0;
  ordered_json json = {};
  friend bool operator<(const TimelineRow& a, const TimelineRow& b) {
    return std::tuple(a.kind != Kind::name, a.ns, a.kind, -a.duration_ns) <
           std::tuple(b.kind != Kind::name, b.ns, b.kind, -b.duration_ns);
  }
};

// The tracks of one group on one rank. Slices of a track follow one another, or are nested.
struct Tracks {
  int first = 0;
  std::vector<double> ends = {0};  // the end of the latest pass in each track
};

class Writer {
 public:
  explicit Writer(const ordered_json& trace)
      : trace_(trace),
        ranks_(static_cast<int>(
            whole_of(trace.value("ranks", ordered_json()), "/ranks", 1, kMostTimelineRanks))),
        ops_(trace, "ops",
             {"rank", "number", "collective", "bytes", "start_us", "end_us", "group", "algorithm",
              "waiting_us", "label"},
             4),
        events_(trace, "events",
                {"op", "kind", "step", "peer", "bytes", "start_us", "end_us", "waited_us"}),
        transfers_(trace, "transfers",
                   {"rank", "group", "kind", "peer", "tag", "bytes", "start_us", "end_us", "label"},
                   1),
        messages_(trace, "messages", {"from", "to", "step", "bytes", "start_us", "end_us", "op"},
                  1) {
    read_ends();
  }

  ordered_json write() {
    for (const ColumnTable* table : {&ops_, &events_, &transfers_, &messages_}) {
      for (std::size_t row = 0; row < table->rows(); ++row) {
        if (!table->none("end_us", row)) {
          latest_ = std::max(latest_, table->number("end_us", row));
        }
        latest_ = std::max(latest_, table->number("start_us", row));
      }
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      about(rank, ranks_ + rank, "process_name", {{"name", fmt::format("rank {}", rank)}});
      about(rank, ranks_ + rank, "process_sort_index", {{"sort_index", rank}});
    }
    add_operations();
    add_passes();
    add_transfers();
    add_arrows();
    ordered_json other = {{"format", "unisono.trace/1"}};
    for (const char* key :
         {"name", "clock_uncertainty_us", "dropped_events", "findings", "ended"}) {
      if (trace_.contains(key)) {
        other[key] = trace_[key];
      }
    }
    std::stable_sort(rows_.begin(), rows_.end());
    ordered_json events = ordered_json::array();
    for (TimelineRow& row : rows_) {
      events.push_back(std::move(row.json));
    }
    // displayTimeUnit is left out, because some readers take it for the unit of all times.
    return {{"traceEvents", std::move(events)}, {"otherData", std::move(other)}};
  }

 private:
  void about(int rank, int track, const char* what, ordered_json arguments) {
    rows_.push_back({.json = {{"ph", "M"},
                              {"pid", rank},
                              {"tid", track},
                              {"name", what},
                              {"args", std::move(arguments)}}});
  }
  // Returns a number that no other track of any rank has, and that is not the number of a rank,
  // because readers look up names by this number alone. The first track of a rank is its main
  // track.
  int new_track(int rank, const std::string& text) {
    const bool is_first = tracks_of_[rank]++ == 0;
    const int track = is_first ? ranks_ + rank : 2 * ranks_ + further_tracks_++;
    about(rank, track, "thread_name", {{"name", text}});
    about(rank, track, "thread_sort_index", {{"sort_index", tracks_of_[rank]}});
    return track;
  }
  Tracks& tracks(int rank, const std::string& group) {
    const auto [found, is_new] = tracks_.try_emplace({rank, group});
    if (is_new) {
      found->second.first = new_track(rank, group);
    }
    return found->second;
  }
  // Returns a track of the group that is free at this time.
  int free_track(int rank, const std::string& group, double start, double end) {
    Tracks& all = tracks(rank, group);
    std::size_t place = 0;
    while (place < all.ends.size() && all.ends[place] > start) {
      ++place;
    }
    if (place == all.ends.size()) {
      all.ends.push_back(0);
      extra_[{rank, group}].push_back(new_track(rank, group + " at the same time"));
    }
    all.ends[place] = end;
    return place == 0 ? all.first : extra_[{rank, group}][place - 1];
  }
  double end_of(const ColumnTable& table, std::size_t row) const {
    if (!table.none("end_us", row)) {
      return table.number("end_us", row);
    }
    const auto rank = static_cast<std::size_t>(table.whole("rank", row, ranks_ - 1));
    return until_.empty() ? latest_ : until_[rank];
  }
  void read_ends() {
    if (!trace_.contains("until_us")) {
      return;
    }
    const ordered_json& ends = trace_["until_us"];
    if (!ends.is_array() || ends.size() != static_cast<std::size_t>(ranks_)) {
      refuse_recording("/until_us has not a value for each rank");
    }
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      until_.push_back(number_of(ends[rank], fmt::format("/until_us/{}", rank)));
    }
  }
  void slice(int rank, int track, const std::string& text, double start, double end,
             ordered_json arguments) {
    const double duration = std::max(0.0, end - start);
    rows_.push_back({.kind = TimelineRow::Kind::slice,
                     .ns = std::round(start * 1000),
                     .duration_ns = std::round(duration * 1000),
                     .json = {{"ph", "X"},
                              {"pid", rank},
                              {"tid", track},
                              {"name", text},
                              {"ts", trace_us(start)},
                              {"dur", trace_us(duration)},
                              {"args", std::move(arguments)}}});
  }

  // ": layer 3 attention"
  static std::string label_of(const ColumnTable& table, std::size_t row) {
    return !table.has("label") || table.none("label", row) ? "" : ": " + table.text("label", row);
  }

  void add_operations() {
    for (std::size_t row = 0; row < ops_.rows(); ++row) {
      const int rank = ops_.whole("rank", row, ranks_ - 1);
      const bool ended = !ops_.none("end_us", row);
      std::string text = ops_.text("collective", row);
      if (const std::string algorithm = ops_.text("algorithm", row); !algorithm.empty()) {
        text += "/" + algorithm;
      }
      text += label_of(ops_, row);
      slice(rank, tracks(rank, ops_.text("group", row, kWorld)).first,
            ended ? text : text + " (not ended)", ops_.number("start_us", row), end_of(ops_, row),
            {{"number", ops_.figure("number", row)},
             {"bytes", ops_.figure("bytes", row)},
             {"waiting_us", ops_.figure("waiting_us", row)}});
    }
  }

  void add_passes() {
    for (std::size_t row = 0; row < events_.rows(); ++row) {
      const auto op =
          static_cast<std::size_t>(events_.whole("op", row, static_cast<int>(ops_.rows()) - 1));
      const int rank = ops_.whole("rank", op, ranks_ - 1);
      const std::string group = ops_.text("group", op, kWorld);
      const std::string kind = events_.text("kind", row);
      const bool sends = kind == "send";
      const double start = events_.number("start_us", row);
      const double end = events_.number("end_us", row);
      const int track = free_track(rank, group, start, end);
      std::string text =
          fmt::format("{} step {}", kind, events_.whole("step", row, 1'000'000'000) + 1);
      std::string label = fmt::format("{} #{:.0f}", group, ops_.number("number", op));
      if (!events_.none("peer", row)) {
        const int peer = events_.whole("peer", row, ranks_ - 1);
        text += fmt::format(" {} {}", sends ? "to" : "from", peer);
        if (!sends) {
          arrivals_[{rank, peer, label, end}] = {track, start};
        }
      } else if (sends) {
        text += " to all";
      }
      if (sends) {
        departures_[{rank, label, start}] = track;
      }
      slice(rank, track, text, start, end,
            {{"bytes", events_.figure("bytes", row)},
             {"waited_us", events_.figure("waited_us", row)}});
    }
  }

  void add_transfers() {
    for (std::size_t row = 0; row < transfers_.rows(); ++row) {
      const int rank = transfers_.whole("rank", row, ranks_ - 1);
      const std::string group = transfers_.text("group", row);
      const bool sends = transfers_.text("kind", row) == "send";
      const double start = transfers_.number("start_us", row);
      const double end = end_of(transfers_, row);
      const int track = free_track(rank, group + " send and recv", start, end);
      const std::string label = group + " send";
      std::string text = transfers_.text("kind", row);
      if (!transfers_.none("peer", row)) {
        const int peer = transfers_.whole("peer", row, ranks_ - 1);
        text += fmt::format(" {} {}", sends ? "to" : "from", peer);
        if (!sends) {
          arrivals_[{rank, peer, label, end}] = {track, start};
        }
      }
      text += label_of(transfers_, row);
      if (sends) {
        departures_[{rank, label, start}] = track;
      }
      slice(rank, track, transfers_.none("end_us", row) ? text + " (not ended)" : text, start, end,
            {{"bytes", transfers_.figure("bytes", row)}, {"tag", transfers_.figure("tag", row)}});
    }
  }

  // Draws arrows from the beginning of the sending slice to the beginning of the receiving slice.
  // If the receiver waited in its slice, the arrow leads to a point just before the end of it,
  // because the next slice may begin at the end.
  void add_arrows() {
    for (std::size_t row = 0; row < messages_.rows(); ++row) {
      const int from = messages_.whole("from", row, ranks_ - 1);
      const int to = messages_.whole("to", row, ranks_ - 1);
      const std::string label = messages_.text("op", row);
      const double start = messages_.number("start_us", row);
      const double end = messages_.number("end_us", row);
      const auto departure = departures_.find({from, label, start});
      const auto arrival = arrivals_.find({to, from, label, end});
      if (departure == departures_.end() || arrival == arrivals_.end()) {
        continue;
      }
      constexpr double kNanosecond = 0.001;
      const double comes = arrival->second.second < start ? std::max(start, end - kNanosecond)
                                                          : arrival->second.second;
      const ordered_json common = {{"cat", "message"}, {"name", label}, {"id", row}};
      arrow(TimelineRow::Kind::departure, start, common,
            {{"ph", "s"}, {"pid", from}, {"tid", departure->second}});
      arrow(TimelineRow::Kind::arrival, comes, common,
            {{"ph", "f"}, {"bp", "e"}, {"pid", to}, {"tid", arrival->second.first}});
    }
  }

  void arrow(TimelineRow::Kind kind, double time, const ordered_json& common, ordered_json own) {
    own["ts"] = trace_us(time);
    own.update(common);
    rows_.push_back({.kind = kind, .ns = std::round(time * 1000), .json = std::move(own)});
  }

  const ordered_json& trace_;
  int ranks_;
  ColumnTable ops_;
  ColumnTable events_;
  ColumnTable transfers_;
  ColumnTable messages_;
  double latest_ = 0;
  std::vector<double> until_;  // by rank: when its process ended; empty: unknown
  std::vector<TimelineRow> rows_;
  std::map<std::pair<int, std::string>, Tracks> tracks_;
  std::map<std::pair<int, std::string>, std::vector<int>> extra_;
  std::map<int, int> tracks_of_;
  int further_tracks_ = 0;
  std::map<std::tuple<int, std::string, double>, int> departures_;
  std::map<std::tuple<int, int, std::string, double>, std::pair<int, double>> arrivals_;
};

}  // namespace

ordered_json chrome_trace_of(const ordered_json& trace) {
  return Writer(trace).write();
}

}  // namespace unisono::cli
