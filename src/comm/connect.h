// How a rank comes into a world: it meets the others, on this host and over the network.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "comm/world.h"

namespace unisono::comm {

// Blocks until all ranks are there. Errors: as Communicator::connect().
std::shared_ptr<World> connect(const ConnectOptions& options);
// A world of more ranks: those of this one, and new ones that connect() with the first job's name.
std::shared_ptr<World> grow(const World& world, int size, const std::string& address);

// Asked while ranks meet, in place of that of the options, whether to give up.
using Interrupted = std::function<bool()>;
std::shared_ptr<World> meet_here(Setup setup, const Deadline& deadline,
                                 Interrupted interrupted = nullptr);
std::shared_ptr<World> meet_across(Setup setup, const Deadline& deadline, NetMeeting meeting,
                                   Interrupted interrupted = nullptr);

}  // namespace unisono::comm
