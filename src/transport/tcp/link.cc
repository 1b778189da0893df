#include "transport/tcp/link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace unisono::tcp {

Link::Link(int peer, std::vector<Channel> streams, std::uint32_t slots, LinkEvents* events)
    : peer_(peer), slots_per_lane_(slots), streams_(streams.size()), events_(events) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    encrypted_ = encrypted_ || streams[i].encrypted();
    checksum_ = checksum_ || streams[i].checksum();
    streams_[i].channel = std::move(streams[i]);
  }
}

Link::~Link() {
  if (waits_) {
    events_->backlogs.fetch_sub(1, std::memory_order_relaxed);
  }
  if (unread_) {
    events_->unread.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Link::fail(Reason reason, int error, const char* detail) noexcept {
  if (!gone()) {
    failure_ = {.peer = peer_, .reason = reason, .error = error, .detail = detail};
    int nobody = -1;
    events_->first_failed.compare_exchange_strong(nobody, peer_);
    events_->failed();
    note_waiting();
    note_unread();
  }
}

bool Link::half_dead() const noexcept {
  return !gone() && std::any_of(streams_.begin(), streams_.end(),
                                [](const Stream& one) { return one.ended || one.broken; });
}

void Link::fail_half_dead() noexcept {
  for (const Stream& one : streams_) {
    if (one.error != 0 && one.error != EPIPE && one.error != ECONNRESET) {
      return fail(Reason::reset, one.error);
    }
  }
  fail(Reason::closed);
}

Lane* Link::add_lane(const LaneKey& key) noexcept {
  try {
    auto lane = std::make_unique<Lane>(key);
    if (lane->in_memory.data() == nullptr || lane->out_memory.data() == nullptr) {
      return nullptr;
    }
    in_turn_.reserve(in_turn_.size() + 1);
    latest_ = lanes_.emplace(key, std::move(lane)).first->second.get();
    in_turn_.push_back(latest_);
    return latest_;
  } catch (...) {
    return nullptr;
  }
}

Lane* Link::open(const LaneKey& key) noexcept {
  const auto early = lanes_.find(key);
  Lane* lane = early != lanes_.end() ? early->second.get() : add_lane(key);
  if (lane != nullptr) {
    lane->open = true;
  }
  return lane;
}

// What has not begun to be written is dropped. The rest of what has is kept: the frames of others
// come behind it.
void Link::close(Lane* lane) noexcept {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& to = streams_[i];
    to.waiting -= lane->waiting[i];
    if (to.partial_done != 0 && to.partial.lane == lane) {
      try {
        if (gone()) {  // nobody wants the rest
          to.partial_done = 0;
          to.broken = true;
        } else {
          to.orphan.assign(to.partial.data, to.partial.data + to.partial.bytes);
          to.partial.data = to.orphan.data();
        }
      } catch (...) {
        fail(Reason::memory);
      }
      to.partial.lane = nullptr;
    }
    if (to.reading && to.lane == lane) {
      to.parked = false;
      to.lane = nullptr;
      to.target = nullptr;
    }
  }
  for (std::uint32_t number = lane->drained; number != lane->sent; ++number) {
    const Lane::Out& message = lane->outgoing(number);
    if (!message.written && message.storage == Lane::Storage::slot) {
      out_slots_.give_back(message.data);
    }
  }
  if (lane->reserved != nullptr) {
    out_slots_.give_back(lane->reserved);
  }
  for (Lane::In& message : lane->in) {
    if (message.data != nullptr && !is_short(message.bytes)) {
      in_slots_.give_back(message.data);
    }
  }
  credits_due_ -= lane->credit_due ? 1 : 0;
  closed_[closed_count_++ % kClosedLanes] = lane->key;
  latest_ = latest_ == lane ? nullptr : latest_;
  std::erase(in_turn_, lane);
  lanes_.erase(lane->key);
  note_waiting();
}

bool Link::peek(Lane& lane, transport::Incoming& message) noexcept {
  const Lane::In& next = lane.incoming(lane.next);
  if (!next.complete) {
    receive(nullptr, &lane);
    if (!next.complete) {
      return false;
    }
  }
  message = {.data = next.data, .bytes = next.bytes, .signature = next.signature};
  return true;
}

void Link::release(Lane& lane) noexcept {
  Lane::In& message = lane.incoming(lane.next);
  if (is_short(message.bytes)) {
    lane.in_ring.release(message.data, message.bytes);
  } else if (message.data != nullptr) {
    in_slots_.give_back(message.data);
  }
  lane.held.remove(message.bytes);
  lane.unreported.add(message.bytes);
  message = {};
  ++lane.next;
  if (lane.unreported.is_worth_a_frame(slots_per_lane_)) {
    tell(lane);
  }
}

}  // namespace unisono::tcp
