// Lowers a schedule to one rank's program: lists the rank's passes in order, merges them (*n-ary
// reduce*, *elide*), finds their true dependencies, and decides which sends are fused with a
// compute pass (*fuse*).
#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/private.h"
#include "engine/cells.h"
#include "engine/messages.h"
#include "engine/program.h"
#include "kernels/kernels.h"
#include "schedule/tree_order.h"

namespace unisono::engine {
namespace {

OperandPlace place_of(Buffer buffer) {
  return buffer == Buffer::output ? OperandPlace::output : OperandPlace::scratch;
}

class Lowering {
 public:
  Lowering(const Schedule& schedule, int rank, const LowerOptions& options)
      : schedule_(schedule), options_(options), plan_(plan_messages(schedule, options)) {
    program_.collective = schedule.collective;
    program_.rank = rank;
    program_.ranks = schedule.ranks;
    program_.chunks = schedule.chunks;
    program_.scratch.resize(static_cast<std::size_t>(schedule.chunks));
    program_.encoded = std::any_of(schedule.moves.begin(), schedule.moves.end(),
                                   [](const Move& move) { return move.code != MoveCode::none; });
  }

  Program run() {
    list_passes();
    fill_own_outputs();
    merge();
    find_dependencies();
    find_forwards();
    find_swaps();
    return std::move(program_);
  }

 private:
  void list_passes();
  void list_local(const Local& local);
  void list_arrival(const Delivery& arrival);
  void fill_own_outputs();
  void merge();
  bool try_merge(const Pass& pass, std::vector<std::optional<Pass>>& merged);
  void find_dependencies();
  void find_forwards();
  void find_swaps();
  int latest_read(const Pass& send) const;
  OperandPlace readable(OperandPlace place, int chunk) const {
    return place != OperandPlace::input && !written_.written(place, chunk) ? OperandPlace::input
                                                                           : place;
  }
  void add(Pass pass);

  const Schedule& schedule_;
  LowerOptions options_;
  Messages plan_;
  Program program_;
  CellSet written_{schedule_.chunks};
};

void Lowering::add(Pass pass) {
  for (const Operand& target : pass.targets) {
    if (target.place != OperandPlace::lane) {
      written_.mark(target.place, pass.chunk, pass.chunks);
    }
  }
  program_.passes.push_back(std::move(pass));
}

// Lists the passes of a step in this order: sends, local moves, arrivals. Within a step, all reads
// come before all writes.
void Lowering::list_passes() {
  const int me = program_.rank;
  auto message = plan_.messages.begin();
  auto local = plan_.locals.begin();
  auto arrival = plan_.arrivals.begin();
  for (int step = 0; step < schedule_.steps; ++step) {
    for (; message != plan_.messages.end() && message->step == step; ++message) {
      if (message->from == me) {
        const int lane = message->to < 0 ? schedule_.ranks : message->to;
        add({.step = step,
             .chunk = message->chunk,
             .chunks = message->chunks,
             .send = true,
             .sources = {{.place = message->source}},
             .targets = {{.place = OperandPlace::lane, .lane = lane, .ordinal = message->ordinal}},
             .code = message->code});
      }
    }
    for (; local != plan_.locals.end() && local->step == step; ++local) {
      if (local->rank == me) {
        list_local(*local);
      }
    }
    for (; arrival != plan_.arrivals.end() && arrival->step == step; ++arrival) {
      if (arrival->to == me) {
        list_arrival(*arrival);
      }
    }
  }
}

void Lowering::list_local(const Local& local) {
  Pass pass{.step = local.step, .chunk = local.chunk, .chunks = local.chunks, .code = local.code};
  const OperandPlace target = place_of(local.target);
  if (local.combine == Combine::reduce) {
    pass.sources.push_back({.place = readable(target, local.chunk), .single = local.single_target});
  }
  pass.sources.push_back({.place = local.source, .single = local.single});
  pass.targets.push_back({.place = target});
  add(std::move(pass));
}

void Lowering::list_arrival(const Delivery& arrival) {
  const Message& message = plan_.messages[static_cast<std::size_t>(arrival.message)];
  const int lane = message.to < 0 ? schedule_.ranks + message.from : message.from;
  Pass pass{
      .step = arrival.step, .chunk = message.chunk, .chunks = message.chunks, .code = message.code};
  const OperandPlace target = place_of(arrival.target);
  if (arrival.combine == Combine::reduce) {
    pass.sources.push_back(
        {.place = readable(target, message.chunk), .single = arrival.single_target});
  }
  pass.sources.push_back({.place = OperandPlace::lane,
                          .lane = lane,
                          .ordinal = message.ordinal,
                          .single = message.single});
  pass.targets.push_back({.place = target});
  add(std::move(pass));
}

// Copies the rank's own input to an output that no move writes.
void Lowering::fill_own_outputs() {
  if (schedule_.collective == Collective::barrier) {
    return;
  }
  for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
    const bool missing = needs_output(schedule_, program_.rank, chunk) &&
                         !written_.written(OperandPlace::output, chunk);
    if (!missing || options_.in_place) {
      continue;
    }
    Pass* last = program_.passes.empty() ? nullptr : &program_.passes.back();
    if (options_.contiguous && last != nullptr && last->step == schedule_.steps &&
        last->chunk + last->chunks == chunk) {
      ++last->chunks;
      written_.mark(OperandPlace::output, chunk, 1);
      continue;
    }
    add({.step = schedule_.steps,
         .chunk = chunk,
         .sources = {{.place = OperandPlace::input}},
         .targets = {{.place = OperandPlace::output}}});
  }
}

bool uses_lane(const Pass& pass, const std::vector<Operand>& operands) {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    return operand.place == OperandPlace::lane &&
           std::any_of(pass.sources.begin(), pass.sources.end(), [&](const Operand& source) {
             return source.place == OperandPlace::lane && source.lane == operand.lane;
           });
  });
}

