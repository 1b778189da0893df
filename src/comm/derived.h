// Communicators that are made from others: split groups, subgroups, and shrunk or grown worlds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/core.h"

namespace unisono::detail {

// Makes the world's first group.
std::shared_ptr<Core> core_of_world(std::shared_ptr<comm::World> world);

// As in Communicator.
std::shared_ptr<Core> split(Core& core, int color, int key);
std::shared_ptr<Core> subgroup(Core& core, std::span<const int> members, std::uint64_t id);
std::shared_ptr<Core> shrink(Core& core, const ShrinkOptions& options);
std::shared_ptr<Core> grow(Core& core, int size, const std::string& address);

}  // namespace unisono::detail
