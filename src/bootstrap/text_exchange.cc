#include "bootstrap/text_exchange.h"

#include <poll.h>

#include <utility>

namespace unisono::comm {

void TextExchange::wait(int most_ms) const {
  std::vector<pollfd> entries;
  acceptor_.add_events(entries);
  for (const Peer& peer : peers_) {
    if (peer.socket) {
      entries.push_back({peer.socket.get(), POLLIN, 0});
    }
  }
  ::poll(entries.data(), entries.size(), most_ms);
}

std::vector<TextExchange::Received> TextExchange::receive() {
  acceptor_.step(tcp::clock_ms());
  for (tcp::Admitted& admitted : acceptor_.take_admitted()) {
    peers_[static_cast<std::size_t>(admitted.peer.peer)] = {.socket = std::move(admitted.socket)};
  }
  std::vector<Received> received;
  for (const int rank : acceptor_.take_lost()) {
    if (!is_here(rank)) {
      received.push_back({.rank = rank, .hung_up = true});
    }
  }
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.socket) {
      continue;
    }
    using State = TextReader::State;
    const State state = peer.heard ? State::done : peer.reader.step(peer.socket, most_bytes_);
    const auto number = static_cast<int>(rank);
    if (state == State::closed || (peer.heard && has_hung_up(peer.socket))) {
      peer = {};
      acceptor_.let_again({.peer = number, .stream = 0});
      received.push_back({.rank = number, .hung_up = true});
    } else if (state == State::done && !peer.heard) {
      peer.heard = true;
      received.push_back({.rank = number, .text = peer.reader.text()});
    }
  }
  return received;
}

// Sends to all ranks at the same time, so a rank that does not read does not delay the others.
std::vector<int> TextExchange::tell(std::string_view text, const Deadline& deadline) {
  const std::string frame = text_frame(text);
  struct Letter {
    tcp::Channel& to;
    TextWriter writer;
  };
  std::vector<int> ranks;
  std::vector<Letter> letters;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (peer.socket && !peer.told) {
      peer.told = true;
      ranks.push_back(static_cast<int>(rank));
      letters.push_back({peer.socket, TextWriter(frame)});
    }
  }
  for (;;) {
    std::vector<pollfd> stuck;
    for (Letter& letter : letters) {
      if (letter.writer.step(letter.to) == TextWriter::State::going_on) {
        stuck.push_back({letter.to.get(), POLLOUT, 0});
      }
    }
    if (stuck.empty() || deadline.passed()) {
      return ranks;
    }
    ::poll(stuck.data(), stuck.size(), deadline.poll_ms());
  }
}

}  // namespace unisono::comm
