// Joins a world: connects this rank to the other ranks, on this host and over the network.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "comm/world.h"

namespace unisono::comm {

// Blocks until all ranks have joined. Errors: those of Communicator::connect().
std::shared_ptr<World> connect(const ConnectOptions& options);
// Makes a larger world from this world's ranks and new ranks. The new ranks call connect() with the
// name of the first job.
std::shared_ptr<World> grow(const World& world, int size, const std::string& address);

// Returns true if connecting must stop; replaces ConnectOptions::interrupted.
using Interrupted = std::function<bool()>;
std::shared_ptr<World> meet_here(Setup setup, const Deadline& deadline,
                                 Interrupted interrupted = nullptr);
std::shared_ptr<World> meet_across(Setup setup, const Deadline& deadline, NetMeeting meeting,
                                   Interrupted interrupted = nullptr);

}  // namespace unisono::comm
