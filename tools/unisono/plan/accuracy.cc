// `--accuracy` of `unisono plan` and `unisono sim`: how moves between nodes are encoded.
#include <fmt/format.h>

#include <string>

#include "base/collectives.h"
#include "cli/failure.h"
#include "plan/plan.h"

namespace unisono::cli {

MoveCode code_of(const Arguments& arguments, Collective collective) {
  if (!arguments.has("accuracy")) {
    return MoveCode::none;
  }
  const std::string help = fmt::format("unisono help {}", arguments.command().name);
  if (!arguments.has("on")) {
    throw UsageError("--accuracy goes with --on", "a topology says what is between hosts", help);
  }
  if (is_v_form(collective) || !moves_data(collective)) {
    throw UsageError(fmt::format("{} takes no accuracy", to_string(collective)), {}, help);
  }
  const MoveCode code = code_for(arguments.real("accuracy"));
  if (code == MoveCode::none) {
    throw UsageError(fmt::format("--accuracy {} is less than any code between hosts can keep",
                                 arguments.text("accuracy")),
                     fmt::format("at least {:g}, or {:g} for the shortest", kLeastAccuracy,
                                 sum_error(MoveCode::i8).normal),
                     help);
  }
  return code;
}

}  // namespace unisono::cli
