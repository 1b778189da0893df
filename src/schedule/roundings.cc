// Tracks values by name, for one chunk at a time: an input, a sum of two values, or a rounded
// value.
#include "schedule/roundings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "schedule/moves_by_chunk.h"

namespace unisono {
namespace {

constexpr std::size_t kMostFaults = 100;

struct Value {
  int inputs = 1;                     // number of ranks that contribute to it
  int input_roundings = 0;            // most roundings of one contribution
  int result_roundings = 0;           // roundings after the last contribution was added
  MoveCode rounded = MoveCode::none;  // its code, if nothing was added after rounding
};

// Gives equal expressions the same number: equal numbers mean equal bits.
class Values {
 public:
  int input(int rank) { return named({rank, -1, MoveCode::none}, {}); }
  int sum(int a, int b) {
    const Value& x = of(a);
    const Value& y = of(b);
    return named({std::max(a, b), std::min(a, b), MoveCode::none},
                 {.inputs = x.inputs + y.inputs,
                  .input_roundings = std::max(x.input_roundings, y.input_roundings),
                  .result_roundings = std::max(x.result_roundings, y.result_roundings)});
  }
  int rounded(int a, MoveCode code, int ranks) {
    Value value = of(a);
    if (value.rounded == code) {
      return a;
    }
    value.rounded = code;
    ++(value.inputs < ranks ? value.input_roundings : value.result_roundings);
    return named({a, -1, code}, value);
  }
  const Value& of(int value) const { return values_[static_cast<std::size_t>(value)]; }

 private:
  using Name = std::tuple<int, int, MoveCode>;
  int named(const Name& name, const Value& value) {
    const auto [entry, fresh] = numbers_.try_emplace(name, static_cast<int>(values_.size()));
    if (fresh) {
      values_.push_back(value);
    }
    return entry->second;
  }
  std::map<Name, int> numbers_;
  std::vector<Value> values_;
};

// Tracks the values in the cells of one chunk while the moves run.
class RoundingFlow {
 public:
  RoundingFlow(const Schedule& schedule, int chunk)
      : schedule_(schedule),
        chunk_(chunk),
        cells_(2 * static_cast<std::size_t>(schedule.ranks), kUnwritten) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      values_.input(rank);  // the first numbers, so that no sum has the name of an input
    }
  }

  // Returns the value in the source of a move, and the resulting value at the target.
  int source(const Move& move) { return read(move.from, move.source); }
  int result(const Move& move) {
    int value = source(move);
    if (move.code != MoveCode::none) {
      value = values_.rounded(value, move.code, contributions());
    }
    return move.combine == Combine::replace ? value
                                            : values_.sum(read(move.to, move.target), value);
  }
  void write(int rank, Buffer buffer, int value) { cells_[slot(rank, buffer)] = value; }
  void round(int rank, Buffer buffer, MoveCode code) {
    write(rank, buffer, values_.rounded(read(rank, buffer), code, contributions()));
  }
  int output(int rank) { return read(rank, Buffer::output); }
  const Value& of(int value) const { return values_.of(value); }
  // Returns the number of contributions in a complete value: one per rank if the collective
  // reduces; otherwise 1, because every value is complete.
  int contributions() const { return reduces(schedule_.collective) ? schedule_.ranks : 1; }
  int chunk() const { return chunk_; }

 private:
  static constexpr int kUnwritten = -1;
  static std::size_t slot(int rank, Buffer buffer) {
    return 2 * static_cast<std::size_t>(rank) + (buffer == Buffer::scratch ? 1 : 0);
  }
  int read(int rank, Buffer buffer) {
    const int held = buffer == Buffer::input ? kUnwritten : cells_[slot(rank, buffer)];
    return held == kUnwritten ? values_.input(rank) : held;
  }

  const Schedule& schedule_;
  int chunk_;
  Values values_;
  std::vector<int> cells_;
};

