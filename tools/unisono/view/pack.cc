#include "view/pack.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace unisono::cli {
namespace {

// Unsigned numbers in groups of seven bits, lowest group first; all groups but the last have bit 7
// set.
class Bytes {
 public:
  void add(std::uint64_t value) {
    while (value >= 128) {
      bytes_.push_back(static_cast<std::uint8_t>(value | 128U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }

  std::string base64() const {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes_.size(); at += 3) {
      std::uint32_t three = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        three = three << 8U | (at + i < bytes_.size() ? bytes_[at + i] : 0U);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        text += at + i > bytes_.size() ? '=' : kDigits[(three >> (18 - 6 * i)) & 63U];
      }
    }
    return text;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Maps 0, -1, 1, -2 ... to 0, 1, 2, 3 ...
std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}

// Adds a column: pairs of a difference from the previous value and its number of repetitions.
template <typename Value>
void add_column(Bytes& bytes, const std::vector<Move>& moves, const Value& value) {
  std::int64_t before = 0;
  std::int64_t difference = 0;
  std::uint64_t repeats = 0;
  for (const Move& move : moves) {
    const auto now = static_cast<std::int64_t>(value(move));
    if (repeats > 0 && now - before != difference) {
      bytes.add(zigzag(difference));
      bytes.add(repeats);
      repeats = 0;
    }
    difference = now - before;
    before = now;
    ++repeats;
  }
  if (repeats > 0) {
    bytes.add(zigzag(difference));
    bytes.add(repeats);
  }
}

std::string pack_moves(const std::vector<Move>& moves) {
  Bytes bytes;
  bytes.add(moves.size());
  add_column(bytes, moves, [](const Move& move) { return move.step; });
  add_column(bytes, moves, [](const Move& move) { return move.from; });
  add_column(bytes, moves, [](const Move& move) { return move.to; });
  add_column(bytes, moves, [](const Move& move) { return move.chunk; });
  add_column(bytes, moves, [](const Move& move) { return move.chunks; });
  // Encodes how a move reads and writes as one number.
  add_column(bytes, moves, [](const Move& move) {
    return static_cast<int>(move.source) * 6 + static_cast<int>(move.target) * 2 +
           static_cast<int>(move.combine);
  });
  add_column(bytes, moves, [](const Move& move) { return move.line; });
  return bytes.base64();
}

}  // namespace

nlohmann::ordered_json pack(const Schedule& schedule) {
  nlohmann::ordered_json packed;
  packed["ranks"] = schedule.ranks;
  packed["root"] = schedule.root;
  packed["chunks"] = schedule.chunks;
  packed["steps"] = schedule.steps;
  packed["phases"] = nlohmann::ordered_json::array();
  for (const Phase& phase : schedule.phases) {
    packed["phases"].push_back({phase.name, phase.first_step});
  }
  packed["moves"] = pack_moves(schedule.moves);
  return packed;
}

}  // namespace unisono::cli
