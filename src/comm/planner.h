// From a call to a bound program: checks the arguments, chooses the algorithm, builds, lowers and
// binds; keeps what it made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {

// All that does not change between two calls with the same arguments on other buffers.
struct Prepared {
  engine::BoundProgram program = {};
  engine::Extent extent = {};
  engine::Reducer reducer = {};
  std::uint64_t signature = 0;  // without the operation's number
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t count = 0;
  std::string algorithm = {};
  // Work around the program: the input is first copied (in place, by an algorithm that cannot) or
  // multiplied.
  bool stage_input = false;
  kernels::ScaleFunction multiply = nullptr;
  double factor = 1.0;
  kernels::ScaleFunction divide = nullptr;
  std::size_t staged_bytes = 0;
};

// What makes two calls the same to the planner.
struct PlanKey {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  int root = 0;
  std::size_t count = 0;
  double factor = 1.0;
  void (*user)(void*, const void*, std::size_t, void*) = nullptr;
  void* user_context = nullptr;
  std::string_view algorithm = {};
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

class Planner {
 public:
  // `forced` as in ConnectOptions::algorithm. Throws config if it is malformed.
  Planner(int rank, int ranks, std::uint64_t group_id, std::string_view forced);

  // The plan of a call whose buffers are checked too. Throws usage. The reference is good until the
  // next find(); an operation that lives longer copies the pointer.
  const std::shared_ptr<const Prepared>& find(const Call& call);

 private:
  struct Compiled {
    Schedule schedule;
    engine::Program out_of_place = {};
    std::unique_ptr<engine::Program> in_place =
        {};  // absent: the algorithm cannot, the input is staged
  };
  const Algorithm& choose(const Call& call) const;
  Compiled& compile(const Algorithm& algorithm, Collective collective, int root);
  Prepared prepare(const Call& call, bool in_place);
  void check_shape(const Call& call) const;
  void check_buffers(const Call& call, const Prepared& prepared, bool in_place) const;
  bool is_in_place(const Call& call) const;
  [[noreturn]] void refuse(const Call& call, const std::string& what,
                           const std::string& hint) const;

  int rank_;
  int ranks_;
  std::uint64_t group_id_;
  std::map<Collective, std::string> forced_;
  std::map<std::pair<const Algorithm*, std::pair<Collective, int>>, Compiled> compiled_;
  struct Entry {
    PlanKey key;
    std::string algorithm;                     // owns what key.algorithm views
    std::shared_ptr<const Prepared> prepared;  // shared with the operations that run it
  };
  std::vector<std::unique_ptr<Entry>> entries_;  // what is used often is in front
  std::shared_ptr<const Prepared> latest_v_;
};

}  // namespace unisono::comm