bool receives(const Pass& pass) {
  return std::any_of(pass.sources.begin(), pass.sources.end(),
                     [](const Operand& source) { return source.place == OperandPlace::lane; });
}

// Returns true if all messages of the merged pass would have the same code, and the pass would
// round nothing else.
bool codes_agree(const Pass& a, const Pass& b) {
  return !rounds(a) && !rounds(b) && (a.code == b.code || !receives(a) || !receives(b));
}

bool touches(const Pass& pass, OperandPlace place, int chunk, int chunks, bool in_place,
             bool writes_only) {
  if (pass.chunk >= chunk + chunks || chunk >= pass.chunk + pass.chunks) {
    return false;
  }
  const auto same = [&](const Operand& operand) {
    const bool alias = in_place && operand.place != OperandPlace::lane &&
                       place != OperandPlace::scratch && operand.place != OperandPlace::scratch;
    return operand.place == place || alias;
  };
  return std::any_of(pass.targets.begin(), pass.targets.end(), same) ||
         (!writes_only && std::any_of(pass.sources.begin(), pass.sources.end(), same));
}

// Merges the pass with an earlier one if it continues that pass on the same cells: it reduces
// further, or copies from scratch to the place of the result. The merged pass has the later
// position.
bool Lowering::try_merge(const Pass& pass, std::vector<std::optional<Pass>>& merged) {
  if (pass.send || pass.sources[0].place == OperandPlace::lane ||
      pass.sources[0].place == OperandPlace::input) {
    return false;
  }
  const OperandPlace cell = pass.sources[0].place;
  const bool reduction = pass.sources.size() > 1 && pass.targets[0].place == cell;
  const bool copy = pass.sources.size() == 1 && cell == OperandPlace::scratch;
  if (!reduction && !copy) {
    return false;
  }
  // A pass over several terms would round narrow floats only once, but the tree order rounds each
  // sum.
  if (reduction && schedule_.algorithm == kTreeOrder) {
    return false;
  }
  // The last pass that uses these cells must be the pass that wrote exactly these cells.
  auto earlier = merged.end();
  for (auto it = merged.end(); it != merged.begin();) {
    --it;
    if (it->has_value() && touches(**it, cell, pass.chunk, pass.chunks, options_.in_place, false)) {
      earlier = it;
      break;
    }
  }
  if (earlier == merged.end()) {
    return false;
  }
  Pass& writer = **earlier;
  if (writer.send || writer.chunk != pass.chunk || writer.chunks != pass.chunks ||
      writer.targets.size() != 1 || writer.targets[0].place != cell ||
      writer.sources.size() + pass.sources.size() > kernels::kMaxSources ||
      !codes_agree(pass, writer) ||
      uses_lane(pass, writer.sources)) {  // a pass sees one message of a lane
    return false;
  }
  // No pass in between may use the earlier pass's lanes or change its sources.
  for (auto it = earlier + 1; it != merged.end(); ++it) {
    if (!it->has_value()) {
      continue;
    }
    if (uses_lane(**it, writer.sources)) {
      return false;
    }
    for (const Operand& source : writer.sources) {
      if (source.place != OperandPlace::lane &&
          touches(**it, source.place, pass.chunk, pass.chunks, options_.in_place, true)) {
        return false;
      }
    }
  }
  Pass both = std::move(writer);
  earlier->reset();
  both.step = pass.step;
  both.code = std::max(both.code, pass.code);
  both.sources.insert(both.sources.end(), pass.sources.begin() + (reduction ? 1 : 0),
                      reduction ? pass.sources.end() : pass.sources.begin());
  both.targets = pass.targets;
  merged.emplace_back(std::move(both));
  return true;
}

