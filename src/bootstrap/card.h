// Business cards: the data that ranks on several hosts send each other when they connect, and the
// frames for this data. Cards are sent only over connections whose peers have proved that they know
// the token.
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
  std::string host;       // ranks with the same host can share memory
  std::string machine;    // ranks with the same machine share CPUs
  std::vector<int> cpus;  // that the rank may use
  int worlds = 0;         // number of worlds that the job has had, as far as this rank knows
  std::vector<tcp::Address> addresses;
};
std::string to_text(const BusinessCard& card);
// Rank 0 sends a table, which contains the cards of all ranks by rank. Both functions throw
// corrupt.
BusinessCard parse_card(std::string_view text);
std::vector<BusinessCard> parse_table(std::string_view table, int size);
std::string to_table(const std::vector<BusinessCard>& cards);
// Describes a card whose address only its own host can reach; returns an empty text if there is
// none.
std::string find_unreachable(const std::vector<BusinessCard>& cards);

inline constexpr std::size_t kMostCardBytes = std::size_t{16} << 10;

// Returns the text of an answer that reports an error.
std::string error_text(ErrorCode code, const std::string& message);

// A frame is the length of a text, followed by the text.
std::string text_frame(std::string_view text);
// Sends one frame without blocking. The frame must outlive this object.
class TextWriter {
 public:
  enum class State : std::uint8_t { going_on, done, closed };
  explicit TextWriter(std::string_view frame) : rest_(frame) {}
  State step(tcp::Channel& to);

 private:
  std::string_view rest_;
};
// Returns false if the other side is gone or too slow.
bool send_text(tcp::Channel& to, std::string_view text, const Deadline& deadline);
// Receives one frame without blocking.
class TextReader {
 public:
  enum class State : std::uint8_t { going_on, done, closed };
  State step(tcp::Channel& from, std::size_t most_bytes);
  const std::string& text() const { return text_; }

 private:
  std::string head_;
  std::string text_;
};
// Returns true if the peer, which has nothing more to send, has closed.
bool has_hung_up(tcp::Channel& peer);
// Sends one text and receives one. If the answer is an error, throws it. If there is no answer,
// returns nothing and sets `obstacle` to the reason.
std::optional<std::string> ask_text(tcp::Channel& peer, std::string_view text,
                                    std::size_t most_bytes, const Deadline& deadline,
                                    std::string& obstacle);

}  // namespace unisono::comm
