// Progress: if every lane holds one message, all waits are known in advance, so a schedule finishes
// if and only if its waits have no cycle.
//
//  send      waits for its data, for the sender's previous send, and until the previous message on
//            its lane has been taken
//  receive   waits for its send (and so for all earlier receives on its lane), and for its target
//  local     waits for its data and its target at the same time, because no lane holds a copy
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/grouped.h"
#include "schedule/proofs.h"

namespace unisono {
namespace {

class Waits {
 public:
  Waits(const Schedule& schedule, Aliasing aliasing)
      : schedule_(schedule), waiting_for_(2 * schedule.moves.size(), 0) {
    const Dependencies data = dependencies(schedule, aliasing);
    for (std::size_t move = 0; move < schedule.moves.size(); ++move) {
      add_data(move, data);
    }
    add_order();
  }

  // Runs all events that can run. Each move that is left has waiting_for > 0 in one of its events.
  void run() {
    const Grouped<std::uint32_t> wakes(waiting_for_.size(), [this](const auto& visit) {
      for (const auto& [event, on] : edges_) {
        visit(on, event);
      }
    });
    std::vector<std::uint32_t> ready;
    for (std::uint32_t event = 0; event < waiting_for_.size(); ++event) {
      if (waiting_for_[event] == 0) {
        ready.push_back(event);
      }
    }
    while (!ready.empty()) {
      const std::uint32_t done = ready.back();
      ready.pop_back();
      for (const std::uint32_t event : wakes.of(done)) {
        if (--waiting_for_[event] == 0) {
          ready.push_back(event);
        }
      }
    }
  }

  bool stuck(std::uint32_t event) const { return waiting_for_[event] > 0; }

 private:
  void wait(std::uint32_t event, std::uint32_t on) {
    edges_.emplace_back(event, on);
    ++waiting_for_[event];
  }

  void add_data(std::size_t index, const Dependencies& data) {
    const Move& move = schedule_.moves[index];
    const std::uint32_t read = read_event(index);
    const std::uint32_t write = write_event(index);
    for (const std::uint32_t on : data.of(read)) {
      wait(read, on);
    }
    const std::uint32_t writer = move.from == move.to ? read : write;
    for (const std::uint32_t on : data.of(write)) {
      if (on != read) {
        wait(writer, on);
      }
    }
    wait(write, read);
  }

  void add_order() {
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<std::size_t> last_send(static_cast<std::size_t>(schedule_.ranks), kNone);
    std::unordered_map<std::uint64_t, std::size_t> last_lane;
    for (std::size_t index = 0; index < schedule_.moves.size(); ++index) {
      const Move& move = schedule_.moves[index];
      if (move.from == move.to) {
        continue;
      }
      std::size_t& sent = last_send[static_cast<std::size_t>(move.from)];
      if (sent != kNone) {
        wait(read_event(index), read_event(sent));
      }
      sent = index;
      const std::uint64_t lane =
          (static_cast<std::uint64_t>(move.from) << 32) | static_cast<std::uint32_t>(move.to);
      const auto [before, first_on_lane] = last_lane.try_emplace(lane, index);
      if (!first_on_lane) {
        wait(read_event(index), write_event(std::exchange(before->second, index)));
      }
    }
  }

  const Schedule& schedule_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> waiting_for_;
};

Finding stuck(const Move& move, bool sending, Aliasing aliasing) {
  Finding finding{
      .kind = aliasing == Aliasing::none ? Finding::Kind::progress : Finding::Kind::in_place,
      .mistake = Finding::Mistake::cannot_copy,
      .step = move.step,
      .rank = sending ? move.from : move.to,
      .chunk = move.chunk,
      .line = move.line};
  if (move.from != move.to) {
    finding.mistake = sending ? Finding::Mistake::cannot_send : Finding::Mistake::cannot_receive;
    finding.arguments = {sending ? move.to : move.from};
  }
  return finding;
}

}  // namespace

void check_progress(const Schedule& schedule, Aliasing aliasing, Findings& findings) {
  Waits waits(schedule, aliasing);
  waits.run();
  // Reports only the first wait of each rank, because the rank's later waits follow from it.
  std::vector<bool> told(static_cast<std::size_t>(schedule.ranks), false);
  for (std::size_t index = 0; index < schedule.moves.size() && !findings.full(); ++index) {
    const Move& move = schedule.moves[index];
    const bool sending = waits.stuck(read_event(index));
    if (!sending && !waits.stuck(write_event(index))) {
      continue;
    }
    const auto rank = static_cast<std::size_t>(sending ? move.from : move.to);
    if (!told[rank]) {
      told[rank] = true;
      findings.add(stuck(move, sending, aliasing));
    }
  }
}

}  // namespace unisono
