// Rendezvous of a process group's ranks through c10d's store.
//
// Each rank writes its address and the worlds to which it belongs. All ranks read all entries and
// therefore reach the same decision. If the group's ranks share a world, the group becomes a part
// of that world, which costs a memory mapping but no threads or descriptors. Otherwise the ranks
// connect a new world: through shared memory on one host, or over TCP between hosts, with addresses
// exchanged through the store. Only members take part.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>
#include "unisono/unisono.hpp"

namespace unisono_torch {

// Connected ranks, with the group for which they connected.
struct World {
  std::string id;
  unisono::Communicator all;
  std::vector<int> members;  // their ranks in the job, if PyTorch provided them
  // Set if an operation has reported the world's end.
  std::shared_ptr<std::atomic<bool>> has_failed = std::make_shared<std::atomic<bool>>(false);
};

struct Place {
  std::shared_ptr<World> world;
  // The group's communicator; empty for the world's first group, which uses world->all.
  std::unique_ptr<unisono::Communicator> part;
  // REQUIRES: a world.
  unisono::Communicator& group() const { return part == nullptr ? world->all : *part; }
};

struct Meeting {
  int rank = 0;
  int size = 0;
  std::chrono::milliseconds timeout{0};
  // The group's ranks in the job; empty: all ranks, or unknown.
  std::vector<int> members = {};
  // Connect a new world even if the ranks share one, because its other ranks may die at any time.
  bool apart = false;
  // Connect no rank yet; reconfigure() names the members.
  bool later = false;
};
Place meet(const c10::intrusive_ptr<c10d::Store>& store, const Meeting& meeting);

// Handle that a rank gives to future members (torch.distributed's reconfigure). It contains
// everything needed to meet; on one host, no store is needed.
struct Handle {
  int rank = 0;                // rank in its latest group
  std::int64_t made_with = 0;  // number of that group; 0: none
  std::string secret;
  std::string host;
  std::string name;        // of the machine, for messages
  bool has_token = false;  // the rank has its own token
  std::string store;       // HOST:PORT of its TCPStore; empty: another kind of store
};
Handle new_handle(c10d::Store& store);
std::string write_handle(const Handle& handle);
// Throws ValueError if the text is not a unisono handle.
Handle read_handle(const std::string& text);
// Creates group `number` from the ranks of `handles`, in this order. `rank`: this rank.
Place meet_by_handles(const c10::intrusive_ptr<c10d::Store>& store,
                      const std::vector<std::string>& handles, int rank, std::int64_t number,
                      std::chrono::milliseconds timeout);

// Prevents new groups from becoming parts of the world, whose first group has been destroyed.
void close_world(const World& world);

// Returns a text that is equal for processes that can share memory.
std::string host_identity();

}  // namespace unisono_torch
