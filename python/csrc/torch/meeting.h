// The rendezvous of a process group's ranks, which uses only c10d's store.
//
// Each rank writes its address and the worlds to which it belongs. All ranks read all entries, and
// so decide alike. A group whose ranks share a world becomes a part of it: this costs a mapping of
// memory, but no threads or descriptors. The ranks of any other group connect a new world: through
// shared memory on one host, or over TCP between hosts, with addresses that they exchange through
// the store. Only the members take part.
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

// Ranks that have connected, with the group that they did it for.
struct World {
  std::string id;
  unisono::Communicator all;
  std::vector<int> members;  // their ranks in the job, if PyTorch said them
  // An operation has told what ended it.
  std::shared_ptr<std::atomic<bool>> has_failed = std::make_shared<std::atomic<bool>>(false);
};

struct Place {
  std::shared_ptr<World> world;
  // The group; of the world's first group it is world->all, and this is empty.
  std::unique_ptr<unisono::Communicator> part;
  // REQUIRES: a world.
  unisono::Communicator& group() const { return part == nullptr ? world->all : *part; }
};

struct Meeting {
  int rank = 0;
  int size = 0;
  std::chrono::milliseconds timeout{0};
  // The ranks of the job that make the group; empty: all of them, or nobody said.
  std::vector<int> members = {};
  // Connect even if the ranks share a world: one whose other ranks may die at any time.
  bool apart = false;
  // Connects no rank yet: reconfigure() names the members.
  bool later = false;
};
Place meet(const c10::intrusive_ptr<c10d::Store>& store, const Meeting& meeting);

// The handle that a rank gives to its future members (torch.distributed's reconfigure): all that
// they need to meet, without a store if they are on one host.
struct Handle {
  int rank = 0;                // in its latest group
  std::int64_t made_with = 0;  // the number of that group; 0: there was none
  std::string secret;
  std::string host;
  std::string name;        // of the machine, for messages
  bool has_token = false;  // of its own
  std::string store;       // HOST:PORT of its TCPStore; empty: it has another kind
};
Handle new_handle(c10d::Store& store);
std::string write_handle(const Handle& handle);
// Throws ValueError for what is no handle of unisono.
Handle read_handle(const std::string& text);
// The ranks of `handles`, in this order, make group `number`. Rank `rank` is this one.
Place meet_by_handles(const c10::intrusive_ptr<c10d::Store>& store,
                      const std::vector<std::string>& handles, int rank, std::int64_t number,
                      std::chrono::milliseconds timeout);

// No new group may become a part of it: its first group has been destroyed.
void close_world(const World& world);

// Returns a text that is equal on two processes if they can share memory.
std::string host_identity();

}  // namespace unisono_torch
