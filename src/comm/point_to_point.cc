#include "comm/point_to_point.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kShareBytes = 4096;
// Number of bytes of an offer that one step fetches. This rank serves nothing else during a step.
constexpr std::size_t kFetchBytes = std::size_t{512} << 10;
// Number of bytes to or from one rank after which poll() returns, so that a thread that wants to
// post waits no longer.
constexpr std::size_t kPollBytes = std::size_t{256} << 10;
// Returns "16 bytes of f32", or "16 bytes" for an unnamed type.
std::string amount(std::size_t bytes, std::uint32_t type) {
  std::string text = std::to_string(bytes) + " bytes";
  if (type != kAnyType && type <= kDtypeCount) {
    text += " of " + std::string(to_string(static_cast<Dtype>(type - 1)));
  }
  return text;
}

bool is_other_type(std::uint32_t type, std::uint32_t sent) {
  return type != sent && type != kAnyType && sent != kAnyType;
}

const char* const kTooLong = "a message is longer than its header announces, from ";

}  // namespace

PointToPoint::PointToPoint(transport::Transport& transport, std::uint64_t group_id,
                           std::function<std::string(int)> name)
    : transport_(transport),
      send_limits_(transport::send_limits(transport.limits(), kShareBytes)),
      name_(std::move(name)),
      signature_(Hash().add("send and recv").add(group_id).value()),
      short_signature_(~signature_ & 0xffffffff00000000U),
      peers_(static_cast<std::size_t>(transport.ranks())) {
  busy_.reserve(peers_.size());
}

bool PointToPoint::finished(const PendingTransfer& transfer) {
  return transfer.opened && transfer.done == transfer.bytes && !transfer.posted;
}

void PointToPoint::keep_busy(int peer) {
  if (!peers_[static_cast<std::size_t>(peer)].busy) {
    peers_[static_cast<std::size_t>(peer)].busy = true;
    busy_.push_back(peer);
  }
}

void PointToPoint::post(PendingTransfer& transfer) {
  if (transfer.peer == kAnySource) {
    from_any_.push(transfer);
    for (int rank = 0; rank < transport_.ranks(); ++rank) {
      note_receive(rank, transfer.tag);
      keep_busy(rank);
    }
    return;
  }
  if (transfer.send && transfer.peer == transport_.rank()) {
    send_to_self(transfer);
    return;
  }
  Peer& peer = peers_[static_cast<std::size_t>(transfer.peer)];
  keep_busy(transfer.peer);
  if (!transfer.send) {
    peer.receives.push(transfer);
    note_receive(transfer.peer, transfer.tag);
    return;
  }
  const bool is_next = peer.sends.empty();
  peer.sends.push(transfer);
  transfer.posted = true;
  if (is_next && transfer.bytes <= kShortTransfer) {
    poll_sends(transfer.peer);
  }
}

bool PointToPoint::send_now(PendingTransfer& transfer) noexcept {
  return transfer.bytes <= send_limits_.inline_bytes && transfer.peer != transport_.rank() &&
         !transport_.limits().through_kernel &&
         peers_[static_cast<std::size_t>(transfer.peer)].sends.empty() &&
         open_send(transfer.peer, transfer);
}

// Stores a message from this rank to itself at once.
void PointToPoint::send_to_self(PendingTransfer& transfer) {
  Stored stored{.tag = transfer.tag, .type = transfer.type};
  stored.data.assign(transfer.data, transfer.data + transfer.bytes);
  stored.done = transfer.bytes;
  Peer& self = peers_[static_cast<std::size_t>(transfer.peer)];
  self.stored[transfer.tag].push_back(std::move(stored));
  self.servable.push_back(transfer.tag);
  transfer.opened = true;
  transfer.done = transfer.bytes;
  note_finished(transfer);
}

PointToPoint::Progress PointToPoint::fail(int peer, std::string what) {
  fault_ = std::move(what);
  fault_peer_ = peer;
  return Progress::failed;
}

PointToPoint::Progress PointToPoint::poll() {
  Progress result = Progress::idle;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    const int rank = busy_[i];
    for (const Progress progress : {poll_sends(rank), poll_receives(rank)}) {
      if (progress == Progress::failed) {
        return progress;
      }
      result = progress == Progress::advanced ? progress : result;
    }
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.busy = !peer.sends.empty() || !peer.receives.empty() || peer.coming || !from_any_.empty();
    if (peer.busy) {
      busy_[kept++] = rank;
    }
  }
  busy_.resize(kept);
  return result;
}

