// Why a world has ended: the first reason that a rank gives, on each host and then on all. It ends
// every wait of every rank.
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

// Tells the ranks on other hosts that this rank ends the world, and why.
void tell_hosts_of_abort(transport::Network& network, ErrorCode code, int culprit,
                         std::string_view text) noexcept;

// Any thread may call.
class AbortWord {
 public:
  // `rank` of `ranks` of the world. `network`: nullptr if there is one host. Both must outlive it.
  AbortWord(LocalHost& host, transport::Network* network, int rank, int ranks);

  // Called with the complete reason, perhaps more than once and by any thread.
  using Observer = std::function<void(const AbortRecord&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  void tell_observer() const noexcept;

  bool is_set() const noexcept { return record_.state.load(std::memory_order_acquire) != 0; }
  // As is_set(), after reading memory of peers, who may have changed it since they were told of an
  // abort.
  bool is_set_meanwhile() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_set();
  }
  // Returns the culprit of a complete reason; nullopt: there is none.
  std::optional<int> culprit() const noexcept;

  // The first reason is kept; all waiting ranks are woken.
  void raise(ErrorCode code, int culprit, const std::string& text) noexcept;
  // An error that ended this rank's part in an operation ends it on all ranks, which would wait for
  // it.
  void raise(const std::exception& error) noexcept;
  // Forwards a reason that another rank on this host has given to ranks on other hosts that contact
  // this rank first. Does nothing if there is none.
  void pass_on() noexcept;
  // Takes the reason of another host.
  void take(const transport::Network::Abort& abort);

  // REQUIRES: is_set(). Waits briefly for a rank that has begun to write the reason.
  Error reason(ErrorContext context) const;
  // Throws the reason; the program then knows it.
  [[noreturn]] void throw_reason(ErrorContext context) const;
  // Throws `error`, which is the reason; the program then knows it.
  [[noreturn]] void throw_to_program(const Error& error) const;
  // Notes that a call has reported the reason to this rank's program. Returns the previous state.
  bool note_told() const noexcept { return told_.exchange(true, std::memory_order_relaxed); }
  // Returns what throw_reason() would throw, if the reason is complete.
  std::optional<Error> complete() const;
  // Returns what throw_reason() would throw, if anything, without waiting. The program then knows
  // it.
  std::optional<Error> failure();

  // As raise(), but tells no other host: this rank has said its last word to them.
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
