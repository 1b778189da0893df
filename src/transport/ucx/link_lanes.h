// The lanes of one link over UCX: those in use, and closed ones that UCX still uses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/lane_table.h"
#include "transport/ucx/lane.h"

namespace unisono::ucx {

class Endpoint;

class LinkLanes {
 public:
  // The owner and its halves.
  LinkLanes(UcxLink* link, UcxOutbox* outbox, UcxInbox* inbox)
      : link_(link), outbox_(outbox), inbox_(inbox) {}
  LinkLanes(const LinkLanes&) = delete;
  LinkLanes& operator=(const LinkLanes&) = delete;

  // Returns nullptr without memory.
  UcxLane* open(const transport::LaneKey& key) noexcept;
  // Returns the lane that a message of the peer names; nullptr if the message must be dropped, or
  // the endpoint is broken now.
  UcxLane* find(const MessageHeader& header, Endpoint& endpoint) noexcept;
  // Closes a lane, which lives until UCX has finished with it.
  void close(UcxLane* lane) noexcept;
  // UCX has finished a request of the lane; if it is closed and that was the last one, the lane is
  // freed.
  void finish(const UcxLane* lane) noexcept;

  void retire_before(std::uint32_t epoch) noexcept { table_.retire_before(epoch); }
  std::uint32_t epoch() const noexcept { return table_.epoch(); }
  const std::vector<UcxLane*>& in_turn() const noexcept { return table_.in_turn(); }
  // UCX has no pending request of any lane.
  bool is_quiet() const noexcept;

 private:
  // Returns nullptr, or throws std::bad_alloc, without memory.
  std::unique_ptr<UcxLane> make(const transport::LaneKey& key);

  UcxLink* link_;
  UcxOutbox* outbox_;
  UcxInbox* inbox_;
  transport::LaneTable<UcxLane> table_;
  std::vector<std::unique_ptr<UcxLane>> closing_;
};

}  // namespace unisono::ucx
