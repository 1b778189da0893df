// `unisono show`: draws a schedule in the terminal.
#include "show/show.h"

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "schedule/json.h"

namespace unisono::cli {
namespace {

// Reads the schedule; an unknown word that is a topic of `unisono learn` opens this topic.
Schedule shown_schedule(const Arguments& arguments) {
  try {
    return asked_schedule(arguments, "show", asked_counts(arguments));
  } catch (const UsageError& error) {
    const auto& words = arguments.operands();
    if (!words.empty() && error.detail().empty() && is_topic(words.front())) {
      throw UsageError(error.what(), "it is a topic of the page", "unisono learn " + words.front());
    }
    throw;
  }
}

int run_show(const Arguments& arguments, const Console& console) {
  const Schedule schedule = shown_schedule(arguments);
  if (console.json() || arguments.text("format") == "json") {
    fmt::print("{}", to_json(schedule));
    return kDone;
  }
  ShowOptions options;
  options.width = arguments.has("width") ? static_cast<int>(arguments.number("width", 20, 100'000))
                                         : console.width();
  if (arguments.has("step")) {
    if (schedule.steps == 0) {
      throw UsageError("--step: this schedule has no steps");
    }
    options.step = static_cast<int>(arguments.number("step", 1, schedule.steps)) - 1;
  }
  std::string text = draw_strips(schedule, options, console);
  if (text.empty()) {
    text = draw_summary(schedule, options, console);
  }
  std::fputs(text.c_str(), stdout);
  // The hint is for a reader, not for a script.
  if (console.out_is_terminal() && !console.quiet()) {
    fmt::print("{}\n", console.paint(Paint::dim, fmt::format("unisono learn {} plays it",
                                                             to_string(schedule.collective))));
  }
  return kDone;
}

constexpr Option kShowOptions[] = {
    {.name = "ranks", .letter = 'n', .value = "N", .help = "The number of ranks.", .fallback = "4"},
    {.name = "root",
     .value = "R",
     .help = "The root of broadcast, scatter, gather and reduce.",
     .fallback = "0"},
    {.name = "counts",
     .value = "FILE",
     .help = "For all_to_all_v: how much each rank sends to every other rank, one row per sender. "
             "Blocks are drawn to scale."},
    {.name = "step", .value = "K", .help = "Show only this step, counted from 1."},
    {.name = "width",
     .value = "COLUMNS",
     .help = "The width limit of strips; a wider schedule is shown as counts. Without it: the "
             "terminal's width."},
    {.name = "format",
     .value = "FORM",
     .help = "text, or json (unisono.schedule/1, which show and verify can read).",
     .fallback = "text",
     .choices = "text|json"}};

}  // namespace

const Command kShowCommand = {
    .name = "show",
    .summary = "show a schedule step by step: whose data is where",
    .operands = "COLLECTIVE/ALGORITHM | FILE.json",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono show all_reduce/ring -n 4 --step 3", "Show one step of the ring."},
                  {"unisono show broadcast/binomial -n 8 --root 3",
                   "Show every step, from root 3."},
                  {"unisono show all_reduce/ring -n 4 --json > ring.json",
                   "Write the schedule to a file, to change and verify it."}}},
    .description =
        "A row is a chunk, and a column is a rank. The strip in a cell shows whose contributions "
        "the rank has in that chunk before the step: [0·2·] means ranks 0 and 2. >1 means that the "
        "chunk is sent to rank 1 in this step, and ! that a rank is counted twice. For all_to_all "
        "a row is a destination: →2 are the blocks for rank 2, and the strip shows whose blocks "
        "for rank 2 the rank holds, as on the page of unisono view. With --counts the width of a "
        "block shows its length, and empty blocks are not drawn.\n\n"
        "If the strips are wider than the terminal, each step is one line of counts; --step then "
        "lists the moves of that step.",
    .options = kShowOptions,
    .run = run_show};

}  // namespace unisono::cli
