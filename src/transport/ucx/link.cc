#include "transport/ucx/link.h"

#include <algorithm>
#include <utility>

namespace unisono::ucx {

bool Shared::progress() noexcept {
  const bool advanced = worker->progress();
  while (!announced.empty()) {
    UcxLane* const lane = announced.back();
    announced.pop_back();
    lane->link->receive_ahead(*lane);
  }
  return advanced;
}

void UcxLink::connect(int rank, const Introduction& peer) noexcept {
  my_pass_ = peer.pass;
  from_ = static_cast<std::uint32_t>(rank) << 8;
  endpoint_.connect(peer);
  if (endpoint_.is_open()) {
    hello_.link = this;
    leave_.link = this;
    post_word(hello_, header_of(nullptr, MessageKind::hello));
  }
}

std::unique_ptr<UcxLane> UcxLink::make_lane(const LaneKey& key) {
  auto lane = std::make_unique<UcxLane>(this, key);
  if (lane->in_memory.data() == nullptr || lane->out_memory.data() == nullptr) {
    return nullptr;
  }
  // So that closing needs no memory.
  closing_.reserve(closing_.size() + lanes_.in_turn().size() + 1);
  return lane;
}

UcxLane* UcxLink::open(const LaneKey& key) noexcept {
  return lanes_.open(key, [this, &key] { return make_lane(key); });
}

// nullptr: the message is to be dropped, or the link has failed.
UcxLane* UcxLink::lane_of(const MessageHeader& header) noexcept {
  const LaneKey key{.group = header.group, .epoch = header.epoch};
  UcxLane* lane = nullptr;
  switch (lanes_.find(key, lane, [this, &key] { return make_lane(key); })) {
    case LaneTable::Outcome::found:
    case LaneTable::Outcome::stale:
      break;
    case LaneTable::Outcome::too_many:
      endpoint_.mark_damaged("too many groups that this rank does not know");
      break;
    case LaneTable::Outcome::no_memory:
      endpoint_.mark_broken(UCS_ERR_NO_MEMORY);
      break;
  }
  return lane;
}

void UcxLink::close(UcxLane* lane) noexcept {
  const bool looks =
      std::any_of(lane->out.begin(), lane->out.end(),
                  [](const OutMessage& one) {
                    return !one.done && one.storage == OutMessage::Storage::shared;
                  }) ||
      std::any_of(lane->in.begin(), lane->in.end(), [](const InMessage& one) {
        return one.state == InMessage::State::coming && one.storage == InMessage::Storage::reader;
      });
  if (looks) {
    endpoint_.mark_broken(UCS_ERR_CANCELED);
    shut(false);
  }
  if (lane->reserved != nullptr) {
    shared_->out_slots.give_back(std::exchange(lane->reserved, nullptr));
  }
  for (InMessage& message : lane->in) {
    if (message.state != InMessage::State::coming) {
      forget(*lane, message);
    }
  }
  credits_due_ -= lane->credit_due ? 1 : 0;
  lane->credit_due = false;
  lane->closed = true;
  if (std::unique_ptr<UcxLane> taken = lanes_.remove(lane)) {
    closing_.push_back(std::move(taken));  // make_lane() made room
  }
  finish(lane);
}

// A closed lane goes when UCX has nothing of it any more.
void UcxLink::finish(UcxLane* lane) noexcept {
  if (lane->closed && lane->is_quiet()) {
    std::erase_if(closing_, [lane](const auto& one) { return one.get() == lane; });
  }
}

bool UcxLink::is_quiet() const noexcept {
  return words_under_way_ == 0 &&
         std::all_of(lanes_.in_turn().begin(), lanes_.in_turn().end(),
                     [](const UcxLane* one) { return one->is_quiet(); }) &&
         std::all_of(closing_.begin(), closing_.end(),
                     [](const auto& one) { return one->is_quiet(); });
}

bool UcxLink::is_flushed() const noexcept {
  return endpoint_.is_broken() || !endpoint_.is_open() ||
         (words_under_way_ == 0 && endpoint_.is_flushed());
}

void UcxLink::shut(bool gently) noexcept {
  endpoint_.shut(gently, [this] { return is_quiet(); });
}

void UcxLink::send_leave() noexcept {
  if (endpoint_.is_broken() || !endpoint_.is_open() || !leave_.done || leave_.header.from != 0) {
    return;
  }
  MessageHeader header = header_of(nullptr, MessageKind::leave);
  header.signature = tally_.sent;
  if (post_word(leave_, header)) {
    endpoint_.flush();
  }
}

void UcxLink::note_leave() noexcept {
  if (!left_ && tally_.all_came() && receiving_ == 0) {
    left_ = true;
    shared_->changed();
  }
}

}  // namespace unisono::ucx
