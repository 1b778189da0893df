#include "cost/hosts_time.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

#include "base/collectives.h"
#include "cost/cost.h"
#include "cost/play.h"

namespace unisono::cost {
namespace {

// Building a schedule with more moves takes too long.
constexpr double kMostMoves = 1e6;

struct ReadyTime {
  double us = 0;
};

void extend(ReadyTime& time, const ReadyTime& other) {
  time.us = std::max(time.us, other.us);
}

// The size of a message in bytes.
struct Sent {
  int from = 0;
  int to = 0;
  double bytes = 0;
  double reduced = 0;
  double coded = 0;
};

// The times at which ports and links become free. All times are in one vector, so that a step can
// be compared with the previous step.
class Timetable {
 public:
  Timetable(const HostsNetwork& network, std::span<const int> host_of, int hosts,
            const HostsOptions& options, int ports)
      : network_(network),
        host_of_(host_of),
        options_(options),
        ports_(static_cast<std::size_t>(ports)),
        ranks_(host_of.size()),
        out_(0),
        in_(ranks_ * ports_),
        began_(2 * ranks_ * ports_),
        link_(began_ + 2 * ranks_),
        host_(link_ + 2 * ranks_),
        received_(host_ + 2 * static_cast<std::size_t>(hosts)),
        arrived_(received_ + ranks_),
        times_(arrived_ + ranks_) {}

  double received(int rank) const { return times_[received_ + at(rank)]; }

  double send(const Sent& message, double ready) {
    double* const out = &times_[out_ + at(message.from) * ports_];
    double* const in = &times_[in_ + at(message.to) * ports_];
    if (message.from == message.to) {
      // A local reduction uses the receiving port; a copy costs nothing.
      const double takes = message.reduced * options_.gamma_us_per_byte +
                           2 * message.coded * options_.coding_us_per_byte;
      return takes > 0 ? take(in, std::max(ready, *in) + takes) : ready;
    }
    double start = std::max({ready, *out, *in});
    if (ports_ > 1) {
      double& sender = times_[began_ + 2 * at(message.from)];
      double& receiver = times_[began_ + 2 * at(message.to) + 1];
      start = sender = receiver = std::max({start, sender, receiver});
    }
    const double coding = message.coded * options_.coding_us_per_byte;
    const double end = flow(message, start + network_.overhead_us + coding);
    take(out, end);
    return take(in, end + message.reduced * options_.gamma_us_per_byte + coding);
  }

  void arrive(int rank, double when) {
    double& arrived = times_[arrived_ + at(rank)];
    arrived = std::max(arrived, when);
  }
  // Makes the data that the step delivered available to its ranks.
  void end_step() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      times_[received_ + rank] = times_[arrived_ + rank];
    }
  }

  double last() const { return *std::max_element(times_.begin(), times_.end()); }

  std::vector<double>& times() { return times_; }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  // Returns when bytes that leave at `begin` have arrived.
  double flow(const Sent& message, double begin) {
    double& out = times_[link_ + 2 * at(message.from)];
    double& in = times_[link_ + 2 * at(message.to) + 1];
    const int from = host_of_[at(message.from)];
    const int to = host_of_[at(message.to)];
    const double inside = message.bytes / network_.inside_bytes_per_us;
    if (from == to) {
      begin = std::max({begin + network_.inside_us, out, in});
      return out = in = begin + inside;
    }
    double& host_out = times_[host_ + 2 * at(from)];
    double& host_in = times_[host_ + 2 * at(to) + 1];
    begin = std::max({begin + network_.between_us, out, in, host_out, host_in});
    out = in = begin + inside;
    return host_out = host_in = begin + message.bytes / network_.between_bytes_per_us;
  }

  // Ports stay sorted by the time at which they become free.
  double take(double* ports, double until) const {
    ports[0] = until;
    for (std::size_t i = 0; i + 1 < ports_ && ports[i] > ports[i + 1]; ++i) {
      std::swap(ports[i], ports[i + 1]);
    }
    return until;
  }

  const HostsNetwork& network_;
  std::span<const int> host_of_;
  const HostsOptions& options_;
  std::size_t ports_;
  std::size_t ranks_;
  // Offsets of each kind of time in `times_`.
  std::size_t out_;
  std::size_t in_;
  std::size_t began_;  // by sender and receiver: start of the latest message
  std::size_t link_;
  std::size_t host_;
  std::size_t received_;  // in earlier steps
  std::size_t arrived_;   // in this step or earlier ones
  std::vector<double> times_;
};

