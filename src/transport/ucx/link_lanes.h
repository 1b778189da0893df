// The lanes of one link over UCX: those in use, and those that were closed and that UCX still has
// something of.
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
  // Whose lanes they are.
  LinkLanes(UcxLink* link, UcxOutbox* outbox, UcxInbox* inbox)
      : link_(link), outbox_(outbox), inbox_(inbox) {}
  LinkLanes(const LinkLanes&) = delete;
  LinkLanes& operator=(const LinkLanes&) = delete;

  // nullptr: no memory.
  UcxLane* open(const transport::LaneKey& key) noexcept;
  // The lane that a message of the peer names. nullptr: the message is to be dropped, or the
  // endpoint is broken now.
  UcxLane* find(const MessageHeader& header, Endpoint& endpoint) noexcept;
  // Closed from now on: it lives until UCX has nothing of it any more.
  void close(UcxLane* lane) noexcept;
  // UCX has ended with something of the lane, which goes if it is closed and that was the last.
  void finish(const UcxLane* lane) noexcept;

  void retire_before(std::uint32_t epoch) noexcept { table_.retire_before(epoch); }
  std::uint32_t epoch() const noexcept { return table_.epoch(); }
  const std::vector<UcxLane*>& in_turn() const noexcept { return table_.in_turn(); }
  // UCX has nothing of any lane.
  bool is_quiet() const noexcept;

 private:
  // nullptr, or std::bad_alloc: no memory.
  std::unique_ptr<UcxLane> make(const transport::LaneKey& key);

  UcxLink* link_;
  UcxOutbox* outbox_;
  UcxInbox* inbox_;
  transport::LaneTable<UcxLane> table_;
  std::vector<std::unique_ptr<UcxLane>> closing_;
};

}  // namespace unisono::ucx
