// One lane of a simulated network: its messages, the time at which each becomes visible, and the
// releases that the writer knows of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace unisono::sim {

enum class Kind : std::uint8_t { bytes, slot, shared, offered };

struct SimMessage {
  Kind kind = Kind::bytes;
  std::vector<std::byte> copy = {};
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t signature = 0;
  std::uint64_t digest = 0;  // of shared and offered memory, which must not change
  int unread = 0;            // number of readers that have not read it

  bool refers() const { return kind == Kind::shared || kind == Kind::offered; }
  std::size_t room() const { return kind == Kind::bytes ? 64 + bytes + bytes / 4 : 64; }
};

struct LaneLimits {
  std::size_t bytes = 0;
  std::size_t unreported_bytes = 0;
  int slots = 0;
};

class SimLane {
 public:
  struct Reader {
    int rank = 0;
    std::uint32_t next = 0;                // position of the next message
    std::vector<std::uint64_t> seen = {};  // [position]: time
    std::size_t unreported = 0;            // room that is released and not yet reported
    struct Telling {
      std::uint64_t at;
      std::uint32_t released;
    };
    std::deque<Telling> telling = {};
    std::uint32_t told = 0;  // messages released, as far as the writer knows
  };

  int from = 0;
  std::vector<Reader> readers = {};
  std::vector<std::byte> reserved = {};
  bool is_reserved = false;

  std::uint32_t position() const { return first_ + static_cast<std::uint32_t>(messages_.size()); }
  SimMessage& at(std::uint32_t position) { return messages_[position - first_]; }
  void add(SimMessage message) { messages_.push_back(std::move(message)); }

  bool has_room(Kind kind, std::size_t bytes, const LaneLimits& limits, std::uint64_t now) {
    const SimMessage next{.kind = kind, .bytes = bytes};
    listen(now);
    std::size_t room = next.room();
    int slots = kind == Kind::slot ? 1 : 0;
    for (const SimMessage& message : messages_) {
      room += message.room();
      slots += message.kind == Kind::slot ? 1 : 0;
    }
    return room <= std::max(limits.bytes, next.room()) + limits.unreported_bytes &&
           slots <= std::max(limits.slots, 1);
  }
  bool drained(std::uint32_t mark, std::uint64_t now) {
    listen(now);
    return first_ >= mark;
  }
  int slowest_reader(std::uint64_t now) {
    listen(now);
    return std::min_element(readers.begin(), readers.end(),
                            [](const Reader& a, const Reader& b) { return a.told < b.told; })
        ->rank;
  }

 private:
  // Drops the messages whose release by all readers the writer knows.
  void listen(std::uint64_t now) {
    std::uint32_t all = position();
    for (Reader& reader : readers) {
      while (!reader.telling.empty() && reader.telling.front().at <= now) {
        reader.told = reader.telling.front().released;
        reader.telling.pop_front();
      }
      all = std::min(all, reader.told);
    }
    for (; first_ < all; ++first_) {
      messages_.pop_front();
    }
  }

  std::uint32_t first_ = 0;  // position of the first message that is kept
  std::deque<SimMessage> messages_;
};

}  // namespace unisono::sim
