#include "record/replay_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "record/numbers.h"

namespace unisono::cli {

using nlohmann::ordered_json;

std::string PlayedTransfer::text() const {
  const auto& [group, from, to, tag] = key;
  const std::string peer_text = peer() < 0 ? "any rank" : fmt::format("rank {}", peer());
  return sends ? fmt::format("rank {} sends to {}, tag {} in {}", from, peer_text, tag, group)
               : fmt::format("rank {} receives from {}, tag {} in {}", to, peer_text, tag, group);
}

PlayedTransfers::PlayedTransfers(const ordered_json& trace) {
  if (!trace.contains("transfers")) {
    return;
  }
  const ordered_json& rows = trace["transfers"];
  const ordered_json dropped = trace.value("dropped_events", ordered_json::array());
  const auto has_all = [&dropped](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return rank < 0 || at >= dropped.size() || dropped[at] == 0;
  };
  constexpr int kMostPeer = std::numeric_limits<int>::max();
  for (std::size_t row = 0; row < rows.at("rank").size(); ++row) {
    const auto rank = static_cast<int>(whole_at(trace, "transfers", "rank", row, 0, kMostPeer));
    const int peer =
        rows.at("peer").at(row).is_null()
            ? -1
            : static_cast<int>(whole_at(trace, "transfers", "peer", row, 0, kMostPeer));
    PlayedTransfer one{.sends = rows.at("kind").at(row) == "send",
                       .begin_us = rows.at("start_us").at(row).get<double>()};
    one.key = {rows.at("group").at(row).get<std::string>(), one.sends ? rank : peer,
               one.sends ? peer : rank,
               whole_at(trace, "transfers", "tag", row, std::numeric_limits<int>::min())};
    const ordered_json& end = rows.at("end_us").at(row);
    one.end_us = end.is_null() ? one.end_us : std::max(one.begin_us, end.get<double>());
    // If a rank kept only its newest events, earlier sends are missing.
    if (!has_all(rank) || !has_all(peer) || (peer < 0 && (one.sends || !end.is_null()))) {
      ++left_out_;
    } else {
      transfers_.push_back(std::move(one));
    }
  }
}

void PlayedTransfers::begin(const PlayedTransfer& transfer) {
  Count& count = counts_[transfer.key];
  ++(transfer.sends ? count.sent : count.awaited);
}

bool PlayedTransfers::end(const PlayedTransfer& transfer) {
  Count& count = counts_[transfer.key];
  if (!transfer.sends && count.received == count.sent) {
    return false;
  }
  count.received += transfer.sends ? 0 : 1;
  return true;
}

std::vector<std::string> PlayedTransfers::waits() const {
  std::map<PlayedTransfer::Key, Count> left = counts_;
  std::vector<std::string> texts;
  for (const PlayedTransfer& one : transfers_) {
    if (std::isfinite(one.end_us)) {
      continue;
    }
    Count& count = left[one.key];
    const auto& [group, from, to, tag] = one.key;
    // Only the newest calls wait: earlier ones are matched with the calls of the other end.
    if (one.sends ? count.sent-- > count.awaited : count.awaited-- > count.sent) {
      texts.push_back(fmt::format("rank {} waits for {} to {}, tag {} in {}", one.rank(),
                                  one.peer() < 0 ? "any rank" : fmt::format("rank {}", one.peer()),
                                  one.sends ? "receive" : "send", tag, group));
    }
  }
  return texts;
}

}  // namespace unisono::cli
