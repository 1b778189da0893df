// What a program says it is at, for those who look from outside.
#pragma once

#include <string>
#include <string_view>

namespace unisono::comm {

class Group;
class World;

// As Communicator::label(): of all calls of this rank.
void set_label(World& world, std::string_view text);
std::string label_of(World& world);
// The label of any rank; empty: it has none, or is on another host.
std::string label_of(World& world, int rank);
// Concerns the calls on this group alone.
void set_group_label(Group& group, std::string_view text);

}  // namespace unisono::comm
