#include "trace/replay.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/failure.h"
#include "cli/wrap.h"
#include "record/files.h"
#include "record/replay.h"

namespace unisono::cli {
namespace {

void print_replay(const std::string& path, const Replay& replay, const Console& console) {
  if (replay.is_nothing) {
    fmt::print("{}  {}\n", console.paint(Paint::strong, path),
               console.paint(Paint::bad, "nothing could be played again"));
  } else {
    fmt::print("{}  {} and {} played again\n", console.paint(Paint::strong, path),
               times(replay.operations, "operation"), times(replay.passes, "event"));
    if (replay.transfers != 0) {
      fmt::print("   and {} in their order\n", times(replay.transfers, "transfer"));
    }
  }
  for (const auto& [why, count] : replay.left_out) {
    fmt::print("   not played: {} {}\n", times(static_cast<std::size_t>(count), "operation"), why);
  }
  if (replay.transfers_left_out != 0) {
    fmt::print("   not played: {} of ranks that dropped their first events\n",
               times(static_cast<std::size_t>(replay.transfers_left_out), "transfer"));
  }
  if (replay.is_nothing) {
    if (replay.left_out.empty() && replay.transfers_left_out == 0) {
      fmt::print("   it has no operations\n");
    }
    return;
  }
  if (!replay.wrong.empty()) {
    fmt::print("{}  {}\n", console.paint(Paint::bad, "not as recorded:"), replay.wrong);
    return;
  }
  fmt::print("order    as recorded, on each rank");
  if (replay.later != 0) {
    fmt::print("; {} after one of another rank that has a later time, by up to {:.1f} us",
               times(replay.later, "event"), replay.later_us);
  }
  fmt::print("\nresults  {:016x}\n", replay.results);
  if (replay.unrecorded != 0) {
    fmt::print("   and {} that a rank that died did not record\n",
               times(replay.unrecorded, "message"));
  }
  for (const std::string& wait : replay.waits) {
    fmt::print("at the end  {}\n", wait);
  }
}

Replay replay_whole(const nlohmann::ordered_json& trace) {
  const auto refuse = [] {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  };
  if (!trace.contains("events")) {
    throw UsageError("the recording does not say what its ranks did at each step",
                     "an imported recording has only calls: try trace skew, trace why and view",
                     "unisono help trace");
  }
  try {
    return replay(trace);
  } catch (const nlohmann::json::exception&) {
    refuse();
  } catch (const std::out_of_range&) {
    refuse();
  }
  return {};
}

}  // namespace

int run_replay(const std::string& path, const Console& console) {
  const Replay replayed = replay_whole(read_trace(path));
  if (console.json()) {
    const nlohmann::ordered_json result{
        {"schema", "unisono.replay/1"},      {"operations", replayed.operations},
        {"events", replayed.passes},         {"transfers", replayed.transfers},
        {"left_out", replayed.left_out},     {"transfers_left_out", replayed.transfers_left_out},
        {"unrecorded", replayed.unrecorded}, {"later", replayed.later},
        {"later_us", replayed.later_us},     {"results", fmt::format("{:016x}", replayed.results)},
        {"wrong", replayed.wrong},           {"waits", replayed.waits}};
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print_replay(path, replayed, console);
  }
  return replayed.wrong.empty() && !replayed.is_nothing ? kDone : kAnswerIsNo;
}

}  // namespace unisono::cli