void Lowering::merge() {
  std::vector<std::optional<Pass>> merged;
  const auto& passes = program_.passes;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    // A pass that copies out of scratch may replace the scratch only if no later pass reads it.
    const Pass& pass = passes[i];
    const bool scratch_copy =
        !pass.send && pass.sources.size() == 1 && pass.sources[0].place == OperandPlace::scratch;
    const bool read_later =
        scratch_copy && std::any_of(passes.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    passes.end(), [&](const Pass& later) {
                                      return touches(later, OperandPlace::scratch, pass.chunk,
                                                     pass.chunks, options_.in_place, false);
                                    });
    if (read_later || !try_merge(pass, merged)) {
      merged.emplace_back(pass);
    }
  }
  program_.passes.clear();
  for (auto& pass : merged) {
    if (pass.has_value()) {
      program_.passes.push_back(std::move(*pass));
    }
  }
}

void add_wait(Pass& pass, Dependency wait) {
  for (Dependency& known : pass.waits) {
    if (known.pass == wait.pass) {
      known.whole |= wait.whole;
      known.drained |= wait.drained;
      return;
    }
  }
  pass.waits.push_back(wait);
}

void Lowering::find_dependencies() {
  CellHistory history(schedule_.chunks, options_.in_place);
  auto& passes = program_.passes;
  for (int i = 0; i < static_cast<int>(passes.size()); ++i) {
    Pass& pass = passes[static_cast<std::size_t>(i)];
    const auto wait_for = [&](int other, bool drained) {
      const Pass& earlier = passes[static_cast<std::size_t>(other)];
      const bool same = earlier.chunk == pass.chunk && earlier.chunks == pass.chunks;
      add_wait(pass, {.pass = other, .whole = !same, .drained = drained});
    };
    for (int chunk = pass.chunk; chunk < pass.chunk + pass.chunks; ++chunk) {
      for (const Operand& source : pass.sources) {
        if (source.place != OperandPlace::lane && history.writer(source.place, chunk) >= 0) {
          wait_for(history.writer(source.place, chunk), false);
        }
      }
      for (const Operand& target : pass.targets) {
        if (target.place == OperandPlace::lane) {
          continue;
        }
        if (history.writer(target.place, chunk) >= 0) {
          wait_for(history.writer(target.place, chunk), true);
        }
        for (const int reader : history.readers(target.place, chunk)) {
          wait_for(reader, true);
        }
      }
    }
    for (int chunk = pass.chunk; chunk < pass.chunk + pass.chunks; ++chunk) {
      for (const Operand& source : pass.sources) {
        if (source.place != OperandPlace::lane) {
          history.read(source.place, chunk, i);
        }
        if (source.place == OperandPlace::scratch) {
          program_.scratch[static_cast<std::size_t>(chunk)] = true;
        }
      }
      for (const Operand& target : pass.targets) {
        if (target.place != OperandPlace::lane) {
          history.write(target.place, chunk, i);
        }
        if (target.place == OperandPlace::scratch) {
          program_.scratch[static_cast<std::size_t>(chunk)] = true;
        }
      }
    }
  }
}