bool PointToPoint::open_send(int peer, PendingTransfer& transfer) noexcept {
  if (transfer.bytes <= send_limits_.inline_bytes) {
    transfer.opened =
        transport_.send(peer, transfer.data, transfer.bytes, short_signature(transfer));
    transfer.done = transfer.opened ? transfer.bytes : 0;
    return transfer.opened;
  }
  const Envelope envelope{.tag = transfer.tag, .type = transfer.type, .bytes = transfer.bytes};
  transfer.opened = transport_.send(peer, &envelope, sizeof(envelope), signature_);
  return transfer.opened;
}

PointToPoint::Progress PointToPoint::poll_sends(int peer) {
  auto& sends = peers_[static_cast<std::size_t>(peer)].sends;
  Progress result = Progress::idle;
  while (!sends.empty()) {
    PendingTransfer& transfer = sends.front();
    if (!transfer.opened) {
      if (!open_send(peer, transfer)) {
        return result;
      }
      result = Progress::advanced;
    }
    const bool may_offer = transfer.may_wait || transfer.bytes > transport_.limits().lane_bytes;
    for (const std::size_t begun = transfer.done; transfer.done < transfer.bytes;) {
      if (transfer.done - begun >= kPollBytes) {
        return Progress::advanced;
      }
      const transport::Sent sent = transport::send_some(transport_, peer, send_limits_,
                                                        {.message = transfer.data,
                                                         .bytes = transfer.bytes,
                                                         .done = transfer.done,
                                                         .ready = transfer.bytes,
                                                         .may_offer = may_offer},
                                                        [this](std::size_t) { return signature_; });
      if (sent.bytes == 0) {
        return result;
      }
      if (sent.shared) {
        transfer.shared = true;
        transfer.mark = transport_.mark(peer);
      }
      transfer.done += sent.bytes;
      result = Progress::advanced;
    }
    if (transfer.shared) {
      if (!transport_.drained(peer, transfer.mark)) {
        return result;
      }
      transfer.shared = false;
      result = Progress::advanced;
    }
    if (!transport_.flush(peer)) {
      return result;
    }
    sends.pop();
    transfer.posted = false;
    note_finished(transfer);
  }
  return result;
}

bool PointToPoint::fits(PendingTransfer& receive, std::size_t sent, std::uint32_t type) noexcept {
  if (sent > receive.bytes || (receive.exact && sent != receive.bytes) ||
      is_other_type(receive.type, type)) {
    return false;
  }
  receive.bytes = sent;
  return true;
}

PointToPoint::Progress PointToPoint::mismatch(int peer, const PendingTransfer& receive,
                                              std::size_t bytes, std::uint32_t type) {
  const std::string advice =
      is_other_type(receive.type, type) ? "both sides must give the same element type"
      : receive.exact                   ? "both sides must give the same number of bytes"
                      : "give recv a buffer of at least " + std::to_string(bytes) + " bytes";
  return fail(peer, "recv of " + amount(receive.bytes, receive.type) + " with tag " +
                        std::to_string(receive.tag) + " on " + name_(transport_.rank()) + ", but " +
                        name_(peer) + " sends " + amount(bytes, type) + "\n" + advice);
}

PendingTransfer* PointToPoint::take_wanted(int peer_rank, int tag) {
  PendingTransfer* wanted = peers_[static_cast<std::size_t>(peer_rank)].receives.take(tag);
  if (wanted == nullptr) {
    wanted = from_any_.take(tag);
    if (wanted != nullptr) {
      wanted->peer = peer_rank;
    }
  }
  return wanted;
}

void PointToPoint::note_finished(PendingTransfer& transfer) noexcept {
  if (transfer.owner != nullptr) {
    done_.push(transfer);
  }
}

void PointToPoint::note_receive(int peer_rank, int tag) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  if (!peer.stored.empty() && peer.stored.contains(tag)) {
    peer.servable.push_back(tag);
  }
}

PointToPoint::Progress PointToPoint::serve_from_store(int peer_rank) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Progress result = Progress::idle;
  while (!peer.servable.empty()) {
    const int tag = peer.servable.back();
    peer.servable.pop_back();
    const Progress served = serve_from_store(peer_rank, tag);
    if (served == Progress::failed) {
      return served;
    }
    result = served == Progress::advanced ? served : result;
  }
  return result;
}

