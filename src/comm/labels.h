// Labels that a program gives to its calls, for observers outside the process.
#pragma once

#include <string>
#include <string_view>

namespace unisono::comm {

class Group;
class World;

// Sets the label of all calls of this rank, as Communicator::label() does.
void set_label(World& world, std::string_view text);
std::string label_of(World& world);
// Returns a rank's label; empty if the rank has none or is on another host.
std::string label_of(World& world, int rank);
// Sets the label of the calls on this group only.
void set_group_label(Group& group, std::string_view text);

}  // namespace unisono::comm
