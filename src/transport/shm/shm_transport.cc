#include "transport/shm/shm_transport.h"

#include <algorithm>
#include <utility>

#include "transport/shm/segment.h"

namespace unisono::shm {
ShmTransport::ShmTransport(const ShmContext& context, std::byte* lanes, std::vector<int> members,
                           int rank, int use)
    : context_(context),
      members_(std::move(members)),
      rank_(rank),
      ranks_(static_cast<int>(members_.size())),
      limits_{.inline_bytes = kInlineBytes,
              .slot_bytes = kSlotBytes,
              .lane_bytes = kLaneBytes,
              .multicast = use == 0} {
  const LaneLayout layout(ranks_);
  const auto n = static_cast<std::size_t>(ranks_);
  const auto me = static_cast<std::size_t>(rank);
  const auto lane = [&](std::size_t from, std::size_t to) {
    return (static_cast<std::size_t>(use) * n + from) * n + to;
  };
  const auto ring = [&](std::size_t offset, std::size_t index) {
    return reinterpret_cast<Ring*>(lanes + offset)[index].cells;
  };
  const auto head = [&](std::size_t offset, std::size_t index) {
    return reinterpret_cast<Head*>(lanes + offset) + index;
  };
  in_.reserve(2 * n);
  for (std::size_t peer = 0; peer < n; ++peer) {
    out_.emplace_back(ring(layout.rings, lane(me, peer)),
                      std::vector<const Head*>{head(layout.heads, lane(me, peer))});
    out_.back().may_offer = context.can_fetch[static_cast<std::size_t>(members_[peer])];
    in_.push_back({.reader = LaneReader(ring(layout.rings, lane(peer, me)),
                                        head(layout.heads, lane(peer, me))),
                   .from = members_[peer]});
  }
  if (use == 0) {
    add_multicast_lanes(lanes, layout);
  }
  context_.registry->add(this);  // complete: other threads may use it now
}

void ShmTransport::add_multicast_lanes(std::byte* lanes, const LaneLayout& layout) {
  const auto n = static_cast<std::size_t>(ranks_);
  const auto me = static_cast<std::size_t>(rank_);
  Ring* rings = reinterpret_cast<Ring*>(lanes + layout.multicast_rings);
  Head* heads = reinterpret_cast<Head*>(lanes + layout.multicast_heads);
  std::vector<const Head*> readers;
  bool all_can_fetch = true;
  for (std::size_t peer = 0; peer < n; ++peer) {
    if (peer != me) {
      readers.push_back(heads + me * n + peer);
      all_can_fetch &= context_.can_fetch[static_cast<std::size_t>(members_[peer])];
    }
    in_.push_back(
        {.reader = LaneReader(rings[peer].cells, heads + peer * n + me), .from = members_[peer]});
  }
  out_.emplace_back(rings[me].cells, std::move(readers));
  out_.back().may_offer = all_can_fetch;
}

void TransportRegistry::add(ShmTransport* transport) {
  const std::lock_guard lock(changing_);
  transports_.push_back(transport);
}

void TransportRegistry::remove(ShmTransport* transport) {
  const std::lock_guard lock(changing_);
  std::erase(transports_, transport);
  if (latest_.load(std::memory_order_relaxed) == transport) {
    latest_.store(nullptr, std::memory_order_relaxed);
  }
}

void TransportRegistry::reclaim() noexcept {
  const std::lock_guard lock(changing_);
  for (ShmTransport* transport : transports_) {
    transport->reclaim_from_outside();
  }
}

void TransportRegistry::change_current(ShmTransport* transport) noexcept {
  const std::lock_guard lock(changing_);
  if (ShmTransport* before = latest_.exchange(transport, std::memory_order_relaxed)) {
    before->reclaim_from_outside();
  }
}

void ShmTransport::reclaim_from_outside() noexcept {
  for (Out& to : out_) {
    to.writer.reclaim_from_outside(*context_.pool);
  }
}

bool ShmTransport::peek(int lane, transport::Incoming& message) noexcept {
  In& in = in_[static_cast<std::size_t>(lane)];
  const LaneCell* cell = in.reader.arrived();
  if (cell == nullptr) {
    return false;
  }
  const std::uint64_t header = cell->header.load(std::memory_order_relaxed);
  in.cells = header_cells(header);
  in.refers = header_kind(header) != CellKind::bytes;
  message.signature = cell->signature;
  if (in.refers) {
    return resolve(in, *cell, message);
  }
  message.bytes = header_bytes(header);
  message.data = cell->payload;
  if (in.cells > 1) {
    message.data = in.gathered;
    return in.reader.gather(message.bytes, in.gathered);
  }
  return true;
}

bool ShmTransport::resolve(In& in, const LaneCell& cell, transport::Incoming& message) noexcept {
  Reference reference;
  std::memcpy(&reference, cell.payload, sizeof(reference));
  message.bytes = reference.bytes;
  const auto from = static_cast<std::size_t>(in.from);
  if (header_kind(cell.header.load(std::memory_order_relaxed)) == CellKind::slot) {
    message.data = context_.pools[from] + reference.offset;
    return reference.bytes <= kSlotBytes && reference.offset <= kPoolBytes - reference.bytes;
  }
  if (header_kind(cell.header.load(std::memory_order_relaxed)) == CellKind::offer) {
    in.offered = reference.address;
    message.data = nullptr;
    return true;
  }
  if (context_.same_process[from]) {
    message.data = reinterpret_cast<const std::byte*>(reference.address);
    return true;
  }
  const std::optional<SharedRegion> region = context_.regions->of_peer(in.from, reference.region);
  if (!region || reference.offset > region->bytes ||
      reference.bytes > region->bytes - reference.offset) {
    return false;  // announced before its use, so it comes at once; a damaged one times out
  }
  message.data = region->base + reference.offset;
  return true;
}

void ShmTransport::release(int lane) noexcept {
  In& in = in_[static_cast<std::size_t>(lane)];
  if (in.reader.release(in.cells, in.refers) && context_.event_counts->anybody_sleeps()) {
    context_.event_counts->notify(in.from);
  }
}

bool ShmTransport::send(int lane, const void* data, std::size_t bytes,
                        std::uint64_t signature) noexcept {
  LaneWriter& writer = out(lane).writer;
  if (!writer.has_room(cells_for(bytes))) {
    return false;
  }
  writer.put_bytes(data, bytes, signature);
  wake_readers(lane);
  return true;
}

std::byte* ShmTransport::reserve(int lane, std::size_t bytes) noexcept {
  Out& to = out(lane);
  if (to.slot != Pool::kNone && bytes <= to.room_bytes) {
    return to.room;
  }
  if (bytes <= kInlineBytes) {
    return to.writer.has_room(kInlineCells) ? to.staged : nullptr;
  }
  if (to.slot == Pool::kNone && !take_slot(to)) {
    return nullptr;
  }
  to.room = context_.pool->room(to.slot, bytes);
  to.room_bytes = bytes;
  return to.room;
}

bool ShmTransport::take_slot(Out& to) noexcept {
  if (!to.writer.has_room(1)) {
    return false;
  }
  to.writer.reclaim(*context_.pool);
  if (to.writer.slots_lent() >= kSlotsPerLane) {
    to.writer.refresh();
    to.writer.reclaim(*context_.pool);
    if (to.writer.slots_lent() >= kSlotsPerLane) {
      return false;
    }
  }
  context_.registry->make_current(this);
  to.slot = context_.pool->take();
  if (to.slot == Pool::kNone) {
    context_.registry->reclaim();
    to.slot = context_.pool->take();
  }
  if (to.slot == Pool::kNone) {
    to.slot = context_.pool->take_spare();
  }
  return to.slot != Pool::kNone;
}

void ShmTransport::commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept {
  Out& to = out(lane);
  if (to.slot == Pool::kNone) {
    to.writer.put_bytes(to.staged, bytes, signature);
  } else {
    const Reference reference{.bytes = bytes,
                              .offset = context_.pool->offset_of(to.room),
                              .address = 0,
                              .region = 0,
                              .reserved = 0};
    to.writer.put_reference(reference, CellKind::slot, signature);
    to.writer.lend(std::exchange(to.slot, Pool::kNone));
  }
  wake_readers(lane);
}

void ShmTransport::fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept {
  Distance& distance = out(lane).distance;
  std::size_t done = 0;
  if (bytes >= Distance::kLeastBytes && distance.is_look_due()) {
    done = std::min(bytes, Distance::kLookBytes);
    const auto begin = std::chrono::steady_clock::now();
    kernels::copy(room, data, done, kernels::Store::cached);
    distance.learn(done, std::chrono::steady_clock::now() - begin);
  }
  const kernels::Store rest = store(lane, bytes);
  kernels::copy(room + done, static_cast<const std::byte*>(data) + done, bytes - done, rest);
  if (rest == kernels::Store::streaming) {
    kernels::fence_streaming();
  }
}

std::size_t ShmTransport::shareable_bytes(int, const void* data, std::size_t bytes) noexcept {
  return context_.regions->holding(data, bytes) ? bytes : 0;
}

bool ShmTransport::share(int lane, const void* data, std::size_t bytes,
                         std::uint64_t signature) noexcept {
  LaneWriter& writer = out(lane).writer;
  const std::optional<SharedRegion> region = context_.regions->holding(data, bytes);
  if (!region || !writer.has_room(1)) {
    return false;
  }
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - region->base);
  const Reference reference{.bytes = bytes,
                            .offset = offset,
                            .address = reinterpret_cast<std::uint64_t>(region->in_process + offset),
                            .region = region->number,
                            .reserved = 0};
  writer.put_reference(reference, CellKind::region, signature);
  wake_readers(lane);
  return true;
}

