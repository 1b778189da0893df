// A network whose ranks exchange their introductions over the authenticated TCP connections. These
// connections stay open: they detect dead peers and carry aborts.
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
  // Notifies waiting threads of data that arrived over the introduced network.
  virtual void note_arrival() noexcept = 0;
};

class IntroducedNetwork : public Network {
 public:
  // Returns the bytes that one peer needs: this rank's address, and a secret that the peer must
  // repeat in each message.
  virtual std::string introduction(int peer) = 0;
  // Starts connecting to all peers that `control` reaches. `introductions` has, per rank, the bytes
  // that this peer sent to this rank; empty if the peer closed its connection. Throws resource.
  virtual void meet(std::unique_ptr<ControlNetwork> control,
                    const std::vector<std::string>& introductions) = 0;
  // Continues connecting. Returns the peers that have sent nothing over this network yet.
  virtual std::vector<int> missing() = 0;
};

}  // namespace unisono::transport
