#include <cstddef>
#include <vector>

#include "executors/moves.h"
#include "msccl/export.h"
#include "msccl/order.h"

namespace unisono::msccl {
namespace {

using executors::Held;

class Importer {
 public:
  explicit Importer(const MscclProgram& program)
      : program_(program),
        table_(program),
        moves_(shape_of(program), program.in_place && !program.out_of_place),
        sent_(table_.size()) {}

  Schedule run() {
    const Order order = order_of(program_, table_, 0);
    for (const std::size_t index : order.steps) {
      step(index, order.sent_by[index]);
    }
    return std::move(moves_).finish();
  }

 private:
  void step(std::size_t index, std::size_t sender) {
    const Step& step = table_.step(index);
    const int rank = table_.id(index).gpu;
    for (int i = 0; i < step.chunks; ++i) {
      const std::uint64_t source = moves_.place(rank, {step.source.buffer, step.source.offset + i});
      const std::uint64_t target = moves_.place(rank, {step.target.buffer, step.target.offset + i});
      const Held came =
          traits_of(step.type).receives ? sent_[sender][static_cast<std::size_t>(i)] : Held{};
      switch (step.type) {
        case StepType::nop:
          break;
        case StepType::send:
          send(index, moves_.settled(rank, source));
          break;
        case StepType::receive:
          moves_.keep(rank, target, came);
          break;
        case StepType::receive_copy_send:
          moves_.put(rank, target, came);
          send(index, moves_.held(target));
          break;
        case StepType::receive_reduce_copy:
          moves_.add(rank, source, target, came);
          break;
        case StepType::receive_reduce_copy_send:
          moves_.add(rank, source, target, came);
          send(index, moves_.held(target));
          break;
        case StepType::receive_reduce_send:
          send(index, moves_.add_aside(rank, source, came));
          break;
        case StepType::copy:
          moves_.copy(rank, source, target);
          break;
        case StepType::reduce:
          moves_.sum(rank, {target, source}, target);
          break;
      }
    }
  }

  void send(std::size_t index, const Held& held) { sent_[index].push_back(moves_.leaving(held)); }

  const MscclProgram& program_;
  StepTable table_;
  executors::MoveFinder moves_;
  std::vector<std::vector<Held>> sent_;
};

}  // namespace

Schedule to_schedule(const MscclProgram& program) {
  return Importer(program).run();
}

}  // namespace unisono::msccl
