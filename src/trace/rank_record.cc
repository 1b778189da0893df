#include "trace/rank_record.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace unisono::trace {
namespace {

using recording::Event;
using recording::EventKind;

constexpr int kMostRanks = 1 << 16;
constexpr int kMostWorlds = 1 << 16;
constexpr std::int64_t kLatest = std::int64_t{1} << 60;  // 36 years after boot

template <std::size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return {text, strnlen(text, kSize)};
}

// Converts ticks to nanoseconds after `base`, using two moments at which both clocks were read.
class Clock {
 public:
  Clock(const recording::ClockPair& first, const recording::ClockPair& latest)
      : ticks_(first.ticks), base_(first.ns), error_(static_cast<double>(first.error_ns)) {
    const auto span = static_cast<double>(latest.ticks - first.ticks);
    const auto ns = static_cast<double>(latest.ns - first.ns);
    if (span > 0 && ns > 0) {
      rate_ = ns / span;
      known_ns_ = ns;
      error_ = std::max(error_, static_cast<double>(latest.error_ns));
    }
  }
  bool good() const { return rate_ > 0 && std::isfinite(rate_) && base_ >= 0 && base_ < kLatest; }
  std::int64_t base() const { return base_; }
  double ns(std::uint64_t ticks) const { return duration(static_cast<double>(ticks - ticks_)); }
  double duration(double ticks) const { return ticks * rate_; }
  // After the second moment the error of the rate grows with time.
  double error(double latest_ns) const {
    return error_ * (1 + 2 * std::max(0.0, latest_ns / known_ns_ - 1));
  }

 private:
  std::uint64_t ticks_;
  std::int64_t base_;
  double error_;
  double rate_ = 0;
  double known_ns_ = 1;
};

// REQUIRES: `header.bytes` is valid.
bool is_sane(const recording::RecordingHeader& header) {
  const std::uint64_t ring = header.bytes - recording::kRing;
  return header.magic == recording::kMagic && header.events >= recording::kBlockEvents &&
         header.events % recording::kBlockEvents == 0 && header.events <= ring / sizeof(Event) &&
         header.size >= 1 && header.size <= kMostRanks && header.rank >= 0 &&
         header.rank < header.size && header.world >= 0 && header.world < kMostWorlds;
}

// Returns, by rank, its number in the first world; empty if the numbers are the same.
std::vector<int> first_ranks_of(const recording::RecordingHeader& header) {
  const int begin = header.first_ranks;
  if (begin < 0 || begin > recording::kMembers - header.size) {
    return {};
  }
  std::vector<int> ranks(header.member + begin, header.member + begin + header.size);
  const bool sane = std::all_of(ranks.begin(), ranks.end(),
                                [](int rank) { return rank >= 0 && rank < kMostRanks; });
  return sane ? ranks : std::vector<int>();
}

// Replaces rank numbers in the text of a failure by those of the first world, because a shrunken
// world numbers its ranks again.
std::string with_first_ranks(const std::string& text, const std::vector<int>& first_ranks) {
  constexpr std::string_view kWord = "rank ";
  std::string result;
  std::size_t done = 0;
  for (auto at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at + 1)) {
    const char* const begin = text.data() + at + kWord.size();
    std::size_t rank = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), rank);
    const bool is_word = at == 0 || std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0;
    if (is_word && error == std::errc() && rank < first_ranks.size()) {
      result += text.substr(done, at + kWord.size() - done) + std::to_string(first_ranks[rank]);
      done = static_cast<std::size_t>(end - text.data());
    }
  }
  return result + text.substr(done);
}

std::vector<RecordedGroup> groups_of(const recording::RecordingHeader& header,
                                     const std::vector<int>& first_ranks) {
  std::vector<RecordedGroup> groups;
  const int count = std::clamp<int>(header.groups, 0, recording::kGroups);
  for (int i = 0; i < count; ++i) {
    const recording::GroupRecord& group = header.group[i];
    RecordedGroup result{.id = group.id, .world = group.members < 0};
    for (int k = 0; k < group.size && k < header.size; ++k) {
      const std::int64_t at = std::int64_t{group.members} + k;
      const int rank = group.members < 0 ? k : at < recording::kMembers ? header.member[at] : -1;
      const bool is_other = rank >= 0 && rank < static_cast<int>(first_ranks.size());
      result.members.push_back(is_other ? first_ranks[static_cast<std::size_t>(rank)] : rank);
    }
    groups.push_back(std::move(result));
  }
  return groups;
}

