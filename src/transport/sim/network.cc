#include "transport/sim/network.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace unisono::sim {
namespace {

// Fills released messages, so that a late read is noticed.
constexpr std::byte kPoison{0xdd};
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::uint64_t digest_of(const std::byte* data, std::size_t bytes) noexcept {
  std::uint64_t digest = 0xcbf29ce484222325U;  // FNV-1a
  for (std::size_t i = 0; i < bytes; ++i) {
    digest = (digest ^ static_cast<std::uint64_t>(data[i])) * 0x100000001b3U;
  }
  return digest;
}

}  // namespace

// One rank's view of the network.
class SimNetwork::Port final : public transport::Transport {
 public:
  Port(SimNetwork& network, int rank)
      : network_(network),
        rank_(rank),
        limits_{.inline_bytes = network.options_.inline_bytes,
                .slot_bytes = network.options_.slot_bytes,
                .multicast = network.options_.multicast,
                .through_kernel = network.options_.taken_late != 0},
        room_{.bytes = network.options_.lane_bytes,
              .unreported_bytes = network.options_.unreported_bytes,
              .slots = network.options_.lane_slots} {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return network_.options_.ranks; }
  const transport::Limits& limits() const noexcept override { return limits_; }

  bool peek(int number, transport::Incoming& incoming) noexcept override {
    std::size_t which = 0;
    network_.release_held(rank_);
    SimLane& lane = network_.incoming(rank_, number, which);
    const SimLane::Reader& reader = lane.readers[which];
    if (network_.stopped(rank_) || reader.next == lane.position() ||
        reader.seen[reader.next] > network_.now_) {
      return false;
    }
    const SimMessage& message = lane.at(reader.next);
    network_.check_shared(message, rank_);
    incoming = {.data = message.kind == Kind::offered ? nullptr : message.data,
                .bytes = message.bytes,
                .signature = message.signature};
    return true;
  }

  void release(int number) noexcept override {
    std::size_t which = 0;
    SimLane& lane = network_.incoming(rank_, number, which);
    SimLane::Reader& reader = lane.readers[which];
    transport::Incoming incoming;
    if (!network_.acts(rank_)) {
      return;
    }
    if (!peek(number, incoming)) {
      network_.violated(rank_, "released a message that has not come");
      return;
    }
    SimMessage& message = lane.at(reader.next++);
    if (--message.unread == 0) {
      std::fill(message.copy.begin(), message.copy.end(), kPoison);
    }
    // A reader may report the release of inline bytes later. It must report all other releases at
    // once, because the writer may be waiting for them.
    reader.unreported += message.room();
    if (message.kind == Kind::bytes && reader.unreported <= network_.options_.unreported_bytes) {
      return;
    }
    reader.unreported = 0;
    const std::uint64_t before = reader.telling.empty() ? 0 : reader.telling.back().at;
    reader.telling.push_back(
        {.at = network_.later(network_.options_.told_late, before), .released = reader.next});
  }

  bool send(int number, const void* data, std::size_t bytes,
            std::uint64_t signature) noexcept override {
    network_.release_held(rank_);
    SimLane& lane = network_.outgoing(rank_, number);
    if (bytes > limits_.inline_bytes) {
      network_.violated(rank_, "sent more than inline_bytes at once");
    }
    if (!lane.has_room(Kind::bytes, bytes, room_, network_.now_) || !network_.acts(rank_)) {
      return false;
    }
    const auto* first = static_cast<const std::byte*>(data);
    SimMessage message{.copy = {first, first + bytes}, .bytes = bytes, .signature = signature};
    network_.put(rank_, number, std::move(message));
    return true;
  }

  std::byte* reserve(int number, std::size_t bytes) noexcept override {
    network_.release_held(rank_);
    SimLane& lane = network_.outgoing(rank_, number);
    if (bytes > limits_.slot_bytes) {
      network_.violated(rank_, "reserved more than slot_bytes");
    }
    if (lane.is_reserved) {
      if (bytes > lane.reserved.size()) {
        network_.violated(rank_, "reserved again, and more, before the commit");
      }
      return lane.reserved.data();
    }
    if (!lane.has_room(kind_of(bytes), bytes, room_, network_.now_) || network_.stopped(rank_)) {
      return nullptr;
    }
    lane.reserved.assign(std::max<std::size_t>(bytes, 1), kPoison);
    lane.is_reserved = true;
    return lane.reserved.data();
  }

