// A user schedule: read from a file, and used instead of an algorithm: "my_ring.json".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace unisono::comm {

struct UserSchedule {
  Schedule schedule;
  std::string name;           // of the file, without its folder
  std::uint64_t content = 0;  // hash of the file: ranks with different files get mismatch
};

// Returns true if the name of an algorithm is a file: it ends in ".json".
bool is_user_schedule(std::string_view algorithm);

// Reads and verifies. Throws Error(usage): "my_ring.json:3: ...", or the first finding of verify().
UserSchedule load_user_schedule(const std::string& path);

// Returns why it cannot serve the call; empty if it can.
std::string refusal(const UserSchedule& user, Collective collective, int ranks, int root);

}  // namespace unisono::comm
