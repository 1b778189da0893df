#include "trace/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "base/rank_list.h"
#include "trace/align.h"
#include "trace/worlds.h"

namespace unisono::trace {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// One record, and the shift of its times to its clock's earliest record.
struct Source {
  const RankRecord* record = nullptr;
  int world = 0;  // number of earlier worlds of the run, over all programs
  double shift_ns = 0;
};

// The key of a message: world, group, operation number, from, to (-1: all), number in the lane.
// Transfers have their tag instead of the operation number.
using MessageKey = std::tuple<int, std::uint64_t, std::int64_t, int, int, unsigned>;

struct End {
  std::size_t source = 0;
  double begin_ns = 0, end_ns = 0;  // in its own host's clock, shifted
  unsigned step = 0;
  std::uint64_t bytes = 0;
  std::string label = {};
};

struct Pair {
  End send;
  End receive;
};

std::string number_text(int world) {
  return world == 0 ? "" : " (" + std::to_string(world + 1) + ")";
}

class Builder {
 public:
  Builder(const std::vector<RankRecord>& records, int ranks) {
    result_.ranks = ranks;
    result_.uncertainty_ns.assign(static_cast<std::size_t>(ranks), kNever);
    result_.dropped.assign(static_cast<std::size_t>(ranks), 0);
    result_.left_out.assign(static_cast<std::size_t>(ranks), 0);
    const std::vector<int> worlds = worlds_of(records);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].rank < ranks) {
        sources_.push_back({.record = &records[i], .world = worlds[i]});
      }
    }
    std::stable_sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) {
      return a.record->rank < b.record->rank;
    });
    name_groups();
  }

  Timeline build(std::size_t most_rows, const ProcessEnds& ends) {
    // Times of one clock count from its earliest record, so that they have few digits and stay
    // exact.
    for (Source& source : sources_) {
      auto [base, is_new] = bases_.emplace(source.record->clock, source.record->base_ns);
      base->second = std::min(base->second, source.record->base_ns);
    }
    for (Source& source : sources_) {
      source.shift_ns = static_cast<double>(source.record->base_ns - bases_[source.record->clock]);
    }
    pair_messages();
    align();
    const double cut = find_cut(most_rows);
    add_operations(cut);
    add_messages(cut);
    add_aborts();
    add_ends(ends);
    count_from_the_beginning();
    return std::move(result_);
  }

 private:
  // Converts the times of a clock to the clock of rank 0.
  struct Aligned {
    ClockLine line = {};
    double uncertainty_ns = kUnknownNs;
    double at(double ns) const { return (ns - line.offset) / (1 + line.drift); }
  };

  // Names each group other than the world by its members, the same on all ranks.
  void name_groups() {
    std::map<std::string, std::set<std::pair<int, std::uint64_t>>> same;
    for (const Source& source : sources_) {
      for (const RecordedGroup& group : source.record->groups) {
        const std::string name =
            group.world ? "world" + number_text(source.world)
                        : "ranks " + rank_list(group.members) + number_text(source.world);
        auto& ids = same[name];
        ids.insert({source.world, group.id});
        const std::pair key(source.world, group.id);
        if (!names_.contains(key)) {
          names_[key] = ids.size() == 1 ? name : name + " " + std::to_string(ids.size());
          result_.groups.push_back({.name = names_[key], .members = group.members});
        }
      }
    }
  }
  std::string name_of(const Source& source, int group) const {
    const auto& groups = source.record->groups;
    return names_.at({source.world, groups[static_cast<std::size_t>(group)].id});
  }

  void pair_messages() {
    std::map<MessageKey, std::vector<End>> sent;
    std::map<MessageKey, std::map<int, std::vector<End>>> received;  // by rank, in order
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      const RankRecord& record = *source.record;
      const auto end_of = [&](double begin, double end) {
        return End{
            .source = i, .begin_ns = begin + source.shift_ns, .end_ns = end + source.shift_ns};
      };
      for (const RecordedPass& pass : record.passes) {
        const bool is_send = pass.kind == recording::EventKind::send;
        if (pass.kind == recording::EventKind::copy ||
            (pass.peer < 0 && !(is_send && pass.to_all))) {
          continue;
        }
        const RecordedOperation& operation = record.operations[pass.operation];
        const auto id = record.groups[static_cast<std::size_t>(operation.group)].id;
        const int from = is_send ? record.rank : pass.peer;
        const int to = pass.to_all ? -1 : is_send ? pass.peer : record.rank;
        End end = end_of(pass.begin_ns, pass.end_ns);
        end.step = pass.step;
        end.bytes = pass.bytes;
        end.label = name_of(source, operation.group) + " #" + std::to_string(operation.number);
        const MessageKey key(source.world, id, static_cast<std::int64_t>(operation.number), from,
                             to, pass.sequence);
        (is_send ? sent[key] : received[key][record.rank]).push_back(std::move(end));
      }
      for (const RecordedTransfer& transfer : record.transfers) {
        if (transfer.end_ns < 0 || transfer.peer < 0) {
          continue;
        }
        const int from = transfer.send ? record.rank : transfer.peer;
        const int to = transfer.send ? transfer.peer : record.rank;
        End end = end_of(transfer.begin_ns, transfer.end_ns);
        end.bytes = transfer.bytes;
        end.label = name_of(source, transfer.group) + " send";
        const auto id = record.groups[static_cast<std::size_t>(transfer.group)].id;
        const MessageKey key(source.world, id, -1 - std::int64_t{transfer.tag}, from, to, 0);
        (transfer.send ? sent[key] : received[key][record.rank]).push_back(std::move(end));
      }
    }
    for (auto& [key, by_rank] : received) {
      const auto from = sent.find(key);
      for (auto& [rank, ends] : by_rank) {
        // If the beginnings of transfers were dropped, the pairs are unknown.
        if (from == sent.end() || from->second.size() != ends.size()) {
          continue;
        }
        for (std::size_t k = 0; k < ends.size(); ++k) {
          pairs_.push_back({.send = from->second[k], .receive = std::move(ends[k])});
        }
      }
    }
  }

  // Aligns clocks, from the clock of the lowest rank outwards, along pairs of clocks with messages
  // between them.
  void align() {
    if (sources_.empty()) {
      return;
    }
    const auto clock = [this](const End& end) { return sources_[end.source].record->clock; };
    using Bounds = std::pair<std::vector<ClockBound>, std::vector<ClockBound>>;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Bounds> bounds;  // of B - A, by (A, B)
    for (const Pair& pair : pairs_) {
      const std::uint64_t from = clock(pair.send);
      const std::uint64_t to = clock(pair.receive);
      // A transfer may have waited for its receiver, so its message arrived by its end.
      const bool transfer = pair.receive.label.ends_with(" send");
      const double arrived = transfer ? pair.receive.end_ns : pair.receive.begin_ns;
      if (from != to) {
        const double difference = arrived - pair.send.begin_ns;
        bounds[{from, to}].first.push_back({.time = pair.send.begin_ns, .bound = difference});
        bounds[{to, from}].second.push_back({.time = arrived, .bound = -difference});
      }
    }
    const std::uint64_t reference = sources_.front().record->clock;
    aligned_[reference] = {.uncertainty_ns = 0};
    std::queue<std::uint64_t> open({reference});
    for (; !open.empty(); open.pop()) {
      const std::uint64_t near = open.front();
      for (const auto& [ends, both] : bounds) {
        if (ends.first != near || aligned_.contains(ends.second)) {
          continue;
        }
        if (const auto line = align_clocks(both.first, both.second)) {
          // far = near + offset + drift * near, and the line of `near` places it on the reference.
          const Aligned& via = aligned_[near];
          Aligned far{.uncertainty_ns = via.uncertainty_ns + line->uncertainty};
          far.line.drift = (1 + line->drift) * (1 + via.line.drift) - 1;
          far.line.offset = line->offset + (1 + line->drift) * via.line.offset;
          aligned_[ends.second] = far;
          open.push(ends.second);
        }
      }
    }
    const double own_error = sources_.front().record->clock_error_ns;
    for (const Source& source : sources_) {
      const RankRecord& record = *source.record;
      const auto rank = static_cast<std::size_t>(record.rank);
      const auto found = aligned_.find(record.clock);
      double uncertainty = found == aligned_.end() ? kUnknownNs : found->second.uncertainty_ns;
      if (&source != &sources_.front()) {
        uncertainty += record.clock_error_ns + own_error;
      }
      double& known = result_.uncertainty_ns[rank];
      known = known == kNever ? uncertainty : std::max(known, uncertainty);
      result_.dropped[rank] += record.dropped;
    }
  }

  double time(const Source& source, double ns) const {
    return aligned_time(source.record->clock, ns + source.shift_ns);
  }
  double aligned_time(std::uint64_t clock, double shifted) const {
    const auto found = aligned_.find(clock);
    return found == aligned_.end() ? shifted : found->second.at(shifted);
  }

  // Returns the time before which operations are left out, so that the rest fits into `most_rows`.
  double find_cut(std::size_t most_rows) {
    std::vector<double> begins;
    for (const Source& source : sources_) {
      for (const RecordedOperation& operation : source.record->operations) {
        begins.push_back(time(source, operation.begin_ns));
      }
      for (const RecordedPass& pass : source.record->passes) {
        begins.push_back(time(source, source.record->operations[pass.operation].begin_ns));
      }
      for (const RecordedTransfer& transfer : source.record->transfers) {
        begins.push_back(time(source, transfer.begin_ns));
      }
    }
    if (begins.size() <= most_rows) {
      return -kNever;
    }
    const auto at = begins.end() - static_cast<std::ptrdiff_t>(most_rows);
    std::nth_element(begins.begin(), at, begins.end());
    return *at;
  }

  void add_operations(double cut) {
    for (const Source& source : sources_) {
      const RankRecord& record = *source.record;
      std::uint64_t& left_out = result_.left_out[static_cast<std::size_t>(record.rank)];
      std::vector<std::size_t> places(record.operations.size());
      for (std::size_t i = 0; i < record.operations.size(); ++i) {
        const RecordedOperation& operation = record.operations[i];
        const double begin = time(source, operation.begin_ns);
        if (begin < cut) {
          places[i] = std::string::npos;
          ++left_out;
          continue;
        }
        places[i] = result_.operations.size();
        result_.operations.push_back(
            {.rank = record.rank,
             .world = source.world,
             .group = name_of(source, operation.group),
             .what = &operation,
             .begin_ns = begin,
             .end_ns = operation.end_ns < 0 ? -1 : time(source, operation.end_ns)});
      }
      for (const RecordedPass& pass : record.passes) {
        const std::size_t place = places[pass.operation];
        if (place == std::string::npos) {
          ++left_out;
          continue;
        }
        result_.operations[place].busy_ns += pass.busy_ns;
        result_.passes.push_back({.operation = place,
                                  .what = &pass,
                                  .begin_ns = time(source, pass.begin_ns),
                                  .end_ns = time(source, pass.end_ns)});
      }
      for (const RecordedTransfer& transfer : record.transfers) {
        const double begin = time(source, transfer.begin_ns);
        if (begin < cut) {
          ++left_out;
          continue;
        }
        result_.transfers.push_back(
            {.rank = record.rank,
             .group = name_of(source, transfer.group),
             .what = &transfer,
             .begin_ns = begin,
             .end_ns = transfer.end_ns < 0 ? -1 : time(source, transfer.end_ns)});
      }
    }
  }

  void add_messages(double cut) {
    for (const Pair& pair : pairs_) {
      const Source& from = sources_[pair.send.source];
      const Source& to = sources_[pair.receive.source];
      const double begin = aligned_time(from.record->clock, pair.send.begin_ns);
      if (begin >= cut) {
        result_.messages.push_back(
            {.from = from.record->rank,
             .to = to.record->rank,
             .step = pair.receive.step,
             .bytes = pair.receive.bytes,
             .label = pair.receive.label,
             .begin_ns = begin,
             .end_ns = std::max(begin, aligned_time(to.record->clock, pair.receive.end_ns))});
      }
    }
    std::stable_sort(result_.messages.begin(), result_.messages.end(),
                     [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  }

  void add_aborts() {
    std::map<int, std::vector<ReceivedAbort>> heard;
    for (const Source& source : sources_) {
      if (const auto& abort = source.record->abort) {
        const bool timed = aligned_.contains(source.record->clock);
        heard[source.world].push_back({.rank = source.record->rank,
                                       .what = &*abort,
                                       .at_ns = timed ? time(source, abort->at_ns) : kUnknownNs});
      }
    }
    for (const auto& [world, all] : heard) {
      const ReceivedAbort& first = first_of(all);
      result_.aborts.push_back({.world = world,
                                .name = "world" + number_text(world),
                                .what = *first.what,
                                .at_ns = first.at_ns});
    }
  }

  void add_ends(const ProcessEnds& ends) {
    const auto base = bases_.find(ends.clock);
    result_.knows_ends = base != bases_.end() && ends.ns.size() == result_.uncertainty_ns.size();
    for (std::size_t rank = 0; result_.knows_ends && rank < ends.ns.size(); ++rank) {
      const auto ns = static_cast<double>(ends.ns[rank] - base->second);
      result_.until_ns.push_back(aligned_time(ends.clock, ns));
    }
  }

  void count_from_the_beginning() {
    double first = kNever;
    double last = -kNever;
    const auto each = [&](const auto& visit) {
      std::for_each(result_.operations.begin(), result_.operations.end(), visit);
      std::for_each(result_.transfers.begin(), result_.transfers.end(), visit);
      std::for_each(result_.passes.begin(), result_.passes.end(), visit);
      std::for_each(result_.messages.begin(), result_.messages.end(), visit);
    };
    each([&first, &last](const auto& row) {
      first = std::min(first, row.begin_ns);
      last = std::max({last, row.begin_ns, row.end_ns == -1 ? -kNever : row.end_ns});
    });
    each([first](auto& row) {
      row.begin_ns -= first;
      row.end_ns = row.end_ns == -1 ? -1 : row.end_ns - first;
    });
    for (Timeline::Abort& abort : result_.aborts) {
      abort.at_ns = first == kNever || abort.at_ns < first ? 0 : abort.at_ns - first;
    }
    if (!result_.knows_ends) {
      result_.until_ns.assign(result_.uncertainty_ns.size(), last);
    }
    for (double& until : result_.until_ns) {
      until = first == kNever ? 0 : std::max(0.0, until - first);
    }
  }

  Timeline result_;
  std::vector<Source> sources_;
  std::map<std::pair<int, std::uint64_t>, std::string> names_;
  std::map<std::uint64_t, std::int64_t> bases_;
  std::map<std::uint64_t, Aligned> aligned_;
  std::vector<Pair> pairs_;
};

}  // namespace

Timeline make_timeline(const std::vector<RankRecord>& records, int ranks, std::size_t most_rows,
                       const ProcessEnds& ends) {
  return Builder(records, ranks).build(most_rows, ends);
}

}  // namespace unisono::trace
