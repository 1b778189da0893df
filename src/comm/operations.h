// Runs a group's operations: one collective at a time, and its sends and receives. Not thread-safe:
// at any time, either one blocking call uses one of these two parts, or the queue uses both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/accounts.h"
#include "comm/point_to_point.h"
#include "diagnose/diagnosis.h"

namespace unisono {

struct Call;

}  // namespace unisono

namespace unisono::engine {

enum class Progress : std::uint8_t;
class Executor;

}  // namespace unisono::engine

namespace unisono::comm {

class Group;
struct Prepared;

class Operations {
 public:
  explicit Operations(Group& group);
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;
  // Waits briefly until the peers have read the data that was sent.
  ~Operations();

  bool multicasts() const noexcept { return lanes_->limits().multicast; }
  Diagnosis& diagnosis() noexcept { return *diagnosis_; }

  // A collective: call begin(), then poll() until it is finished, then finish(). `salt` becomes
  // part of the signature. `counted` is the whole call, for the accounts, if this one is a slice.
  void begin(const Prepared& prepared, const Call& call, const Prepared& counted,
             std::uint64_t salt = 0);
  engine::Progress poll() noexcept;
  // Tell the accounts that a caller waits, and that the latest poll found nothing to do (or
  // something to do).
  void note_idle() noexcept;
  void note_progress() noexcept { accounts_.advanced(flight_clock_ns); }
  void finish(const Prepared& prepared, const Call& call);
  // Runs begin(), poll() and finish(). timeout_ms 0 means no limit.
  void run(const Prepared& prepared, const Call& call, const Prepared& counted, int timeout_ms);
  const Diagnosis::Operation& latest() const noexcept { return latest_; }
  // Returns the cost of the calls so far. Any thread.
  Statistics statistics() const;

  // A send or receive: call begin(), then poll_transfers() until it is finished, then end().
  // `blocking` means that the caller does nothing else until then.
  void begin(PendingTransfer& transfer, bool blocking);
  // As PointToPoint::send_now(); counts and records the send.
  bool send_now(PendingTransfer& transfer);
  PointToPoint::Progress poll_transfers();
  // As PointToPoint::take_finished().
  PendingTransfer* take_finished();
  void end(const PendingTransfer& transfer);
  void run(std::span<PendingTransfer> transfers, int timeout_ms);
  // Throws the error of a transfer. REQUIRES: poll_transfers() has failed.
  void raise_transfer_fault();

  // Returns the error that ended the world. `prepared` is the collective that fails with it. false
  // for `has_begun`: the collective was still queued, so no step of it can be named.
  Error end(const Prepared* prepared, bool has_begun = true);

 private:
  // Made at the first send or receive, because most groups have none.
  struct Transfers;
  Transfers& transfers() { return transfers_ == nullptr ? open_transfers() : *transfers_; }
  Transfers& open_transfers();
  [[noreturn]] void throw_abort(const Prepared* prepared);
  void start(const Prepared& prepared, const Call& call, std::uint64_t salt);
  int late_rank() const noexcept;
  bool has_entered(int rank) const noexcept;
  void record_begin(const Prepared& prepared);
  void wait(const Prepared& prepared, int timeout_ms);
  void close_lanes() noexcept;

  Group& group_;
  std::unique_ptr<transport::Transport> lanes_;
  std::unique_ptr<engine::Executor> executor_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<Diagnosis> diagnosis_;
  Diagnosis::Operation latest_;
  Accounts accounts_;           // of collectives
  Accounts transfer_accounts_;  // separate, because another thread may send or receive meanwhile
  std::vector<std::byte> scratch_;
  std::byte barrier_token_[2] = {};
};

TransferState state_of(const PendingTransfer& transfer);

}  // namespace unisono::comm
