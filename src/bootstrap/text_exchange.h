// Receives one text from each other rank through this rank's acceptor, and sends each rank one
// text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"

namespace unisono::comm {

class TextExchange {
 public:
  // `most_bytes`: limit of a text.
  TextExchange(tcp::Acceptor& acceptor, int ranks, std::size_t most_bytes)
      : acceptor_(acceptor), most_bytes_(most_bytes), peers_(static_cast<std::size_t>(ranks)) {}

  // Waits until something happens, for at most this time.
  void wait(int most_ms) const;
  struct Received {
    int rank = -1;
    bool hung_up = false;   // it may come again
    std::string text = {};  // else: its text
  };
  std::vector<Received> receive();
  bool is_here(int rank) const {
    return static_cast<bool>(peers_[static_cast<std::size_t>(rank)].socket);
  }
  // Sends to all ranks that have come and have had no answer yet. Returns these ranks.
  std::vector<int> tell(std::string_view text, const Deadline& deadline);

 private:
  struct Peer {
    tcp::Channel socket = {};
    TextReader reader = {};
    bool heard = false;
    bool told = false;
  };

  tcp::Acceptor& acceptor_;
  std::size_t most_bytes_;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace unisono::comm
