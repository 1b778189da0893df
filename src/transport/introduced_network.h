// A network whose ranks introduce themselves to each other over the authenticated connections over
// TCP, and which those stay beside: a peer that dies is noticed by them, and so do aborts travel.
#pragma once

#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/tcp/channel.h"

namespace unisono::transport {

class IntroducedNetwork : public Network {
 public:
  // What one peer must know to reach this rank, and must prove in each message: bytes.
  virtual std::string introduction(int peer) = 0;
  // Begins to connect with all peers that have channels: `introductions` by rank, of each what it
  // said to this rank; of one that hung up, nothing. Throws resource.
  virtual void meet(tcp::Channels channels, const std::vector<std::string>& introductions) = 0;
  // Goes on with it. Those that have not been heard over this network yet.
  virtual std::vector<int> missing() = 0;
};

}  // namespace unisono::transport
