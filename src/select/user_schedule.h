// A user schedule: read from a file such as "my_ring.json", and used instead of an algorithm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace unisono::comm {

struct UserSchedule {
  Schedule schedule;
  std::string name;           // file name without its folder
  std::uint64_t content = 0;  // file hash: different files on two ranks raise mismatch
};

// Returns true if the algorithm's name is a file name: it ends in ".json".
bool is_user_schedule(std::string_view algorithm);

// Reads and verifies the file. Throws Error(usage): "my_ring.json:3: ...", or the first finding of
// verify().
UserSchedule load_user_schedule(const std::string& path);

// Returns why the schedule cannot serve the call; empty if it can.
std::string refusal(const UserSchedule& user, Collective collective, int ranks, int root);

}  // namespace unisono::comm
