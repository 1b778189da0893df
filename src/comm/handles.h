// Makes the public handles; only the library can call their constructors.
#pragma once

#include <memory>
#include <utility>

#include "unisono/communicator.hpp"

namespace unisono::detail {

struct Handles {
  // nullptr: an empty communicator.
  static Communicator communicator(std::shared_ptr<Core> core) {
    return Communicator(std::move(core));
  }
  static Request request(std::shared_ptr<RequestState> state) { return Request(std::move(state)); }
  static Region region(std::shared_ptr<RegionState> state) { return Region(std::move(state)); }
};

}  // namespace unisono::detail
