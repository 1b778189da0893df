// Places experts and moves their weights between ranks.
#include <pybind11/stl.h>

#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "experts.h"
#include "unisono/parallel/expert_balance.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono_python {
namespace {

using py::arg;
using Object = const py::object&;
using Placement = std::vector<std::vector<int>>;

// Returns shape, dtype and bytes per element of an array.
std::tuple<std::vector<std::size_t>, std::string, std::size_t> array_of(Object object) {
  Layout layout;
  const Memory memory = Memory::strided(object, Memory::Use::read, "the array", layout);
  return {layout.shape, memory.elements().name, memory.elements().bytes()};
}

using Moves = std::vector<std::tuple<int, int, int>>;

std::vector<unisono::ExpertMove> moves_of(const Moves& moves) {
  std::vector<unisono::ExpertMove> known;
  for (const auto& [expert, from, to] : moves) {
    known.push_back({.expert = expert, .from = from, .to = to});
  }
  return known;
}

// Memory of arrays, by expert. Stores the error for an array without memory until the library
// requests that memory, so that the mistake is reported to all ranks.
class ArraysOfExperts {
 public:
  void add(Object arrays, int expert, Memory::Use use) {
    try {
      const py::object array = arrays[py::int_(expert)];
      memory_.insert_or_assign(expert, Memory::bytes_of(array, use, "an expert"));
    } catch (const std::exception& error) {
      wrong_.insert_or_assign(expert, error.what());
    }
  }
  std::span<std::byte> at(int expert) const {
    if (const auto wrong = wrong_.find(expert); wrong != wrong_.end()) {
      throw std::runtime_error(wrong->second);
    }
    const Memory& memory = memory_.at(expert);
    return {memory.data(), memory.bytes()};
  }

 private:
  std::map<int, Memory> memory_;
  std::map<int, std::string> wrong_;
};

void move_experts(Comm& comm, const Moves& moves, std::size_t expert_bytes, Object held,
                  Object placed) {
  ArraysOfExperts from;
  ArraysOfExperts to;
  const int rank = comm.alone([](unisono::Communicator& ranks) { return ranks.rank(); });
  for (const auto& [expert, sender, receiver] : moves) {
    if (sender == rank) {
      from.add(held, expert, Memory::Use::read);
    }
    if (receiver == rank) {
      to.add(placed, expert, Memory::Use::write);
    }
  }
  const std::vector<unisono::ExpertMove> known = moves_of(moves);
  comm.alone([&](unisono::Communicator& ranks) {
    unisono::move_experts(
        ranks, known, expert_bytes, [&](int expert) { return from.at(expert); },
        [&](int expert) { return to.at(expert); });
  });
}

}  // namespace

void define_expert_places(py::module_& module) {
  module.def(
      "balance_experts",
      [](const std::vector<double>& loads, int ranks, int physical_experts, int groups, int hosts) {
        auto places = unisono::balance(loads, {.ranks = ranks,
                                               .physical_experts = physical_experts,
                                               .groups = groups,
                                               .hosts = hosts});
        return std::make_pair(std::move(places.experts_of_rank), std::move(places.load_of_rank));
      },
      arg("loads"), arg("ranks"), arg("physical_experts"), arg("groups"), arg("hosts"),
      "See unisono.expert.balance().");
  module.def(
      "find_expert_moves",
      [](const Placement& before, const Placement& after) {
        std::vector<std::tuple<int, int, int>> moves;
        for (const unisono::ExpertMove& move : unisono::find_expert_moves(before, after)) {
          moves.emplace_back(move.expert, move.from, move.to);
        }
        return moves;
      },
      arg("before"), arg("after"), "See unisono.expert.find_expert_moves().");
  module.def("move_experts", &move_experts, arg("comm"), arg("moves"), arg("expert_bytes"),
             arg("held"), arg("placed"), "See unisono.expert.move_experts().");
  module.def(
      "bytes_of_moves",
      [](const Moves& moves, int ranks, std::size_t expert_bytes) {
        return unisono::bytes_of_moves(moves_of(moves), ranks, expert_bytes);
      },
      arg("moves"), arg("ranks"), arg("expert_bytes"), "See unisono.expert.bytes_of_moves().");
  module.def(
      "experts_after_shrink",
      [](Comm& survivors, int experts, const Placement& experts_of_rank, int ranks_before) {
        return survivors.alone([&](unisono::Communicator& left) {
          return unisono::after_shrink({.experts = experts, .experts_of_rank = experts_of_rank},
                                       left, ranks_before)
              .experts_of_rank;
        });
      },
      arg("survivors"), arg("experts"), arg("experts_of_rank"), arg("ranks_before"),
      "Returns each survivor's experts; see unisono.expert.ExpertExchange.after_shrink().");
  module.def(
      "array_of", &array_of, arg("array"),
      "Returns (shape, dtype, bytes per element) of memory that has __dlpack__ or a buffer.");
}

}  // namespace unisono_python
