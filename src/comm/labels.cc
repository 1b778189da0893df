#include "comm/labels.h"

#include "bootstrap/local_host.h"
#include "comm/group.h"
#include "diagnose/rank_label.h"

namespace unisono::comm {

void set_label(World& world, std::string_view text) {
  world.check_usable();
  write_label(world.host().memory().label(world.host().rank()), text);
  if (trace::Recorder* const recorder = world.recorder(); recorder != nullptr) {
    recorder->label(text);
  }
}

std::string label_of(World& world) {
  world.check_process();
  return read_label(world.host().memory().label(world.host().rank()));
}

std::string label_of(World& world, int rank) {
  return world.hosts().is_here(rank)
             ? read_label(world.host().memory().label(world.hosts().local(rank)))
             : std::string();
}

void set_group_label(Group& group, std::string_view text) {
  World& world = group.world();
  world.check_usable();
  write_label(group.records().mine().label, text);
  if (trace::Recorder* const recorder = world.recorder(); recorder != nullptr) {
    recorder->label_group(group.id(), group.members(), text);
  }
}

}  // namespace unisono::comm
