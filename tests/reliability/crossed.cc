// Ranks that call their groups in conflicting orders: each is in a group with the next rank, and
// enters that group before its group with the previous rank. Prints the error of each rank.
//   crossed COLLECTIVE   (barrier or all_reduce)
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"

int main(int argc, char** argv) {
  const std::string_view collective = argc > 1 ? argv[1] : "barrier";
  try {
    auto world = unisono::Communicator::connect();
    const int next = (world.rank() + 1) % world.size();
    const int before = (world.rank() + world.size() - 1) % world.size();
    const auto pair = [&](int a, int b) {
      const std::vector<int> members = {a < b ? a : b, a < b ? b : a};
      return world.subgroup(members, static_cast<std::uint64_t>(members[0] * 100 + members[1]));
    };
    unisono::Communicator mine = pair(world.rank(), next);
    unisono::Communicator others = pair(before, world.rank());
    for (unisono::Communicator* group : {&mine, &others}) {
      if (collective == "barrier") {
        group->barrier();
      } else {
        std::vector<float> data(100'000, 1.0F);
        group->all_reduce(data, unisono::sum);
      }
    }
    std::puts("no error");
  } catch (const unisono::Error& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