class Reader {
 public:
  Reader(const recording::RecordingHeader& header, const Event* ring)
      : header_(header),
        ring_(ring),
        clock_(header.first, header.latest),
        first_ranks_(first_ranks_of(header)) {}

  std::optional<RankRecord> read() {
    if (!clock_.good()) {
      return std::nullopt;
    }
    int size = header_.size;
    for (const int rank : first_ranks_) {
      size = std::max(size, rank + 1);
    }
    record_ = {.rank = first_rank(header_.rank),
               .size = size,
               .world = header_.world,
               .job = text_of(header_.job),
               .host = text_of(header_.host),
               .clock = header_.clock,
               .base_ns = clock_.base(),
               .left = header_.left != 0,
               .events = header_.events,
               .unrecorded_groups = header_.unnamed,
               .groups = groups_of(header_, first_ranks_)};
    const std::uint64_t end = header_.taken * recording::kBlockEvents;
    const std::uint64_t begin = end > header_.events ? end - header_.events : 0;
    record_.dropped = begin;
    // Operations come first, so that passes find their operation in any block.
    each_event(begin, end, [this](const Event& event, std::uint64_t place) {
      if (place % recording::kBlockEvents == 0) {
        label_.clear();  // the label of another writer
      }
      if (event.kind() == EventKind::label) {
        read_label(event);
      } else if (event.kind() == EventKind::operation) {
        read_operation(event, place);
      } else if (event.kind() == EventKind::transfer) {
        read_transfer(event);
      }
    });
    each_event(begin, end, [this](const Event& event, std::uint64_t) {
      if (event.kind() != EventKind::operation && event.kind() != EventKind::transfer &&
          event.kind() != EventKind::label) {
        read_pass(event);
      }
    });
    read_abort();
    record_.clock_error_ns = clock_.error(latest_ns_);
    return std::move(record_);
  }

