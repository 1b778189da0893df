#include "record/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string_view>
#include <utility>

#include "record/numbers.h"
#include "record/replay_calls.h"
#include "record/replay_transfers.h"

namespace unisono::cli {
namespace {

using engine::ReplayedOperation;
using engine::ReplayedPass;
using nlohmann::ordered_json;
using trace::recording::EventKind;
using Outcome = ReplayedOperation::Outcome;

std::uint64_t scramble(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27) * 0x94d049bb133111ebU;
  return value ^ value >> 31;
}

std::uint64_t seed_of(int rank, std::uint64_t number) {
  return scramble(number * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank) + 1);
}

// An action of a rank at a time: it began, did a pass, or ended.
struct ReplayAction {
  enum class What : std::uint8_t { begins, passes, ends };
  double at_us = 0;
  What what = What::begins;
  RecordedCall* call = nullptr;  // nullptr: the action belongs to a transfer
  int rank = 0;                  // of the group
  ReplayedPass pass = {};
  const PlayedTransfer* transfer = nullptr;
};

EventKind kind_of(const std::string& name) {
  return name == "send"      ? EventKind::send
         : name == "receive" ? EventKind::receive
         : name == "reduce"  ? EventKind::reduce
                             : EventKind::copy;
}

class Replayer {
 public:
  explicit Replayer(const ordered_json& trace) : trace_(trace), calls_(trace), transfers_(trace) {}

  Replay run() {
    for (const auto& [key, call] : calls_.all()) {
      if (call.left_out.empty()) {
        result_.is_nothing = false;
      } else {
        ++result_.left_out[call.left_out];
      }
    }
    result_.transfers_left_out = transfers_.left_out();
    result_.is_nothing &= transfers_.all().empty();
    queue_deeds();
    queue_transfers();
    for (auto& [rank, queue] : queues_) {
      std::stable_sort(
          queue.begin(), queue.end(),
          [](const ReplayAction& a, const ReplayAction& b) { return a.at_us < b.at_us; });
    }
    while (result_.wrong.empty() && step()) {
    }
    tell_waits();
    return std::move(result_);
  }

 private:
  void queue_deeds() {
    const ordered_json& events = trace_.at("events");
    std::map<std::size_t, std::vector<std::size_t>> by_op;
    for (std::size_t i = 0; i < events.at("op").size(); ++i) {
      by_op[count_at(trace_, "events", "op", i)].push_back(i);
    }
    for (std::size_t row = 0; row < calls_.rows().size(); ++row) {
      const auto [call, rank] = calls_.rows()[row];
      if (call == nullptr || !call->left_out.empty()) {
        continue;
      }
      auto& queue = queues_[call->world_rank(rank)];
      const RecordedCall::Part& part = call->parts.at(rank);
      queue.push_back({.at_us = part.begin_us, .call = call, .rank = rank});
      std::vector<ReplayAction> passes;
      for (const std::size_t i : by_op[row]) {
        passes.push_back({.at_us = std::max(part.begin_us, events.at("end_us").at(i).get<double>()),
                          .what = ReplayAction::What::passes,
                          .call = call,
                          .rank = rank,
                          .pass = pass_of(events, i, *call)});
      }
      std::stable_sort(
          passes.begin(), passes.end(),
          [](const ReplayAction& a, const ReplayAction& b) { return a.at_us < b.at_us; });
      queue.insert(queue.end(), passes.begin(), passes.end());
      if (std::isfinite(part.end_us)) {
        queue.push_back({.at_us = std::max(part.end_us, queue.back().at_us),
                         .what = ReplayAction::What::ends,
                         .call = call,
                         .rank = rank});
      }
    }
  }
  void queue_transfers() {
    for (const PlayedTransfer& transfer : transfers_.all()) {
      auto& queue = queues_[transfer.rank()];
      queue.push_back({.at_us = transfer.begin_us, .transfer = &transfer});
      if (std::isfinite(transfer.end_us)) {
        queue.push_back(
            {.at_us = transfer.end_us, .what = ReplayAction::What::ends, .transfer = &transfer});
      }
    }
  }
  ReplayedPass pass_of(const ordered_json& events, std::size_t i, const RecordedCall& call) const {
    constexpr std::int64_t kMostSteps = std::numeric_limits<std::uint32_t>::max();
    const bool has_peer = !events.at("peer").at(i).is_null();
    return {
        .kind = kind_of(events.at("kind").at(i)),
        .peer = has_peer ? call.member(rank_at(trace_, "events", "peer", i)) : -1,
        .step = static_cast<std::uint32_t>(whole_at(trace_, "events", "step", i, 0, kMostSteps)),
        .bytes = count_at(trace_, "events", "bytes", i)};
  }

