// One direction of an emulated link: bytes go in, and come out later, slower, or not as they were.
//
// No sockets and no clock here: the times are the caller's, all else follows from the options, and
// the same calls give the same bytes at the same times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "chaos/options.h"

namespace unisono::chaos {

// Damage that a broken network does to a stream at one position.
struct Damage {
  enum class Kind : std::uint8_t {
    none,
    flip,    // one bit of the byte there
    cut,     // `bytes` are gone
    repeat,  // `bytes` come twice
    swap,    // `bytes` and as many behind them change places
  };
  Kind kind = Kind::none;
  std::uint64_t at = 0;
  std::size_t bytes = 1;
};

class Flow {
 public:
  Flow(const Options& options, std::uint64_t seed, const Damage& damage = {})
      : options_(options), damage_(damage), random_(seed) {}

  // Returns how many bytes it accepts now: as many as a router would hold.
  std::size_t room() const { return held_ < kHeld ? kHeld - held_ : 0; }
  void put(std::span<const std::byte> bytes, std::int64_t now_us);
  // Returns the data that may leave now; leave() then says how much of it has.
  std::span<const std::byte> ready(std::int64_t now_us) const;
  void leave(std::size_t bytes);
  // When something may leave; none: there is nothing.
  std::optional<std::int64_t> next_us() const;
  bool is_empty() const { return held_ == 0; }

 private:
  static constexpr std::size_t kHeld = std::size_t{4} << 20;
  static constexpr std::size_t kPacket = 16 << 10;
  static constexpr std::int64_t kResendUs = 200'000;  // the least wait of usual systems

  struct Packet {
    std::vector<std::byte> bytes;
    std::size_t done = 0;
    std::int64_t due_us = 0;
  };
  void push(std::vector<std::byte> bytes, std::int64_t now_us);
  std::vector<std::byte> damaged(std::span<const std::byte> bytes);
  double draw() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  Options options_;
  Damage damage_;
  std::mt19937_64 random_;
  std::deque<Packet> packets_;
  std::size_t held_ = 0;
  std::uint64_t passed_ = 0;       // bytes that have come in
  std::vector<std::byte> kept_;    // of what changes places
  std::int64_t wire_free_us_ = 0;  // when the last byte has left at the given rate
  std::int64_t last_due_us_ = 0;
};

}  // namespace unisono::chaos
