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

// Tells the ranks of other hosts that this one ends the world, and why.
void tell_hosts_of_abort(transport::Network& network, ErrorCode code, int culprit,
                         std::string_view text) noexcept;

// Any thread may call.
class AbortWord {
 public:
  // `rank` of `ranks` of the world. `network`: nullptr where there is one host. Both outlive it.
  AbortWord(LocalHost& host, transport::Network* network, int rank, int ranks);

  // Told of the complete reason, perhaps more than once and by any thread.
  using Observer = std::function<void(const AbortRecord&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  void tell_observer() const noexcept;

  bool is_set() const noexcept { return record_.state.load(std::memory_order_acquire) != 0; }
  // The same after reading memory of peers, who may have changed it since they heard of an abort.
  bool is_set_meanwhile() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_set();
  }
  // The culprit of a complete reason; nullopt: there is none.
  std::optional<int> culprit() const noexcept;

  // The first reason stays; everybody is woken.
  void raise(ErrorCode code, int culprit, const std::string& text) noexcept;
  // What ended this rank's part in an operation ends it for all: they would wait for it.
  void raise(const std::exception& error) noexcept;
  // A reason that another rank of this host has given, for ranks of other hosts that hear of this
  // one first. Nothing where there is none.
  void pass_on() noexcept;
  // What another host says.
  void take(const transport::Network::Abort& abort);

  // REQUIRES: is_set(). Waits a little for a rank that has begun to write the reason.
  Error reason(ErrorContext context) const;
  // The same, and the program knows it.
  [[noreturn]] void throw_reason(ErrorContext context) const;
  // Throws `error`, which is the reason: the program knows it.
  [[noreturn]] void throw_to_program(const Error& error) const;
  // Whether a call has told this rank's program the reason. Returns what was noted before.
  bool note_told() const noexcept { return told_.exchange(true, std::memory_order_relaxed); }
  // What throw_reason() would throw if the reason is complete.
  std::optional<Error> complete() const;
  // What throw_reason() would throw, if it would, without waiting. The program is told.
  std::optional<Error> failure();

  // As raise(), but tells no other host: this rank has said its last word to them.
  void raise_here(ErrorCode code, const std::string& text) noexcept {
    record(code, -1, rank_, text);
  }

 private:
  // False: there is a reason already.
  bool record(ErrorCode code, int culprit, int reporter, std::string_view text) noexcept;
  Error read(ErrorContext context) const;

  LocalHost& host_;
  transport::Network* network_;
  AbortRecord& record_;
  int rank_;
  int ranks_;
  Observer observer_;
  mutable std::atomic<bool> told_ = false;
  std::atomic<std::int64_t> unwritten_since_ms_ = 0;  // when failure() first found a reason begun
};

}  // namespace unisono::comm
