// The lanes of one link over UCX: lanes in use, and closed lanes that UCX still uses.
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

  // Returns nullptr if there is no memory.
  UcxLane* open(const transport::LaneKey& key) noexcept;
  // Returns the lane that a message from the peer names. Returns nullptr if the message must be
  // dropped, or if the endpoint has broken now.
  UcxLane* find(const MessageHeader& header, Endpoint& endpoint) noexcept;
  // Closes a lane, which is freed when UCX has finished with it.
  void close(UcxLane* lane) noexcept;
  // Notes that UCX has finished a request of the lane. If the lane is closed and this was its last
  // request, frees the lane.
  void finish(const UcxLane* lane) noexcept;

  void retire_before(std::uint32_t epoch) noexcept { table_.retire_before(epoch); }
  std::uint32_t epoch() const noexcept { return table_.epoch(); }
  const std::vector<UcxLane*>& in_turn() const noexcept { return table_.in_turn(); }
  // Returns true if UCX has no pending request of any lane.
  bool is_quiet() const noexcept;

 private:
  // If there is no memory, returns nullptr or throws std::bad_alloc.
  std::unique_ptr<UcxLane> make(const transport::LaneKey& key);

  UcxLink* link_;
  UcxOutbox* outbox_;
  UcxInbox* inbox_;
  transport::LaneTable<UcxLane> table_;
  std::vector<std::unique_ptr<UcxLane>> closing_;
};

}  // namespace unisono::ucx