 private:
  template <typename Visit>
  void each_event(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
    for (std::uint64_t block = begin; block != end; block += recording::kBlockEvents) {
      for (std::uint64_t i = 0; i < recording::kBlockEvents; ++i) {
        const Event& event = ring_[(block + i) % header_.events];
        if (event.kind() == EventKind::none) {
          break;  // the rest of the block is unused
        }
        visit(event, block + i);
      }
    }
  }
  double end_of(const Event& event) {
    const double begin = clock_.ns(event.begin);
    const double end = event.ended() ? clock_.ns(event.begin + event.duration()) : -1;
    latest_ns_ = std::max({latest_ns_, begin, end});
    return end;
  }
  // Returns false if the time was torn: no clock of this run can have shown it.
  bool is_sane(const Event& event) const {
    return event.begin >= header_.first.ticks && clock_.ns(event.begin) < 1e17;
  }
  void read_operation(const Event& event, std::uint64_t place) {
    if (event.peer >= record_.groups.size() ||
        event.detail >= std::min<int>(header_.names, recording::kNames) || !is_sane(event)) {
      return;
    }
    const recording::Name& name = header_.name[event.detail];
    operations_[static_cast<std::uint32_t>(place)] = record_.operations.size();
    record_.operations.push_back({.group = event.peer,
                                  .number = event.order,
                                  .collective = text_of(name.collective),
                                  .algorithm = text_of(name.algorithm),
                                  .bytes = event.bytes(),
                                  .begin_ns = clock_.ns(event.begin),
                                  .end_ns = end_of(event),
                                  .root = world_rank(event.peer, event.step() - 1),
                                  .terms = event.terms(),
                                  .label = label_});
  }
  void read_label(const Event& event) {
    const int names = std::min<int>(header_.names, recording::kNames);
    label_ = event.detail < names ? text_of(header_.name[event.detail].algorithm) : "";
  }
  void read_pass(const Event& event) {
    const auto operation = operations_.find(event.order);
    if (operation == operations_.end() || !is_sane(event)) {
      return;  // its operation was dropped
    }
    const int group = record_.operations[operation->second].group;
    record_.passes.push_back(
        {.operation = operation->second,
         .kind = event.kind(),
         .to_all = event.to_all(),
         .peer = world_rank(group, event.peer),
         .sequence = event.detail,
         .step = event.step(),
         .bytes = event.bytes(),
         .begin_ns = clock_.ns(event.begin),
         .end_ns = end_of(event),
         .busy_ns = clock_.duration(event.busy() * static_cast<double>(event.duration()))});
  }
  void read_transfer(const Event& event) {
    if (event.detail >= record_.groups.size() || !is_sane(event)) {
      return;
    }
    record_.transfers.push_back({.group = event.detail,
                                 .send = event.busy() != 0,
                                 .peer = world_rank(event.detail, event.peer),
                                 .tag = static_cast<int>(event.order),
                                 .bytes = event.bytes(),
                                 .begin_ns = clock_.ns(event.begin),
                                 .end_ns = end_of(event),
                                 .label = label_});
  }
  void read_abort() {
    const recording::Abort& abort = header_.abort;
    if (abort.state != 2 || abort.code < 0 || abort.code > static_cast<int>(kLastErrorCode) ||
        abort.ticks < header_.first.ticks) {
      return;
    }
    const auto known = [this](int rank) {
      return rank >= 0 && rank < header_.size ? first_rank(rank) : -1;
    };
    record_.abort = RecordedAbort{.code = static_cast<ErrorCode>(abort.code),
                                  .culprit = known(abort.rank),
                                  .reporter = known(abort.reporter),
                                  .text = with_first_ranks(text_of(abort.text), first_ranks_),
                                  .at_ns = clock_.ns(abort.ticks)};
  }
  // REQUIRES: `rank` is a rank of the world.
  int first_rank(int rank) const {
    return first_ranks_.empty() ? rank : first_ranks_[static_cast<std::size_t>(rank)];
  }
  int world_rank(int group, std::uint32_t peer) const {
    const auto& members = record_.groups[static_cast<std::size_t>(group)].members;
    const int rank = peer < members.size() ? members[peer] : -1;
    return rank >= 0 && rank < record_.size ? rank : -1;
  }

  const recording::RecordingHeader& header_;
  const Event* ring_;
  Clock clock_;
  std::vector<int> first_ranks_;
  RankRecord record_;
  std::map<std::uint32_t, std::size_t> operations_;
  double latest_ns_ = 0;
  std::string label_;  // label in the current block
};

}  // namespace

bool is_of_other_version(std::span<const std::byte> file) {
  std::uint64_t magic = 0;
  if (file.size() < sizeof(magic)) {
    return false;
  }
  std::memcpy(&magic, file.data(), sizeof(magic));
  constexpr std::uint64_t kName = (std::uint64_t{1} << 48) - 1;  // without the two digits of the
                                                                 // version
  return magic != recording::kMagic && (magic & kName) == (recording::kMagic & kName);
}

std::vector<RankRecord> read_records(std::span<const std::byte> file) {
  std::vector<RankRecord> records;
  while (file.size() > recording::kRing) {
    // A copy, because the file need not be aligned.
    const auto header = std::make_unique<recording::RecordingHeader>();
    std::memcpy(static_cast<void*>(header.get()), file.data(), sizeof(*header));
    const std::uint64_t bytes = header->bytes;
    if (bytes <= recording::kRing || bytes > file.size() || bytes % recording::kPage != 0) {
      break;  // the position of the next recording is unknown
    }
    if (is_sane(*header)) {
      std::vector<Event> ring(header->events);
      std::memcpy(ring.data(), file.data() + recording::kRing, ring.size() * sizeof(Event));
      if (auto record = Reader(*header, ring.data()).read()) {
        records.push_back(std::move(*record));
      }
    }
    file = file.subspan(bytes);
  }
  return records;
}

}  // namespace unisono::trace
