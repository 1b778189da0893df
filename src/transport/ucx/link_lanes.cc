#include "transport/ucx/link_lanes.h"

#include <algorithm>
#include <utility>

#include "transport/ucx/endpoint.h"

namespace unisono::ucx {

std::unique_ptr<UcxLane> LinkLanes::make(const transport::LaneKey& key) {
  auto lane = std::make_unique<UcxLane>(link_, outbox_, inbox_, key);
  if (lane->in_memory.data() == nullptr || lane->out_memory.data() == nullptr) {
    return nullptr;
  }
  // Reserves room now, so that closing a lane needs no memory.
  closing_.reserve(closing_.size() + table_.in_turn().size() + 1);
  return lane;
}

UcxLane* LinkLanes::open(const transport::LaneKey& key) noexcept {
  return table_.open(key, [this, &key] { return make(key); });
}

UcxLane* LinkLanes::find(const MessageHeader& header, Endpoint& endpoint) noexcept {
  using Outcome = transport::LaneTable<UcxLane>::Outcome;
  const transport::LaneKey key{.group = header.group, .epoch = header.epoch};
  UcxLane* lane = nullptr;
  switch (table_.find(key, lane, [this, &key] { return make(key); })) {
    case Outcome::found:
    case Outcome::stale:
      break;
    case Outcome::too_many:
      endpoint.mark_damaged("messages of too many unknown groups");
      break;
    case Outcome::no_memory:
      endpoint.mark_broken(UCS_ERR_NO_MEMORY);
      break;
  }
  return lane;
}

void LinkLanes::close(UcxLane* lane) noexcept {
  lane->closed = true;
  if (std::unique_ptr<UcxLane> taken = table_.remove(lane)) {
    closing_.push_back(std::move(taken));  // make() reserved room
  }
  finish(lane);
}

void LinkLanes::finish(const UcxLane* lane) noexcept {
  if (lane->closed && lane->is_quiet()) {
    std::erase_if(closing_, [lane](const auto& one) { return one.get() == lane; });
  }
}

bool LinkLanes::is_quiet() const noexcept {
  return std::all_of(table_.in_turn().begin(), table_.in_turn().end(),
                     [](const UcxLane* one) { return one->is_quiet(); }) &&
         std::all_of(closing_.begin(), closing_.end(),
                     [](const auto& one) { return one->is_quiet(); });
}

}  // namespace unisono::ucx
