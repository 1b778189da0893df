// A network whose ranks introduce themselves to each other over the authenticated TCP connections.
// These connections are kept: they detect dead peers and carry aborts.
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
  // Makes wait() also return when this descriptor is readable. Throws resource.
  virtual void wake_for(int descriptor) = 0;
  // Reports data for waiting threads that arrived by another way than these connections.
  virtual void note_arrival() noexcept = 0;
};

class IntroducedNetwork : public Network {
 public:
  // Returns what one peer needs to reach this rank and must prove in each message, as bytes.
  virtual std::string introduction(int peer) = 0;
  // Begins to connect with all peers that `control` reaches. `introductions`: by rank, what each
  // peer sent to this rank; empty for a peer that closed. Throws resource.
  virtual void meet(std::unique_ptr<ControlNetwork> control,
                    const std::vector<std::string>& introductions) = 0;
  // Continues connecting. Returns the peers from which nothing has come over this network yet.
  virtual std::vector<int> missing() = 0;
};

}  // namespace unisono::transport
