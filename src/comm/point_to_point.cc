#include "comm/point_to_point.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/hash.h"
#include "engine/peer_copy.h"

namespace unisono::comm {
namespace {

constexpr std::size_t kShareBytes = 4096;
constexpr std::size_t kWithEnvelope = 256 - 16;  // bytes that go in one short message with it
const char* const kTooLong = "a message is longer than its envelope says, from rank ";

}  // namespace

PointToPoint::PointToPoint(transport::Transport& transport, std::uint64_t group_id)
    : transport_(transport),
      signature_(Hash().add("send and recv").add(group_id).value()),
      peers_(static_cast<std::size_t>(transport.ranks())) {}

bool PointToPoint::finished(const Transfer& transfer) {
  return transfer.opened && transfer.done == transfer.bytes && !transfer.shared;
}

void PointToPoint::post(Transfer& transfer) {
  Peer& peer = peers_[static_cast<std::size_t>(transfer.peer)];
  if (transfer.send && transfer.peer == transport_.rank()) {
    send_to_self(transfer);
  } else if (transfer.send) {
    peer.sends.push_back(&transfer);
  } else {
    peer.receives.push_back(&transfer);
  }
}

// A rank that sends to itself stores the message at once.
void PointToPoint::send_to_self(Transfer& transfer) {
  Stored stored{.tag = transfer.tag};
  stored.data.assign(transfer.data, transfer.data + transfer.bytes);
  stored.done = transfer.bytes;
  peers_[static_cast<std::size_t>(transfer.peer)].stored.push_back(std::move(stored));
  transfer.opened = true;
  transfer.done = transfer.bytes;
}

bool PointToPoint::has_pending() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return !peer.sends.empty() || !peer.receives.empty();
  });
}

PointToPoint::Progress PointToPoint::fail(int peer, std::string what) {
  fault_ = std::move(what);
  fault_peer_ = peer;
  return Progress::failed;
}

PointToPoint::Progress PointToPoint::poll() {
  Progress result = Progress::idle;
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    for (const Progress progress : {poll_sends(peer), poll_receives(peer)}) {
      if (progress == Progress::failed) {
        return progress;
      }
      result = progress == Progress::advanced ? progress : result;
    }
  }
  return result;
}

// A short message travels with its envelope.
bool PointToPoint::send_envelope(int peer, Transfer& transfer) {
  const Envelope envelope{.tag = transfer.tag, .bytes = transfer.bytes};
  std::byte message[sizeof(Envelope) + kWithEnvelope];
  std::memcpy(message, &envelope, sizeof(envelope));
  const std::size_t along = transfer.bytes <= kWithEnvelope ? transfer.bytes : 0;
  if (along != 0) {
    std::memcpy(message + sizeof(envelope), transfer.data, along);
  }
  if (!transport_.send(peer, message, sizeof(envelope) + along, signature_)) {
    return false;
  }
  transfer.opened = true;
  transfer.done = along;
  return true;
}

PointToPoint::Progress PointToPoint::poll_sends(int peer) {
  auto& sends = peers_[static_cast<std::size_t>(peer)].sends;
  Progress result = Progress::idle;
  while (!sends.empty()) {
    Transfer& transfer = *sends.front();
    if (!transfer.opened) {
      if (!send_envelope(peer, transfer)) {
        return result;
      }
      result = Progress::advanced;
    }
    while (transfer.done < transfer.bytes) {
      const std::byte* data = transfer.data + transfer.done;
      std::size_t bytes = transfer.bytes - transfer.done;
      if (bytes <= transport_.limits().inline_bytes) {
        if (!transport_.send(peer, data, bytes, signature_)) {
          return result;
        }
      } else if (bytes >= kShareBytes && transport_.can_share(data, bytes)) {
        if (!transport_.share(peer, data, bytes, signature_)) {
          return result;
        }
        transfer.shared = true;
        transfer.mark = transport_.mark(peer);
      } else {
        bytes = std::min(bytes, transport_.limits().slot_bytes);
        std::byte* slot = transport_.reserve(peer, bytes);
        if (slot == nullptr) {
          return result;
        }
        engine::copy_to_peer(slot, data, bytes);
        transport_.commit(peer, bytes, signature_);
      }
      transfer.done += bytes;
      result = Progress::advanced;
    }
    if (transfer.shared) {
      if (!transport_.drained(peer, transfer.mark)) {
        return result;
      }
      transfer.shared = false;
      result = Progress::advanced;
    }
    sends.pop_front();
  }
  return result;
}