PointToPoint::Progress PointToPoint::serve_from_store(int peer_rank, int tag) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  const auto stored = peer.stored.find(tag);
  Progress result = Progress::idle;
  while (stored != peer.stored.end()) {
    const Stored& first = stored->second.front();
    PendingTransfer* const transfer =
        first.done == first.data.size() ? take_wanted(peer_rank, tag) : nullptr;
    if (transfer == nullptr) {
      break;
    }
    if (!fits(*transfer, first.data.size(), first.type)) {
      return mismatch(peer_rank, *transfer, first.data.size(), first.type);
    }
    std::copy(first.data.begin(), first.data.end(), transfer->data);
    transfer->done = transfer->bytes;
    transfer->opened = true;
    note_finished(*transfer);
    result = Progress::advanced;
    stored->second.pop_front();
    if (stored->second.empty()) {
      peer.stored.erase(stored);
      break;
    }
  }
  return result;
}

PointToPoint::Progress PointToPoint::open_message(int peer_rank,
                                                  const transport::Incoming& message) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Envelope envelope;
  std::size_t along = 0;
  if (const std::uint64_t header = message.signature ^ short_signature_; header >> 40 == 0) {
    along = message.bytes;
    envelope = {.tag = static_cast<std::int32_t>(header),
                .type = static_cast<std::uint32_t>(header >> 32),
                .bytes = along};
  } else if (message.signature == signature_ && message.bytes == sizeof(envelope) &&
             !message.offered()) {
    std::memcpy(&envelope, message.data, sizeof(envelope));
  } else {
    return fail(peer_rank, "a message from " + name_(peer_rank) +
                               " does not belong to this group's send and recv");
  }
  PendingTransfer* wanted = take_wanted(peer_rank, envelope.tag);
  if (wanted == nullptr) {
    std::vector<std::byte> data(envelope.bytes);
    auto& of_tag = peer.stored[envelope.tag];
    of_tag.push_back({.tag = envelope.tag,
                      .type = static_cast<ElementType>(envelope.type),
                      .data = std::move(data)});
    peer.store = &of_tag.back();
  } else {
    if (!fits(*wanted, envelope.bytes, envelope.type)) {
      return mismatch(peer_rank, *wanted, envelope.bytes, envelope.type);
    }
    wanted->opened = true;
    peer.receive = wanted;
  }
  peer.coming = true;
  return take_data(peer_rank, message.data, along);
}

PointToPoint::Progress PointToPoint::poll_receives(int peer_rank) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Progress result = Progress::idle;
  for (std::size_t taken_bytes = 0; taken_bytes < kPollBytes;) {
    const Progress served = serve_from_store(peer_rank);
    if (served == Progress::failed) {
      return served;
    }
    result = served == Progress::advanced ? served : result;
    transport::Incoming message;
    if ((!peer.coming && peer.receives.empty() && from_any_.empty()) ||
        !transport_.peek(peer_rank, message)) {
      return result;
    }
    if (!peer.coming) {
      if (open_message(peer_rank, message) == Progress::failed) {
        return Progress::failed;
      }
      result = Progress::advanced;
      continue;
    }
    const Progress taken = message.signature == signature_
                               ? take_data(peer_rank, message.data, message.bytes)
                               : Progress::failed;
    if (taken == Progress::failed) {
      return fail(peer_rank, kTooLong + name_(peer_rank));
    }
    if (taken == Progress::idle) {
      return result;
    }
    taken_bytes += message.bytes;
    result = Progress::advanced;
  }
  return result;
}

// Stores the next bytes of the incoming message. If `data` is nullptr, fetches them.
PointToPoint::Progress PointToPoint::take_data(int peer_rank, const std::byte* data,
                                               std::size_t bytes) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  PendingTransfer* receive = peer.receive;
  std::size_t& done = receive != nullptr ? receive->done : peer.store->done;
  const std::size_t all = receive != nullptr ? receive->bytes : peer.store->data.size();
  std::byte* target = receive != nullptr ? receive->data : peer.store->data.data();
  if (bytes - peer.fetched > all - done) {
    return fail(peer_rank, kTooLong + name_(peer_rank));
  }
  if (data == nullptr && bytes != 0) {
    const std::size_t more = transport_.fetch(peer_rank, peer.fetched, target + done,
                                              std::min(bytes - peer.fetched, kFetchBytes));
    peer.fetched += more;
    done += more;
    if (peer.fetched < bytes) {
      return more == 0 ? Progress::idle : Progress::advanced;
    }
    peer.fetched = 0;
  } else if (bytes != 0) {
    std::memcpy(target + done, data, bytes);
    done += bytes;
  }
  transport_.release(peer_rank);
  if (done == all) {
    if (receive != nullptr) {
      note_finished(*receive);
    } else {
      peer.servable.push_back(peer.store->tag);
    }
    peer.coming = false;
    peer.receive = nullptr;
    peer.store = nullptr;
  }
  return Progress::advanced;
}

}  // namespace unisono::comm
