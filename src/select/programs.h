// The programs of a rank. A program is a schedule lowered for one rank in a group of a given size.
// It is made once, and shared by all groups in which the rank has the same number.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "algorithms/catalog.h"
#include "engine/program.h"
#include "schedule/schedule.h"

namespace unisono::comm {

struct Compiled {
  Schedule schedule;
  engine::Program out_of_place = {};
  // Absent if the algorithm cannot run in place; the input is then staged.
  std::unique_ptr<engine::Program> in_place = {};
};

class Programs {
 public:
  // Returns the program; builds and lowers it at the first call. `name`: the algorithm's name with
  // its parameters. Threads: any.
  std::shared_ptr<const Compiled> find(const Algorithm& algorithm, const Shape& shape,
                                       std::string_view name, Collective collective, int rank,
                                       bool multicast);
  // Returns the program of an existing schedule. `name`: unique among schedules.
  std::shared_ptr<const Compiled> find(const Schedule& schedule, std::string_view name, int rank,
                                       bool multicast);

 private:
  // collective, ranks, root, rank, name, whether lanes multicast
  using Key = std::tuple<Collective, int, int, int, std::string, bool>;
  std::mutex changing_;
  std::map<Key, std::shared_ptr<const Compiled>> compiled_;
};

}  // namespace unisono::comm