class RoundingCheck {
 public:
  explicit RoundingCheck(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<RoundingFault> run() && {
    const auto by_chunk = moves_by_chunk(schedule_);
    for (int chunk = 0; chunk < schedule_.chunks && faults_.size() < kMostFaults; ++chunk) {
      check(chunk, by_chunk.of(static_cast<std::size_t>(chunk)));
    }
    return std::move(faults_);
  }

 private:
  void check(int chunk, Moves moves) {
    RoundingFlow flow(schedule_, chunk);
    for_steps(moves, [&](Moves step) {
      std::vector<int> results;
      for (const Move* const move : step) {
        results.push_back(flow.result(*move));
        check_result(flow, *move, results.back());
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        flow.write(step[i]->to, step[i]->target, results[i]);
      }
    });
    check_same_bits(flow);
  }

  // Reports the move that rounds once too often, not the moves that forward its result.
  void check_result(RoundingFlow& flow, const Move& move, int result) {
    const Value& before = flow.of(flow.source(move));
    const Value& after = flow.of(result);
    const bool input = after.input_roundings > 1 && before.input_roundings <= 1;
    const bool once_more = after.result_roundings > 1 && before.result_roundings <= 1;
    if (move.code == MoveCode::none || (!input && !once_more)) {
      return;
    }
    add({.step = move.step,
         .chunk = flow.chunk(),
         .line = move.line,
         .what = std::string(input ? "an input is rounded twice" : "the result is rounded twice") +
                 " on its way from rank " + std::to_string(move.from) + " to rank " +
                 std::to_string(move.to)});
  }

  void check_same_bits(RoundingFlow& flow) {
    int first = -1;
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      if (!needs_output(schedule_, rank, flow.chunk())) {
        continue;
      }
      first = first < 0 ? rank : first;
      if (flow.output(rank) != flow.output(first)) {
        add({.chunk = flow.chunk(),
             .what = "ranks " + std::to_string(first) + " and " + std::to_string(rank) +
                     " end with other bits"});
        return;
      }
    }
  }

  void add(RoundingFault fault) {
    if (faults_.size() < kMostFaults) {
      faults_.push_back(std::move(fault));
    }
  }

  const Schedule& schedule_;
  std::vector<RoundingFault> faults_;
};

// A rank rounds the value of one of its cells before this step.
struct OwnRounding {
  int step = 0;
  int rank = 0;
  int chunk = 0;
  Buffer buffer = Buffer::output;
  Buffer target = Buffer::output;
  std::uint32_t line = 0;
};

// Finds a result, not among the known ones, that is sent encoded although its own rank has not
// rounded it.
class MissingRounding {
 public:
  MissingRounding(const Schedule& schedule, int chunk, Moves moves, MoveCode code)
      : schedule_(schedule), chunk_(chunk), moves_(moves), code_(code) {}

  std::optional<OwnRounding> after(const std::vector<OwnRounding>& known) {
    RoundingFlow flow(schedule_, chunk_);
    std::optional<OwnRounding> missing;
    first_reads_.clear();
    for_steps(moves_, [&](Moves step) {
      for (const OwnRounding& rounding : known) {
        if (rounding.step == step.front()->step) {
          flow.round(rounding.rank, rounding.buffer, code_);
        }
      }
      std::vector<int> results;
      for (const Move* const move : step) {
        results.push_back(flow.result(*move));
        if (!missing.has_value()) {
          missing = look(flow, *move);
        }
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        flow.write(step[i]->to, step[i]->target, results[i]);
      }
    });
    return missing;
  }

 private:
  // All other readers of the result must also read the rounded value, so it is rounded before the
  // first read.
  std::optional<OwnRounding> look(RoundingFlow& flow, const Move& move) {
    const int value = flow.source(move);
    if (move.source == Buffer::input || flow.of(value).inputs != flow.contributions()) {
      return std::nullopt;
    }
    const auto read = first_reads_.try_emplace({move.from, move.source, value}, move.step).first;
    if (move.code == MoveCode::none || flow.of(value).rounded == move.code) {
      return std::nullopt;
    }
    return OwnRounding{.step = read->second,
                       .rank = move.from,
                       .chunk = chunk_,
                       .buffer = move.source,
                       .target = move.source,
                       .line = move.line};
  }

  const Schedule& schedule_;
  int chunk_;
  Moves moves_;
  MoveCode code_;
  std::map<std::tuple<int, Buffer, int>, int> first_reads_;  // rank, buffer, value -> step
};