bool ShmTransport::can_offer(int lane, const void* data, std::size_t bytes) noexcept {
  Out& to = out(lane);
  // One reader copies long messages faster from their memory than from slots. Several readers read
  // slots that are in a near cache.
  const bool has_one_reader = lane < ranks_ || ranks_ == 2;
  const bool is_far = to.distance.far();
  const bool is_worth_it =
      has_one_reader ? bytes >= (is_far ? 2 : 1) * kSlotBytes : bytes > kLaneBytes && is_far;
  if (!to.may_offer || !is_worth_it || bytes > kMostOffer || to.distance.is_next_look()) {
    return false;
  }
  if (!to.writer.has_room(1)) {
    return true;  // offer() reports that it must wait
  }
  // Some memory can only be read by its owner (device memory).
  const auto address = reinterpret_cast<std::uint64_t>(data);
  const int pid = context_.pids[static_cast<std::size_t>(context_.rank)];
  std::byte ends[2];
  return read_process(pid, address, &ends[0], 1) == 1 &&
         read_process(pid, address + bytes - 1, &ends[1], 1) == 1;
}

bool ShmTransport::offer(int lane, const void* data, std::size_t bytes,
                         std::uint64_t signature) noexcept {
  Out& to = out(lane);
  if (!to.writer.has_room(1)) {
    return false;
  }
  const Reference reference{.bytes = bytes,
                            .offset = 0,
                            .address = reinterpret_cast<std::uint64_t>(data),
                            .region = 0,
                            .reserved = 0};
  to.writer.put_reference(reference, CellKind::offer, signature);
  to.distance.count();
  wake_readers(lane);
  return true;
}

