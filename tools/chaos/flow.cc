#include "chaos/flow.h"

#include <algorithm>

namespace unisono::chaos {

void Flow::put(std::span<const std::byte> bytes, std::int64_t now_us) {
  std::vector<std::byte> whole = damaged(bytes);
  for (std::size_t at = 0; at < whole.size(); at += kPacket) {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(at);
    const auto bytes_here = static_cast<std::ptrdiff_t>(std::min(kPacket, whole.size() - at));
    push({begin, begin + bytes_here}, now_us);
  }
}

void Flow::push(std::vector<std::byte> bytes, std::int64_t now_us) {
  std::int64_t sent_us = now_us;
  if (options_.bytes_per_s > 0) {
    const double takes_us = static_cast<double>(bytes.size()) * 1e6 / options_.bytes_per_s;
    wire_free_us_ = std::max(wire_free_us_, now_us) + static_cast<std::int64_t>(takes_us);
    sent_us = wire_free_us_;
  }
  std::int64_t due_us = sent_us + options_.delay_us +
                        static_cast<std::int64_t>(draw() * static_cast<double>(options_.jitter_us));
  while (draw() < options_.loss) {
    due_us += kResendUs + 2 * options_.delay_us;
  }
  if (options_.corrupt > 0 && draw() < options_.corrupt) {
    bytes[random_() % bytes.size()] ^= static_cast<std::byte>(1U << random_() % 8);
  }
  // TCP hands nothing out of order: what comes early waits for those before.
  last_due_us_ = std::max(last_due_us_, due_us);
  held_ += bytes.size();
  packets_.push_back({.bytes = std::move(bytes), .done = 0, .due_us = last_due_us_});
}

// The continuing stream, and the effect at the place of the damage.
std::vector<std::byte> Flow::damaged(std::span<const std::byte> bytes) {
  std::vector<std::byte> out;
  out.reserve(bytes.size());
  const std::uint64_t first = damage_.at;
  for (const std::byte byte : bytes) {
    const std::uint64_t here = passed_++;
    const bool inside = here >= first && here - first < damage_.bytes;
    const bool behind = here >= first && here - first >= damage_.bytes &&
                        here - first < 2 * static_cast<std::uint64_t>(damage_.bytes);
    const bool last = here >= first && here - first + 1 == damage_.bytes;
    switch (damage_.kind) {
      case Damage::Kind::none:
        out.push_back(byte);
        break;
      case Damage::Kind::flip:
        out.push_back(here == first ? byte ^ static_cast<std::byte>(1U << random_() % 8) : byte);
        break;
      case Damage::Kind::cut:
        if (!inside) {
          out.push_back(byte);
        }
        break;
      case Damage::Kind::repeat:
        out.push_back(byte);
        if (inside) {
          kept_.push_back(byte);
        }
        if (last) {
          out.insert(out.end(), kept_.begin(), kept_.end());
        }
        break;
      case Damage::Kind::swap:
        (inside ? kept_ : out).push_back(byte);
        if (behind && here - first + 1 == 2 * static_cast<std::uint64_t>(damage_.bytes)) {
          out.insert(out.end(), kept_.begin(), kept_.end());
        }
        break;
    }
  }
  return out;
}

std::span<const std::byte> Flow::ready(std::int64_t now_us) const {
  if (packets_.empty() || packets_.front().due_us > now_us) {
    return {};
  }
  const Packet& first = packets_.front();
  return std::span(first.bytes).subspan(first.done);
}

void Flow::leave(std::size_t bytes) {
  held_ -= bytes;
  packets_.front().done += bytes;
  if (packets_.front().done == packets_.front().bytes.size()) {
    packets_.pop_front();
  }
}

std::optional<std::int64_t> Flow::next_us() const {
  return packets_.empty() ? std::nullopt : std::optional(packets_.front().due_us);
}

}  // namespace unisono::chaos
