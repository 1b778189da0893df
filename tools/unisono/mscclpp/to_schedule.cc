#include <algorithm>
#include <cstddef>
#include <vector>

#include "executors/moves.h"
#include "mscclpp/export.h"
#include "mscclpp/order.h"

namespace unisono::mscclpp {
namespace {

class PlanImporter {
 public:
  explicit PlanImporter(const ExecutionPlan& plan)
      : plan_(plan), table_(plan), moves_(shape_of(plan), plan.in_place) {}

  Schedule run() {
    const PlanOrder order = order_of(table_, CounterTable(plan_, table_));
    for (const std::size_t index : order.operations) {
      const PlanOperation& operation = table_.operation(index);
      const int gpu = table_.id(index).gpu;
      if (traits_of(operation.type).effect == Effect::moves) {
        move(operation);
      } else if (traits_of(operation.type).effect == Effect::adds) {
        add(gpu, operation);
      }
    }
    return std::move(moves_).finish();
  }

 private:
  std::uint64_t place(const PlanPlace& place, int chunk) const {
    return moves_.place(place.gpu, chunk_of(place, chunk));
  }

  // Moves data from another GPU, or within this one.
  void carry(const PlanPlace& source, const PlanPlace& target, int chunk) {
    const std::uint64_t from = place(source, chunk);
    const std::uint64_t to = place(target, chunk);
    if (source.gpu == target.gpu) {
      moves_.copy(target.gpu, from, to);
    } else {
      moves_.keep(target.gpu, to, moves_.leaving(moves_.settled(source.gpu, from)));
    }
  }

  void move(const PlanOperation& operation) {
    for (std::size_t i = 0; i < operation.targets.size(); ++i) {
      for (int chunk = 0; chunk < operation.targets[i].chunks; ++chunk) {
        carry(operation.sources[i], operation.targets[i], chunk);
      }
    }
  }

  // The first source and the first target are of the GPU itself.
  void add(int gpu, const PlanOperation& operation) {
    const PlanPlace& target = operation.targets.front();
    for (int chunk = 0; chunk < target.chunks; ++chunk) {
      const std::uint64_t sum = place(target, chunk);
      std::vector<std::uint64_t> own;
      std::vector<const PlanPlace*> others;
      for (const PlanPlace& source : operation.sources) {
        if (source.gpu == gpu) {
          own.push_back(place(source, chunk));
        } else {
          others.push_back(&source);
        }
      }
      moves_.sum(gpu, own, sum);
      for (const PlanPlace* other : others) {
        moves_.add(gpu, sum, sum, moves_.leaving(moves_.settled(other->gpu, place(*other, chunk))));
      }
      for (std::size_t i = 1; i < operation.targets.size(); ++i) {
        carry(target, operation.targets[i], chunk);
      }
    }
  }

  const ExecutionPlan& plan_;
  OperationTable table_;
  executors::MoveFinder moves_;
};

}  // namespace

Schedule to_schedule(const ExecutionPlan& plan) {
  return PlanImporter(plan).run();
}

}  // namespace unisono::mscclpp