// An offer's writer may free its memory after an abort. This causes no fault here, because the
// kernel checks the address; the waiting rank then detects the abort or the death.
std::size_t ShmTransport::fetch(int lane, std::size_t offset, void* target,
                                std::size_t bytes) noexcept {
  const In& in = in_[static_cast<std::size_t>(lane)];
  return read_process(context_.pids[static_cast<std::size_t>(in.from)], in.offered + offset, target,
                      bytes);
}

int ShmTransport::slowest_reader(int lane) noexcept {
  if (lane < ranks_) {
    return lane;
  }
  const int reader = static_cast<int>(out(lane).writer.slowest_reader());
  return reader < rank_ ? reader : reader + 1;  // skips this rank
}

bool ShmTransport::reclaim() noexcept {
  bool all = true;
  for (Out& to : out_) {
    to.writer.refresh();
    to.writer.reclaim(*context_.pool);
    all = all && to.writer.slots_lent() == 0;
  }
  return all;
}

void ShmTransport::wake_readers(int lane) noexcept {
  if (!context_.event_counts->anybody_sleeps()) {
    return;
  }
  if (lane < ranks_) {
    context_.event_counts->notify(members_[static_cast<std::size_t>(lane)]);
    return;
  }
  for (const int member : members_) {
    context_.event_counts->notify(member);
  }
}

}  // namespace unisono::shm
