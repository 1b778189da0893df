// Signals between ranks through their pads, in PyTorch's layout: one 32-bit word per channel and
// sender, zero if there is no signal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace unisono_torch {

struct SignalRank {
  std::byte* pad = nullptr;
  std::function<std::string()> end;  // returns "was killed by SIGKILL"; empty: alive
  std::function<bool()> is_stopped;
};

class Signals {
 public:
  Signals(int rank, std::vector<SignalRank> ranks, std::size_t pad_bytes)
      : rank_(rank), ranks_(std::move(ranks)), pad_bytes_(pad_bytes) {}

  // Waits until the previous signal on this channel has been received, then signals. `timeout_ms`
  // 0: no limit. Throws unisono::Error (usage, peer_lost or timeout), and the exception that Ctrl-C
  // raises.
  void put(int to, int channel, std::size_t timeout_ms);
  // Waits for a signal and clears it.
  void wait(int from, int channel, std::size_t timeout_ms);
  // Signals every rank, and waits for a signal from every rank.
  void barrier(int channel, std::size_t timeout_ms);

 private:
  enum class What { put, wait, barrier };
  struct Limit;
  std::uint32_t* word(int of, int from, int channel) const;
  // Waits until the word is `expected` (0 or 1), then flips it.
  void turn(What what, int of, int from, int channel, std::uint32_t expected, const Limit& limit);
  void look(What what, int peer, int channel, const Limit& limit) const;
  void check(int peer, int channel) const;

  int rank_;
  std::vector<SignalRank> ranks_;
  std::size_t pad_bytes_;
};

// Wakes all threads that wait for a signal in this word.
void wake_waiters(std::uint32_t* word) noexcept;

}  // namespace unisono_torch