PointToPoint::Progress PointToPoint::size_mismatch(int peer, const Transfer& transfer,
                                                   std::size_t sent) {
  return fail(peer, "recv of " + std::to_string(transfer.bytes) + " bytes with tag " +
                        std::to_string(transfer.tag) + " on rank " +
                        std::to_string(transport_.rank()) + ", but rank " + std::to_string(peer) +
                        " sends " + std::to_string(sent) +
                        "\nboth sides must name the same number of bytes");
}

PointToPoint::Progress PointToPoint::serve_from_store(int peer_rank) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Progress result = Progress::idle;
  for (auto it = peer.receives.begin(); it != peer.receives.end();) {
    Transfer& transfer = **it;
    const auto found =
        std::find_if(peer.stored.begin(), peer.stored.end(),
                     [&](const Stored& stored) { return stored.tag == transfer.tag; });
    if (found == peer.stored.end() || found->done < found->data.size()) {
      ++it;
      continue;
    }
    if (found->data.size() != transfer.bytes) {
      return size_mismatch(peer_rank, transfer, found->data.size());
    }
    std::copy(found->data.begin(), found->data.end(), transfer.data);
    transfer.done = transfer.bytes;
    transfer.opened = true;
    peer.stored.erase(found);
    it = peer.receives.erase(it);
    result = Progress::advanced;
  }
  return result;
}

PointToPoint::Progress PointToPoint::open_message(int peer_rank,
                                                  const transport::Incoming& message) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Envelope envelope;
  if (message.signature != signature_ || message.bytes < sizeof(envelope)) {
    return fail(peer_rank, "a message from rank " + std::to_string(peer_rank) +
                               " is not of this group's send and recv");
  }
  std::memcpy(&envelope, message.data, sizeof(envelope));
  const auto wanted =
      std::find_if(peer.receives.begin(), peer.receives.end(),
                   [&](const Transfer* transfer) { return transfer->tag == envelope.tag; });
  if (wanted == peer.receives.end()) {
    peer.stored.push_back({.tag = envelope.tag, .data = std::vector<std::byte>(envelope.bytes)});
    peer.store = &peer.stored.back();
  } else {
    Transfer& transfer = **wanted;
    if (transfer.bytes != envelope.bytes) {
      return size_mismatch(peer_rank, transfer, envelope.bytes);
    }
    transfer.opened = true;
    peer.receive = &transfer;
    peer.receives.erase(wanted);
  }
  peer.coming = true;
  return take_data(peer_rank, message.data + sizeof(envelope), message.bytes - sizeof(envelope));
}

PointToPoint::Progress PointToPoint::poll_receives(int peer_rank) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Progress result = Progress::idle;
  for (;;) {
    const Progress served = serve_from_store(peer_rank);
    if (served == Progress::failed) {
      return served;
    }
    result = served == Progress::advanced ? served : result;
    transport::Incoming message;
    if ((!peer.coming && peer.receives.empty()) || !transport_.peek(peer_rank, message)) {
      return result;
    }
    if (!peer.coming) {
      if (open_message(peer_rank, message) == Progress::failed) {
        return Progress::failed;
      }
      result = Progress::advanced;
      continue;
    }
    if (message.signature != signature_ ||
        take_data(peer_rank, message.data, message.bytes) == Progress::failed) {
      return fail(peer_rank, kTooLong + std::to_string(peer_rank));
    }
    result = Progress::advanced;
  }
}

// The next bytes of the message that is coming in.
PointToPoint::Progress PointToPoint::take_data(int peer_rank, const std::byte* data,
                                               std::size_t bytes) {
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Transfer* receive = peer.receive;
  std::size_t& done = receive != nullptr ? receive->done : peer.store->done;
  const std::size_t all = receive != nullptr ? receive->bytes : peer.store->data.size();
  std::byte* target = receive != nullptr ? receive->data : peer.store->data.data();
  if (bytes > all - done) {
    return fail(peer_rank, kTooLong + std::to_string(peer_rank));
  }
  if (bytes != 0) {
    std::memcpy(target + done, data, bytes);
  }
  transport_.release(peer_rank);
  done += bytes;
  if (done == all) {
    peer.coming = false;
    peer.receive = nullptr;
    peer.store = nullptr;
  }
  return Progress::advanced;
}

}  // namespace unisono::comm