  void commit(int number, std::size_t bytes, std::uint64_t signature) noexcept override {
    SimLane& lane = network_.outgoing(rank_, number);
    if (!std::exchange(lane.is_reserved, false) || bytes > lane.reserved.size()) {
      network_.violated(rank_, "committed what it had not reserved");
      return;
    }
    if (network_.acts(rank_)) {
      lane.reserved.resize(bytes);
      SimMessage message{.kind = kind_of(bytes), .bytes = bytes, .signature = signature};
      message.copy = std::move(lane.reserved);
      network_.put(rank_, number, std::move(message));
    }
  }

  std::size_t shareable_bytes(int, const void*, std::size_t bytes) noexcept override {
    return (network_.options_.sharing >> static_cast<unsigned>(rank_) & 1) != 0 ? bytes : 0;
  }
  bool share(int number, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override {
    return refer(Kind::shared, number, data, bytes, signature);
  }
  bool can_offer(int, const void*, std::size_t bytes) noexcept override {
    return bytes > limits_.inline_bytes &&
           (network_.options_.offering >> static_cast<unsigned>(rank_) & 1) != 0;
  }
  bool offer(int number, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override {
    return refer(Kind::offered, number, data, bytes, signature);
  }
  // Sometimes returns fewer bytes than requested, as a real transport may.
  std::size_t fetch(int number, std::size_t offset, void* target,
                    std::size_t bytes) noexcept override {
    std::size_t which = 0;
    SimLane& lane = network_.incoming(rank_, number, which);
    transport::Incoming incoming;
    if (network_.stopped(rank_)) {
      return 0;
    }
    if (!peek(number, incoming) || incoming.data != nullptr || offset > incoming.bytes ||
        bytes > incoming.bytes - offset) {
      network_.violated(rank_, "fetched what was not offered");
      return 0;
    }
    const std::size_t part = network_.part_of(bytes);
    std::memcpy(target, lane.at(lane.readers[which].next).data + offset, part);
    return part;
  }
  transport::Mark mark(int number) const noexcept override {
    return network_.outgoing(rank_, number).position();
  }
  bool drained(int number, transport::Mark mark) noexcept override {
    network_.release_held(rank_);
    return network_.outgoing(rank_, number).drained(mark, network_.now_);
  }
  bool flush(int /*lane*/) noexcept override {
    network_.release_held(rank_);
    return network_.held_[static_cast<std::size_t>(rank_)].empty() || network_.stopped(rank_);
  }
  int slowest_reader(int number) noexcept override {
    return network_.outgoing(rank_, number).slowest_reader(network_.now_);
  }

 private:
  bool refer(Kind kind, int number, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept {
    network_.release_held(rank_);
    SimLane& lane = network_.outgoing(rank_, number);
    if (!lane.has_room(kind, bytes, room_, network_.now_) || !network_.acts(rank_)) {
      return false;
    }
    SimMessage message{.kind = kind,
                       .data = static_cast<const std::byte*>(data),
                       .bytes = bytes,
                       .signature = signature};
    message.digest = digest_of(message.data, bytes);
    network_.put(rank_, number, std::move(message));
    return true;
  }
  Kind kind_of(std::size_t bytes) const noexcept {
    return bytes <= limits_.inline_bytes ? Kind::bytes : Kind::slot;
  }
  SimNetwork& network_;
  int rank_;
  transport::Limits limits_;
  LaneLimits room_;
};

SimNetwork::SimNetwork(const NetworkOptions& options)
    : options_(options), random_(options.seed), held_(static_cast<std::size_t>(options.ranks)) {
  const int n = options.ranks;
  for (int from = 0; from < n; ++from) {
    for (int lane = 0; lane <= n; ++lane) {
      lanes_.push_back({});
      lanes_.back().from = from;
      for (int rank = 0; rank < n; ++rank) {
        if (lane == rank || (lane == n && rank != from)) {
          lanes_.back().readers.push_back({.rank = rank});
        }
      }
    }
    ports_.push_back(std::make_unique<Port>(*this, from));
  }
}

SimNetwork::~SimNetwork() = default;

transport::Transport& SimNetwork::transport(int rank) {
  return *ports_[static_cast<std::size_t>(rank)];
}

SimLane& SimNetwork::outgoing(int from, int lane) {
  return lanes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(options_.ranks + 1) +
                static_cast<std::size_t>(lane)];
}

SimLane& SimNetwork::incoming(int to, int lane, std::size_t& reader) {
  const int n = options_.ranks;
  reader = 0;
  if (lane < n) {
    return outgoing(lane, to);
  }
  const int from = lane - n;
  reader = static_cast<std::size_t>(to < from ? to : to - 1);
  return outgoing(from, n);
}

bool SimNetwork::pass(std::uint64_t ticks) {
  now_ += ticks;
  bool changed = false;
  for (; !changes_.empty() && changes_.front() <= now_; changes_.pop_back()) {
    std::pop_heap(changes_.begin(), changes_.end(), std::greater<>());
    changed = true;
  }
  return changed;
}

bool SimNetwork::pass_to_next_change() {
  return !changes_.empty() && pass(changes_.front() - std::min(changes_.front(), now_));
}

// Returns the time of an event that takes up to `most` ticks after `not_before`.
std::uint64_t SimNetwork::later(std::uint64_t most, std::uint64_t not_before) {
  if (most == 0) {
    return std::max(not_before, now_);
  }
  const std::uint64_t longest = random_.one_in(16) ? 16 * most : most;
  const std::uint64_t at = std::max(not_before, now_ + random_.below(longest + 1));
  if (at > now_) {
    changes_.push_back(at);
    std::push_heap(changes_.begin(), changes_.end(), std::greater<>());
  }
  return at;
}

std::size_t SimNetwork::part_of(std::size_t bytes) {
  if (options_.delay == 0 || random_.one_in(4)) {
    return bytes;
  }
  return 1 + random_.below(bytes);
}

// Returns true if a rank's next action on its lanes has an effect.
bool SimNetwork::acts(int rank) noexcept {
  const InjectedFault& fault = options_.fault;
  if (fault.kind == InjectedFault::Kind::stops && fault.rank == rank && done_++ == fault.at) {
    struck_ = has_stopped_ = true;
  }
  return !stopped(rank);
}

void SimNetwork::put(int from, int number, SimMessage message) noexcept {
  if (!message.refers()) {
    message.data = message.copy.data();
  }
  const InjectedFault& fault = options_.fault;
  if (fault.kind != InjectedFault::Kind::none && fault.kind != InjectedFault::Kind::stops &&
      fault.rank == from && done_++ == fault.at) {
    damage(message);
  }
  SimLane& lane = outgoing(from, number);
  message.unread = static_cast<int>(lane.readers.size());
  auto& held = held_[static_cast<std::size_t>(from)];
  if (options_.taken_late != 0 && (!held.empty() || random_.one_in(4))) {
    held.push_back(
        {.until = later(options_.taken_late, 0), .lane = number, .position = lane.position()});
    for (SimLane::Reader& reader : lane.readers) {
      reader.seen.push_back(kNever);
    }
  } else {
    for (SimLane::Reader& reader : lane.readers) {
      const std::uint64_t before = reader.seen.empty() ? 0 : reader.seen.back();
      reader.seen.push_back(later(options_.delay, before));
    }
  }
  lane.add(std::move(message));
}

// The held data, which the system accepts now, is in transit from now on.
void SimNetwork::release_held(int from) noexcept {
  auto& held = held_[static_cast<std::size_t>(from)];
  while (!held.empty() && held.front().until <= now_ && !stopped(from)) {
    SimLane& lane = outgoing(from, held.front().lane);
    for (SimLane::Reader& reader : lane.readers) {
      const std::size_t position = held.front().position;
      const std::uint64_t before = position == 0 ? 0 : reader.seen[position - 1];
      reader.seen[position] = later(options_.delay, before);
    }
    held.erase(held.begin());
    changes_.push_back(now_);  // a rank that was asked before sees something new
    std::push_heap(changes_.begin(), changes_.end(), std::greater<>());
  }
}

void SimNetwork::damage(SimMessage& message) noexcept {
  struck_ = true;
  switch (options_.fault.kind) {
    case InjectedFault::Kind::signature:
      message.signature ^= 0x5851f42d4c957f2dU;
      break;
    case InjectedFault::Kind::shorter:
      message.bytes /= 2;
      break;
    case InjectedFault::Kind::longer:
      message.copy.assign(message.data, message.data + message.bytes);
      message.copy.resize(message.bytes + 1 + random_.below(2 * message.bytes + 1), kPoison);
      message.data = message.copy.data();
      message.bytes = message.copy.size();
      break;
    default:
      break;
  }
  if (message.refers()) {
    message.digest = digest_of(message.data, message.bytes);
  }
}

void SimNetwork::violated(int rank, const char* what) {
  if (violation_.empty()) {
    violation_ = "rank " + std::to_string(rank) + " " + what;
  }
}

void SimNetwork::check_shared(const SimMessage& message, int reader) {
  if (message.refers() && digest_of(message.data, message.bytes) != message.digest) {
    violated(reader, "finds that memory shared with it has changed");
  }
}

}  // namespace unisono::sim
