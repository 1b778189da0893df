// The calls: send and recv, blocking.
#include <algorithm>
#include <string>

#include "comm/core.h"

namespace unisono::detail {

using comm::Polled;
using comm::Transfer;
using comm::Waiter;
using comm::Waiting;

void Core::transfer(std::span<Transfer> transfers, int timeout_ms) {
  check_blocking();
  for (const Transfer& transfer : transfers) {
    check_transfer(transfer);
  }
  if (const Alone alone(*this, transferring_); alone) {
    execute(transfers, timeout_ms);
    return;
  }
  std::vector<std::shared_ptr<RequestState>> requests;
  for (const Transfer& transfer : transfers) {
    requests.push_back(transfer_async(transfer, timeout_ms));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    wait(*requests[i], timeout_ms);
    transfers[i].peer = requests[i]->transfer.peer;  // who it was, of a receive from any
  }
}

void Core::execute(std::span<Transfer> transfers, int timeout_ms) {
  using P2p = comm::PointToPoint;
  P2p& queue = this->transfers();
  for (Transfer& transfer : transfers) {
    record_begin(transfer);
    queue.post(transfer);
  }
  const auto unfinished = [&] {
    return std::find_if_not(transfers.begin(), transfers.end(), P2p::finished);
  };
  Waiter waiter(*world_, effective_timeout(timeout_ms));
  int leaver = -1;
  const auto poll = [&] {
    if (unfinished() == transfers.end()) {
      return Polled::finished;
    }
    const auto progress = or_tell_all([&queue] { return queue.poll(); });
    if (progress == P2p::Progress::failed) {
      raise_transfer_fault();
      throw_abort(nullptr);
    }
    if (progress != P2p::Progress::advanced) {
      return Polled::idle;
    }
    if (world_->aborted()) {  // long work on what has come already
      throw_abort(nullptr);
    }
    return Polled::advanced;
  };
  const auto check = [&] {
    const auto first = unfinished();
    const bool done = first == transfers.end();
    look_for_leaver(done ? -1 : first->peer, leaver);
    if (!done) {
      note_wait(*first);
    }
  };
  const auto verdict = waiter.wait(poll, check);
  if (verdict == Waiter::Verdict::timed_out) {
    raise_transfer_timeout(*unfinished(), waiter.waited_s());
  }
  if (verdict != Waiter::Verdict::finished) {
    throw_abort(nullptr);
  }
  end_wait();
  if (world_->aborted_meanwhile()) {
    throw_abort(nullptr);
  }
  for (const Transfer& transfer : transfers) {
    record_end(transfer);
  }
}

void Core::record_begin(Transfer& transfer) {
  trace::TraceWriter& writer = transfers_->writer;
  if (writer.on()) {
    transfer.recorded =
        writer.begin_transfer(transfer.send, transfer.peer, transfer.tag, transfer.bytes);
  }
}

void Core::record_end(const Transfer& transfer) {
  trace::TraceWriter& writer = transfers_->writer;
  if (writer.on()) {
    writer.end_transfer(transfer.recorded, transfer.peer);
  }
}

void Core::note_wait(Waiting waiting) noexcept {
  if (waiting.peer >= 0) {
    waiting.peer = members_[static_cast<std::size_t>(waiting.peer)];
  }
  notes_wait_.store(true, std::memory_order_relaxed);
  comm::write_wait(my_flight_recorder(), waiting);
}

void Core::note_wait(const Transfer& transfer) noexcept {
  note_wait({.what = transfer.send ? Waiting::What::send : Waiting::What::recv,
             .peer = transfer.peer,
             .place = transfer.tag});
}

void Core::check_transfer(const Transfer& transfer) const {
  const char* verb = transfer.send ? "send" : "recv";
  const bool any = !transfer.send && transfer.peer == kAnySource;
  if (!any && (transfer.peer < 0 || transfer.peer >= size())) {
    throw Error(ErrorCode::usage,
                std::string(verb) + " on " + name(rank_) + ": " + std::to_string(transfer.peer) +
                    " is not a rank\nranks are 0 to " + std::to_string(size() - 1),
                {.rank = world_->rank(), .peer = transfer.peer, .collective = verb});
  }
  if (transfer.bytes != 0 && transfer.data == nullptr) {
    throw Error(ErrorCode::usage,
                std::string(verb) + " on " + name(rank_) + ": the buffer is null, but " +
                    std::to_string(transfer.bytes) + " bytes are named\npass the buffer",
                {.rank = world_->rank(), .peer = transfer.peer, .collective = verb});
  }
}

}  // namespace unisono::detail