// Returns true if the ranks could send all their messages at once.
bool nobody_waits(const CompactSchedule& schedule) {
  const std::vector<CompactPhase>& phases = schedule.phases;
  return std::all_of(phases.begin(), phases.end(), [&](const CompactPhase& phase) {
    return !phase.waits || (phases.size() == 1 && phase.steps == 1);
  });
}

// Returns the time by which a step advanced everything that it changed, if it is equal for all;
// else nothing.
std::optional<double> period(std::span<const double> before, std::span<const double> after) {
  constexpr double kRounding = 1e-12;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (after[i] != before[i]) {
      least = std::min(least, after[i] - before[i]);
      most = std::max(most, after[i] - before[i]);
    }
  }
  const bool is_one = most - least <= kRounding * std::max(1.0, after[0]);
  return is_one ? std::optional(most) : std::nullopt;
}

}  // namespace

HostsTime::HostsTime(const HostsNetwork& network, std::span<const int> hosts) : network_(network) {
  std::map<int, int> numbers;
  for (const int host : hosts) {
    host_of_.push_back(numbers.try_emplace(host, static_cast<int>(numbers.size())).first->second);
  }
  hosts_ = static_cast<int>(numbers.size());
}

std::optional<double> HostsTime::time_us(const Algorithm& algorithm, const Shape& shape,
                                         double vector_bytes, const HostsOptions& options) const {
  if (algorithm.compact == nullptr) {
    const double moves = static_cast<double>(algorithm.chunks_sent(shape)) * shape.ranks;
    if (moves > kMostMoves) {
      return std::nullopt;
    }
    return time_us(build_schedule(algorithm, shape), vector_bytes, options);
  }
  const CompactSchedule schedule = algorithm.compact(shape);
  const bool pairs = cut_of(schedule.collective) == VectorCut::pairs;
  const double chunk =
      !moves_data(schedule.collective)
          ? 0
          : vector_bytes * (pairs ? schedule.ranks : 1) / static_cast<double>(schedule.chunks);
  Timetable timetable(network_, host_of_, hosts_, options,
                      nobody_waits(schedule) ? options.at_once : 1);
  double played = 0;
  for (const CompactPhase& phase : schedule.phases) {
    const auto messages = static_cast<double>(message_count(phase));
    std::vector<double> before;
    std::optional<double> last_period;
    for (std::int64_t step = 0; step < phase.steps; ++step) {
      played += messages;
      if (played > options.most_messages) {
        return std::nullopt;
      }
      before = timetable.times();
      for_each_message(phase, [&](const CompactMessage& message) {
        const Sent sent{.from = message.from,
                        .to = message.to,
                        .bytes = chunk * static_cast<double>(message.chunks),
                        .reduced = chunk * static_cast<double>(message.reduced)};
        timetable.arrive(message.to,
                         timetable.send(sent, phase.waits ? timetable.received(message.from) : 0));
      });
      timetable.end_step();
      const std::optional<double> moved = period(before, timetable.times());
      if (moved.has_value() && moved == last_period) {
        const auto left = static_cast<double>(phase.steps - 1 - step);
        for (std::size_t i = 0; i < before.size(); ++i) {
          double& time = timetable.times()[i];
          time += time != before[i] ? left * *moved : 0;
        }
        break;
      }
      last_period = moved;
    }
  }
  return timetable.last();
}

std::optional<double> HostsTime::time_us(const Schedule& schedule, double vector_bytes,
                                         const HostsOptions& options) const {
  const double chunk = chunk_bytes(schedule, vector_bytes);
  Timetable timetable(network_, host_of_, hosts_, options, 1);
  double played = 0;
  MessagePlayer<ReadyTime>(schedule).run([&](const JoinedMessage& message, const ReadyTime& ready) {
    played += message.from == message.to ? 0 : 1;
    return ReadyTime{timetable.send({.from = message.from,
                                     .to = message.to,
                                     .bytes = chunk * message.chunks,
                                     .reduced = chunk * message.reduced,
                                     .coded = chunk * message.coded},
                                    ready.us)};
  });
  return played > options.most_messages ? std::nullopt : std::optional(timetable.last());
}

}  // namespace unisono::cost
