// The reason why a world has ended. The first reason that a rank gives counts, first on its host
// and then on all hosts. It ends every wait of every rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bootstrap/host_memory.h"
#include "transport/network.h"
#include "unisono/error.hpp"

namespace unisono::comm {

class LocalHost;

// Notifies the ranks on other hosts that this rank ends the world, and of the reason.
void tell_hosts_of_abort(transport::Network& network, ErrorCode code, int culprit,
                         std::string_view text) noexcept;

// Any thread may call.
class AbortWord {
 public:
  // This rank is `rank` of the `ranks` ranks of the world. `network` is nullptr if there is one
  // host. `host` and `network` must outlive this object.
  AbortWord(LocalHost& host, transport::Network* network, int rank, int ranks);

  // Called with the complete reason. Any thread may call it, also more than once.
  using Observer = std::function<void(const AbortRecord&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  void tell_observer() const noexcept;

  bool is_set() const noexcept { return record_.state.load(std::memory_order_acquire) != 0; }
  // As is_set(), for a rank that has just read peers' memory. A peer that received an abort may
  // have changed its memory.
  bool is_set_meanwhile() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_set();
  }
  // Returns the culprit if the reason is complete, nullopt otherwise.
  std::optional<int> culprit() const noexcept;

  // Records the reason, unless there is one, and wakes all waiting ranks.
  void raise(ErrorCode code, int culprit, const std::string& text) noexcept;
  // As above, for an error that ended this rank's part in an operation. All ranks must end the
  // operation, because otherwise they would wait for this rank.
  void raise(const std::exception& error) noexcept;
  // Forwards a reason from another rank on this host to the ranks on other hosts that contact this
  // rank first. Does nothing if there is no reason.
  void pass_on() noexcept;
  // Records a reason that came from another host.
  void take(const transport::Network::Abort& abort);

  // REQUIRES: is_set(). If a rank is still writing the reason, waits briefly for it.
  Error reason(ErrorContext context) const;
  // Throws the reason, and notes that the program knows it.
  [[noreturn]] void throw_reason(ErrorContext context) const;
  // Throws `error`, which must be the reason, and notes that the program knows it.
  [[noreturn]] void throw_to_program(const Error& error) const;
  // Notes that a call has reported the reason to this rank's program. Returns the previous state.
  bool note_told() const noexcept { return told_.exchange(true, std::memory_order_relaxed); }
  // Returns the error that throw_reason() would throw, if the reason is complete.
  std::optional<Error> complete() const;
  // Returns the error that throw_reason() would throw, if there is one, without waiting. Notes that
  // the program knows it.
  std::optional<Error> failure();

  // As raise(), but does not notify other hosts, because this rank has already sent them its last
  // message.
  void raise_here(ErrorCode code, const std::string& text) noexcept {
    record(code, -1, rank_, text);
  }

 private:
  // Returns false if there is a reason already.
  bool record(ErrorCode code, int culprit, int reporter, std::string_view text) noexcept;
  Error read(ErrorContext context) const;

  LocalHost& host_;
  transport::Network* network_;
  AbortRecord& record_;
  int rank_;
  int ranks_;
  Observer observer_;
  mutable std::atomic<bool> told_ = false;
  std::atomic<std::int64_t> unwritten_since_ms_ = 0;  // when failure() found the reason incomplete
};

}  // namespace unisono::comm
