#include "select/programs.h"

#include <utility>

#include "schedule/verify.h"

namespace unisono::comm {
namespace {

Compiled compile(Schedule schedule, Collective collective, int rank, bool multicast) {
  Compiled compiled{.schedule = std::move(schedule)};
  const bool pairs = cut_of(collective) == VectorCut::pairs;
  engine::LowerOptions options{.multicast = multicast,
                               .contiguous = !is_v_form(collective) && !pairs};
  compiled.out_of_place = engine::lower(compiled.schedule, rank, options);
  // An all_to_all in place would put blocks of the output over other blocks of the input.
  if (!pairs && verify_in_place(compiled.schedule).empty()) {
    options.in_place = true;
    compiled.in_place =
        std::make_unique<engine::Program>(engine::lower(compiled.schedule, rank, options));
  }
  return compiled;
}

}  // namespace

std::shared_ptr<const Compiled> Programs::find(const Algorithm& algorithm, const Shape& shape,
                                               std::string_view name, Collective collective,
                                               int rank, bool multicast) {
  const std::lock_guard lock(changing_);
  auto& compiled =
      compiled_[{collective, shape.ranks, shape.root, rank, std::string(name), multicast}];
  if (compiled == nullptr) {
    compiled = std::make_shared<const Compiled>(
        compile(build_schedule(algorithm, shape), collective, rank, multicast));
  }
  return compiled;
}

std::shared_ptr<const Compiled> Programs::find(const Schedule& schedule, std::string_view name,
                                               int rank, bool multicast) {
  const std::lock_guard lock(changing_);
  auto& compiled = compiled_[{schedule.collective, schedule.ranks, schedule.root, rank,
                              std::string(name), multicast}];
  if (compiled == nullptr) {
    compiled =
        std::make_shared<const Compiled>(compile(schedule, schedule.collective, rank, multicast));
  }
  return compiled;
}

}  // namespace unisono::comm
