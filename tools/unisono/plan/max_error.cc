// `--max-error` of `unisono plan` and `unisono sim`: how moves between nodes are encoded.
#include <fmt/format.h>

#include <string>

#include "base/collectives.h"
#include "cli/failure.h"
#include "plan/plan.h"

namespace unisono::cli {

MoveCode code_of(const Arguments& arguments, Collective collective) {
  if (!arguments.has("max-error")) {
    return MoveCode::none;
  }
  const std::string help = fmt::format("unisono help {}", arguments.command().name);
  if (!arguments.has("on")) {
    throw UsageError("--max-error goes with --on", "a topology says what is between hosts", help);
  }
  if (is_v_form(collective) || !moves_data(collective)) {
    throw UsageError(fmt::format("{} takes no max_error", to_string(collective)), {}, help);
  }
  const MoveCode code = code_for(arguments.real("max-error"));
  if (code == MoveCode::none) {
    throw UsageError(fmt::format("--max-error {} is below the error of every code between hosts",
                                 arguments.text("max-error")),
                     fmt::format("give at least {:g}, or at least {:g} for the shortest code",
                                 kLeastMaxError, sum_error(MoveCode::i8).normal),
                     help);
  }
  return code;
}

}  // namespace unisono::cli