void Lowering::find_forwards() {
  auto& passes = program_.passes;
  std::vector<int> readers(passes.size());
  for (const Pass& pass : passes) {
    for (const Dependency& wait : pass.waits) {
      ++readers[static_cast<std::size_t>(wait.pass)];
    }
  }
  for (int i = 0; i < static_cast<int>(passes.size()); ++i) {
    const Pass& pass = passes[static_cast<std::size_t>(i)];
    if (!pass.send || pass.code != MoveCode::none || pass.waits.size() != 1 ||
        pass.waits[0].whole || pass.waits[0].drained) {
      continue;
    }
    Pass& writer = passes[static_cast<std::size_t>(pass.waits[0].pass)];
    if (!writer.send && writer.targets.size() == 1 &&
        writer.targets[0].place == pass.sources[0].place) {
      writer.forwards.push_back(i);
    }
  }
  for (std::size_t i = 0; i < passes.size(); ++i) {
    Pass& pass = passes[i];
    pass.transient = !pass.send && pass.targets[0].place == OperandPlace::scratch &&
                     !pass.forwards.empty() && readers[i] == static_cast<int>(pass.forwards.size());
  }
}

// Returns the latest step at which a receiving rank may read this message. A reader's pass may be
// merged with later passes that continue with the same chunk.
int Lowering::latest_read(const Pass& send) const {
  const int lane = send.targets[0].lane;
  const auto sent =
      std::find_if(plan_.messages.begin(), plan_.messages.end(), [&](const Message& message) {
        return message.from == program_.rank && message.ordinal == send.targets[0].ordinal &&
               (message.to < 0 ? schedule_.ranks : message.to) == lane;
      });
  const auto overlaps = [&](int chunk, int chunks) {
    return chunk < send.chunk + send.chunks && send.chunk < chunk + chunks;
  };
  const auto reaches = [&](int rank) {
    return sent->to < 0 ? rank != program_.rank : rank == sent->to;
  };
  int latest = 0;
  for (const Delivery& arrival : plan_.arrivals) {
    const Message& message = plan_.messages[static_cast<std::size_t>(arrival.message)];
    const bool this_one = &message == &*sent;
    const bool goes_on = arrival.combine == Combine::reduce && reaches(arrival.to) &&
                         overlaps(message.chunk, message.chunks);
    if (this_one || goes_on) {
      latest = std::max(latest, arrival.step);
    }
  }
  for (const Local& local : plan_.locals) {
    if (reaches(local.rank) && overlaps(local.chunk, local.chunks)) {
      latest = std::max(latest, local.step);
    }
  }
  return latest;
}

// Finds sends that must not be shared. The steps order all passes of all ranks. A write waits until
// the readers of the old contents have read. If all of them read in earlier steps, the write waits
// only for earlier passes, so no cycle of waiting ranks is possible.
void Lowering::find_swaps() {
  auto& passes = program_.passes;
  for (const Pass& pass : passes) {
    for (const Dependency& wait : pass.waits) {
      Pass& earlier = passes[static_cast<std::size_t>(wait.pass)];
      if (wait.drained && earlier.send && earlier.may_share && latest_read(earlier) >= pass.step) {
        earlier.may_share = false;
      }
    }
  }
}

}  // namespace

bool rounds(const Pass& pass) {
  return pass.code != MoveCode::none && !pass.send && !receives(pass);
}

UNISONO_PRIVATE Program lower(const Schedule& schedule, int rank, const LowerOptions& options) {
  return Lowering(schedule, rank, options).run();
}

}  // namespace unisono::engine