  // Performs the earliest possible action. A rank reads the clock after it has sent, so its time
  // may be late.
  bool step() {
    std::vector<std::deque<ReplayAction>*> busy;
    for (auto& [rank, queue] : queues_) {
      if (!queue.empty()) {
        busy.push_back(&queue);
      }
    }
    std::stable_sort(busy.begin(), busy.end(),
                     [](auto* a, auto* b) { return a->front().at_us < b->front().at_us; });
    for (auto* const queue : busy) {
      const ReplayAction deed = queue->front();
      if (try_to(deed) == Outcome::done) {
        const double behind = deed.at_us - busy.front()->front().at_us;
        result_.later += behind > 0 ? 1 : 0;
        result_.later_us = std::max(result_.later_us, behind);
        queue->pop_front();
        return true;
      }
      if (!result_.wrong.empty()) {
        return false;
      }
    }
    for (const auto* const queue : busy) {
      if (const std::size_t sent = send_for_the_dead(queue->front()); sent != 0) {
        result_.unrecorded += sent;
        return true;
      }
    }
    if (!busy.empty()) {
      const ReplayAction& deed = busy.front()->front();
      result_.wrong = describe(deed) + ", and what that needs nobody recorded";
    }
    return false;
  }
  Outcome try_to_transfer(const ReplayAction& deed) {
    if (deed.what == ReplayAction::What::begins) {
      transfers_.begin(*deed.transfer);
      return Outcome::done;
    }
    if (!transfers_.end(*deed.transfer)) {
      return Outcome::waits;
    }
    ++result_.transfers;
    return Outcome::done;
  }
  Outcome try_to(const ReplayAction& deed) {
    if (deed.transfer != nullptr) {
      return try_to_transfer(deed);
    }
    RecordedCall& call = *deed.call;
    switch (deed.what) {
      case ReplayAction::What::begins:
        begin(call, deed.rank);
        return Outcome::done;
      case ReplayAction::What::passes: {
        const Outcome outcome = call.run->play(deed.rank, deed.pass);
        result_.passes += outcome == Outcome::done ? 1 : 0;
        if (outcome == Outcome::unknown) {
          result_.wrong = describe(deed) + ", which its schedule does not have";
        }
        return outcome;
      }
      case ReplayAction::What::ends:
        if (!call.run->finish(deed.rank)) {
          result_.wrong = describe(deed) + " before all of it was done";
          return Outcome::unknown;
        }
        result_.results +=
            digest(call.run->output(deed.rank), call.world_rank(deed.rank), call.number);
        if (--call.open == 0) {
          ++result_.operations;
          call.run = nullptr;
        }
        return Outcome::done;
    }
    return Outcome::unknown;
  }
  static void begin(RecordedCall& call, int rank) {
    if (call.run == nullptr) {
      call.make_run();
      for (int i = 0; i < static_cast<int>(call.members.size()); ++i) {
        fill_input(call.run->input(i), size_of(call.call.dtype), call.world_rank(i), call.number);
      }
    }
    call.run->begin(rank);
  }
  bool is_over(int world_rank) const {
    const auto found = queues_.find(world_rank);
    return found == queues_.end() || found->second.empty();
  }
  // Sends messages for a rank that was killed, because it may have died after sending a message and
  // before recording it. Returns the number of messages that were sent; the rank may have waited
  // for another rank that was killed.
  std::size_t send_for_the_dead(const ReplayAction& deed) {
    if (deed.what != ReplayAction::What::passes || deed.pass.kind == EventKind::send) {
      return 0;
    }
    const auto is_dead = [&](int rank) { return is_over(deed.call->world_rank(rank)); };
    for (const int from : deed.call->run->missing(deed.rank, deed.pass)) {
      const std::size_t sent =
          is_dead(from) ? deed.call->run->send_unrecorded(from, deed.rank, is_dead) : 0;
      if (sent != 0) {
        return sent;
      }
    }
    return 0;
  }
  static std::string describe(const ReplayAction& deed) {
    if (deed.transfer != nullptr) {
      return deed.transfer->text();
    }
    constexpr std::string_view kNames[] = {"", "", "sends", "receives", "reduces", "copies", ""};
    const std::string who = fmt::format("rank {}", deed.call->world_rank(deed.rank));
    if (deed.what != ReplayAction::What::passes) {
      return fmt::format("{} {} {}", who, deed.what == ReplayAction::What::ends ? "ends" : "begins",
                         deed.call->label());
    }
    return fmt::format(
        "{} {} {} bytes{} at step {} of {}", who, kNames[static_cast<std::size_t>(deed.pass.kind)],
        deed.pass.bytes,
        deed.pass.peer < 0
            ? ""
            : fmt::format(" {} rank {}", deed.pass.kind == EventKind::send ? "to" : "from",
                          deed.call->world_rank(deed.pass.peer)),
        deed.pass.step + 1, deed.call->label());
  }

  void tell_waits() {
    for (const auto& [key, call] : calls_.all()) {
      for (int rank = 0; call.run != nullptr && rank < static_cast<int>(call.members.size());
           ++rank) {
        const auto waits = call.run->waits(rank);
        if (!waits.empty()) {
          result_.waits.push_back(fmt::format(
              "rank {} waits for rank {} at step {} of {}", call.world_rank(rank),
              call.world_rank(waits.front().rank), waits.front().step + 1, call.label()));
        }
      }
    }
    const std::vector<std::string> waits = transfers_.waits();
    result_.waits.insert(result_.waits.end(), waits.begin(), waits.end());
  }

  const ordered_json& trace_;
  RecordedCalls calls_;
  PlayedTransfers transfers_;
  std::map<int, std::deque<ReplayAction>> queues_;  // by rank of the world
  Replay result_;
};

}  // namespace

void fill_input(std::span<std::byte> input, std::size_t element, int rank, std::uint64_t number) {
  const std::uint64_t seed = seed_of(rank, number);
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = static_cast<std::byte>(scramble(seed + i / 8) >> i % 8 * 8);
    if (i % element == element - 1) {
      input[i] &= std::byte{0xbf};  // floats get an exponent below the highest one
    }
  }
}

std::uint64_t digest(std::span<const std::byte> output, int rank, std::uint64_t number) {
  std::uint64_t value = seed_of(rank, number);
  for (const std::byte one : output) {
    value = (value ^ static_cast<std::uint64_t>(one)) * 0x100000001b3U;  // FNV-1a
  }
  return scramble(value);
}

Replay replay(const ordered_json& trace) {
  return Replayer(trace).run();
}

}  // namespace unisono::cli
