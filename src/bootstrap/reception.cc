#include "bootstrap/reception.h"

#include <poll.h>

#include <utility>

namespace unisono::comm {

void Reception::wait(int most_ms) const {
  std::vector<pollfd> entries;
  gate_.add_events(entries);
  for (const Guest& guest : guests_) {
    if (guest.socket) {
      entries.push_back({guest.socket.get(), POLLIN, 0});
    }
  }
  ::poll(entries.data(), entries.size(), most_ms);
}

std::vector<Reception::News> Reception::hear() {
  gate_.step(tcp::clock_ms());
  for (tcp::Admitted& admitted : gate_.take_admitted()) {
    guests_[static_cast<std::size_t>(admitted.peer.peer)] = {.socket = std::move(admitted.socket)};
  }
  std::vector<News> news;
  for (std::size_t rank = 0; rank < guests_.size(); ++rank) {
    Guest& guest = guests_[rank];
    if (!guest.socket) {
      continue;
    }
    using State = TextReader::State;
    const State state = guest.heard ? State::done : guest.reader.step(guest.socket, most_bytes_);
    const auto number = static_cast<int>(rank);
    if (state == State::closed || (guest.heard && has_hung_up(guest.socket))) {
      guest = {};
      gate_.let_again({.peer = number, .stream = 0});
      news.push_back({.rank = number, .hung_up = true});
    } else if (state == State::done && !guest.heard) {
      guest.heard = true;
      news.push_back({.rank = number, .text = guest.reader.text()});
    }
  }
  return news;
}

std::vector<int> Reception::tell(std::string_view text, const Deadline& deadline) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < guests_.size(); ++rank) {
    Guest& guest = guests_[rank];
    if (guest.socket && !guest.told) {
      guest.told = true;
      send_text(guest.socket, text, deadline);
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

}  // namespace unisono::comm
