// What the ranks of several hosts tell of themselves when they meet, and the frames in which they
// do: over connections that have proved the token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/wire.h"
#include "transport/tcp/address.h"
#include "transport/tcp/channel.h"

namespace unisono::comm {

struct BusinessCard {
  std::string host;       // ranks with the same can share memory
  std::string machine;    // and with the same share CPUs
  std::vector<int> cpus;  // that it may use
  int worlds = 0;         // how many the job has had before, as far as this rank knows
  std::vector<tcp::Address> addresses;
};
std::string to_text(const BusinessCard& card);
// Both throw corrupt. A table is what rank 0 sends: the cards of all, by rank.
BusinessCard parse_card(std::string_view text);
std::vector<BusinessCard> parse_table(std::string_view table, int size);
std::string to_table(const std::vector<BusinessCard>& cards);
// An address that only its own host reaches is of no use to others: says so; empty: there is none.
std::string find_unreachable(const std::vector<BusinessCard>& cards);

inline constexpr std::size_t kMostCardBytes = std::size_t{16} << 10;

// What goes wrong, in place of an answer.
std::string error_text(ErrorCode code, const std::string& message);

// A frame is the length of a text, and the text.
std::string text_frame(std::string_view text);
// Sends one frame, without blocking. The frame outlives it.
class TextWriter {
 public:
  enum class State : std::uint8_t { going_on, done, closed };
  explicit TextWriter(std::string_view frame) : rest_(frame) {}
  State step(tcp::Channel& to);

 private:
  std::string_view rest_;
};
// False: the other side is gone, or too slow.
bool send_text(tcp::Channel& to, std::string_view text, const Deadline& deadline);
// Collects one frame, without blocking.
class TextReader {
 public:
  enum class State : std::uint8_t { going_on, done, closed };
  State step(tcp::Channel& from, std::size_t most_bytes);
  const std::string& text() const { return text_; }

 private:
  std::string head_;
  std::string text_;
};
// Whether a peer that has nothing more to say has hung up.
bool has_hung_up(tcp::Channel& peer);
// Says one text and hears one. Throws the error that is the answer. None: `obstacle` says why.
std::optional<std::string> ask_text(tcp::Channel& peer, std::string_view text,
                                    std::size_t most_bytes, const Deadline& deadline,
                                    std::string& obstacle);

}  // namespace unisono::comm