// Data that is only moved is rounded at its source before it is first sent, so that every receiver
// gets the same bits. Inputs do not change.
std::optional<OwnRounding> rounding_at_origin(const Schedule& schedule, int chunk, Moves moves) {
  const auto first = std::find_if(moves.begin(), moves.end(), [&](const Move* move) {
    return move->from != move->to && has_input(schedule, move->from, chunk);
  });
  if (first == moves.end()) {
    return std::nullopt;
  }
  const bool from_input = (*first)->source == Buffer::input;
  return OwnRounding{.step = (*first)->step,
                     .rank = (*first)->from,
                     .chunk = chunk,
                     .buffer = (*first)->source,
                     .target = from_input ? Buffer::output : (*first)->source,
                     .line = (*first)->line};
}

// Replaces sends from an input by sends from the place where it is rounded.
void send_outputs(Schedule& schedule) {
  for (Move& move : schedule.moves) {
    if (move.source == Buffer::input && move.from != move.to) {
      move.source = Buffer::output;
    }
  }
}

// Inserts a step before each step that needs roundings.
Schedule with_roundings(Schedule schedule, const std::vector<OwnRounding>& roundings,
                        MoveCode code) {
  std::set<int> steps;
  for (const OwnRounding& rounding : roundings) {
    steps.insert(rounding.step);
  }
  // Returns the new number of a step, which counts the inserted steps before it.
  const auto shifted = [&steps](int step) {
    return step + static_cast<int>(std::distance(steps.begin(), steps.upper_bound(step)));
  };
  for (Move& move : schedule.moves) {
    move.step = shifted(move.step);
  }
  for (const OwnRounding& rounding : roundings) {
    schedule.moves.push_back({.step = shifted(rounding.step) - 1,
                              .from = rounding.rank,
                              .to = rounding.rank,
                              .chunk = rounding.chunk,
                              .source = rounding.buffer,
                              .target = rounding.target,
                              .line = rounding.line,
                              .code = code});
  }
  std::stable_sort(schedule.moves.begin(), schedule.moves.end(),
                   [](const Move& a, const Move& b) { return a.step < b.step; });
  for (Phase& phase : schedule.phases) {
    phase.first_step = shifted(phase.first_step);
  }
  schedule.steps = schedule.steps + static_cast<int>(steps.size());
  return schedule;
}

}  // namespace

Schedule encode_moves(const Schedule& schedule, std::span<const int> hosts, MoveCode code) {
  Schedule encoded = schedule;
  for (Move& move : encoded.moves) {
    const bool between =
        hosts[static_cast<std::size_t>(move.from)] != hosts[static_cast<std::size_t>(move.to)];
    move.code = between ? code : MoveCode::none;
  }
  // If only one rank has the result, there is no other copy that must be equal.
  const bool crosses = std::any_of(encoded.moves.begin(), encoded.moves.end(),
                                   [](const Move& move) { return move.code != MoveCode::none; });
  if (!crosses || traits_of(schedule.collective).output != Holding::whole) {
    return encoded;
  }
  const bool only_moves = !reduces(encoded.collective);
  std::vector<OwnRounding> roundings;
  const auto by_chunk = moves_by_chunk(encoded);
  for (int chunk = 0; chunk < encoded.chunks; ++chunk) {
    const Moves moves = by_chunk.of(static_cast<std::size_t>(chunk));
    if (only_moves) {
      if (const auto at_origin = rounding_at_origin(encoded, chunk, moves)) {
        roundings.push_back(*at_origin);
      }
      continue;
    }
    MissingRounding missing(encoded, chunk, moves, code);
    std::vector<OwnRounding> found;
    while (const auto next = missing.after(found)) {
      found.push_back(*next);
    }
    roundings.insert(roundings.end(), found.begin(), found.end());
  }
  if (only_moves) {
    send_outputs(encoded);
  }
  return with_roundings(std::move(encoded), roundings, code);
}

std::vector<RoundingFault> check_roundings(const Schedule& schedule) {
  return RoundingCheck(schedule).run();
}

}  // namespace unisono
