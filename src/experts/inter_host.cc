#include "experts/inter_host.h"

#include <cstddef>
#include <limits>

namespace unisono::experts {

std::vector<InterHostIndex> find_inter_host_rows(const HostMap& hosts, int k,
                                                 const SendLayout& send_layout, std::size_t choices,
                                                 InterHostLayout& inter_host) {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> host_of(choices, kNowhere);
  std::size_t next = 0;
  for (std::size_t rank = 0; rank < send_layout.send.size(); ++rank) {
    for (std::size_t i = 0; i < send_layout.send[rank]; ++i) {
      host_of[send_layout.messages[next++].choice] = hosts.host(static_cast<int>(rank));
    }
  }
  inter_host.leave.assign(hosts.count(), {});
  std::vector<InterHostIndex> number(choices);
  for (std::size_t choice = 0; choice < choices; ++choice) {
    if (host_of[choice] == kNowhere) {
      continue;
    }
    InterHostRows& rows = inter_host.leave[host_of[choice]];
    const auto token = static_cast<std::uint32_t>(choice / static_cast<std::size_t>(k));
    if (rows.tokens.empty() || rows.tokens.back() != token) {
      rows.tokens.push_back(token);
    }
    number[choice] = {.token = static_cast<std::uint32_t>(rows.tokens.size() - 1),
                      .choice = static_cast<std::uint32_t>(rows.choices.size())};
    rows.choices.push_back(static_cast<std::uint32_t>(choice));
  }
  std::vector<InterHostIndex> of_told;
  of_told.reserve(send_layout.messages.size());
  for (const ChoiceMessage& messages : send_layout.messages) {
    of_told.push_back(number[messages.choice]);
  }
  return of_told;
}

}  // namespace unisono::experts
