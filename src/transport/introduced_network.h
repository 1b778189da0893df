// A network whose ranks introduce themselves to each other over the authenticated connections over
// TCP, and which those stay beside: a peer that dies is noticed by them, and so do aborts travel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/network.h"

namespace unisono::transport {

// The authenticated connections.
class ControlNetwork : public Network {
 public:
  virtual bool reaches(int rank) const noexcept = 0;
  // wait() also returns when this descriptor is readable. Throws resource.
  virtual void wake_for(int descriptor) = 0;
  // Something has come for threads that wait(), in another way than over these connections.
  virtual void note_arrival() noexcept = 0;
};

class IntroducedNetwork : public Network {
 public:
  // What one peer must know to reach this rank, and must prove in each message: bytes.
  virtual std::string introduction(int peer) = 0;
  // Begins to connect with all peers that `control` reaches: `introductions` by rank, of each what
  // it said to this rank; of one that hung up, nothing. Throws resource.
  virtual void meet(std::unique_ptr<ControlNetwork> control,
                    const std::vector<std::string>& introductions) = 0;
  // Goes on with it. Those that have not been heard over this network yet.
  virtual std::vector<int> missing() = 0;
};

}  // namespace unisono::transport
