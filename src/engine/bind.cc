#include <algorithm>
#include <map>

#include "engine/bound_program.h"

namespace unisono::engine {
namespace {

// Renumbers the messages of each lane, because messages without bytes are not sent. Outgoing lanes
// have odd keys.
class SequenceNumbers {
 public:
  void note(const Operand& operand, bool outgoing) {
    ordinals_[key(operand, outgoing)].push_back(operand.ordinal);
  }
  void sort() {
    for (auto& [lane, ordinals] : ordinals_) {
      std::sort(ordinals.begin(), ordinals.end());
    }
  }
  std::uint32_t sequence(const Operand& operand, bool outgoing) const {
    const auto& ordinals = ordinals_.at(key(operand, outgoing));
    return static_cast<std::uint32_t>(
        std::lower_bound(ordinals.begin(), ordinals.end(), operand.ordinal) - ordinals.begin());
  }

 private:
  static int key(const Operand& operand, bool outgoing) {
    return 2 * operand.lane + (outgoing ? 1 : 0);
  }
  std::map<int, std::vector<int>> ordinals_;
};

bool travels(const Pass& pass) {
  return pass.send ||
         std::any_of(pass.sources.begin(), pass.sources.end(),
                     [](const Operand& source) { return source.place == OperandPlace::lane; });
}

// See BoundProgram::small.
bool is_small(const Program& program, std::span<const std::size_t> bytes) {
  std::map<int, std::size_t> lanes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const Pass& pass = program.passes[i];
    if (bytes[i] > (travels(pass) ? kSmallMessage : kSmallLane)) {
      return false;
    }
    // Incoming messages count too, because their sender must come to the same decision from the
    // same numbers.
    for (const Operand& operand : pass.send ? pass.targets : pass.sources) {
      if (operand.place == OperandPlace::lane) {
        std::size_t& lane = lanes[2 * operand.lane + (pass.send ? 1 : 0)];
        lane += 64 + bytes[i] + bytes[i] / 4;
        if (lane > kSmallLane) {
          return false;
        }
      }
    }
  }
  return true;
}

std::size_t align_up(std::size_t bytes) {
  return (bytes + 63) & ~std::size_t{63};
}

}  // namespace

BoundProgram bind(const Program& program, std::span<const ChunkPlace> places, std::size_t element,
                  Extent extent, bool private_sizes) {
  BoundProgram bound{.element = element};
  // The token of a barrier is also combined with other tokens.
  bound.copies_only = !reduces(program.collective) && moves_data(program.collective);

  std::vector<std::size_t> scratch(program.scratch.size());
  bool previous = false;
  for (std::size_t chunk = 0; chunk < scratch.size(); ++chunk) {
    if (program.scratch[chunk]) {
      if (!previous) {
        bound.scratch_bytes = align_up(bound.scratch_bytes);
      }
      scratch[chunk] = bound.scratch_bytes;
      bound.scratch_bytes += places[chunk].bytes;  // neighbours stay neighbours
    }
    previous = program.scratch[chunk];
  }

  // If only the two ends of a message know its length, the other end may expect more than an empty
  // message. So an empty message is sent as one byte that nobody reads.
  const std::size_t nothing = align_up(bound.scratch_bytes);
  std::vector<std::size_t> bytes;
  std::vector<bool> is_nothing;
  SequenceNumbers numbers;
  for (const Pass& pass : program.passes) {
    std::size_t sum = 0;
    for (int i = 0; i < pass.chunks; ++i) {
      sum += places[static_cast<std::size_t>(pass.chunk + i)].bytes;
    }
    is_nothing.push_back(private_sizes && sum == 0 && travels(pass));
    if (is_nothing.back()) {
      sum = 1;
      bound.scratch_bytes = nothing + 1;
    }
    bytes.push_back(sum);
    for (const Operand& operand : pass.send ? pass.targets : pass.sources) {
      if (sum != 0 && operand.place == OperandPlace::lane) {
        numbers.note(operand, pass.send);
      }
    }
  }
  numbers.sort();
  bound.small = !program.encoded && is_small(program, bytes);

  const auto bind_operands = [&](const Pass& pass, const std::vector<Operand>& operands,
                                 std::size_t size, bool empty) {
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    for (const Operand& operand : operands) {
      BoundOperand result{.place = operand.place, .lane = operand.lane};
      switch (operand.place) {
        case OperandPlace::input:
          result.offset = places[chunk].input;
          break;
        case OperandPlace::output:
          result.offset = places[chunk].output;
          break;
        case OperandPlace::scratch:
          result.offset = scratch[chunk];
          break;
        case OperandPlace::lane:
          result.sequence = size == 0 ? 0 : numbers.sequence(operand, pass.send);
          break;
      }
      if (empty && operand.place != OperandPlace::lane) {
        result.place = OperandPlace::scratch;
        result.offset = nothing;
      }
      bound.operands.push_back(result);
    }
    return static_cast<std::uint32_t>(bound.operands.size());
  };
  for (std::size_t i = 0; i < program.passes.size(); ++i) {
    const Pass& pass = program.passes[i];
    BoundPass result{.bytes = bytes[i],
                     .send = pass.send,
                     .transient = pass.transient,
                     .may_share = pass.may_share,
                     .step = static_cast<std::uint32_t>(pass.step),
                     .is_nothing = is_nothing[i],
                     .code = pass.code,
                     .rounds = rounds(pass)};
    if (pass.code != MoveCode::none) {
      bound.coded_sources =
          std::max(bound.coded_sources, static_cast<std::uint32_t>(pass.sources.size()));
    }
    if (private_sizes) {
      const std::size_t length = is_nothing[i] ? 0 : bytes[i];
      result.salt = (length + 1) * 0x9e3779b97f4a7c15U;  // odd, so different lengths differ
    }
    result.sources = static_cast<std::uint32_t>(bound.operands.size());
    result.targets = result.sources_end =
        bind_operands(pass, pass.sources, bytes[i], is_nothing[i]);
    result.targets_end = bind_operands(pass, pass.targets, bytes[i], is_nothing[i]);
    for (std::size_t source = 0; source < pass.sources.size(); ++source) {
      result.single_sources |= std::uint64_t{pass.sources[source].single} << source;
    }
    result.waits = static_cast<std::uint32_t>(bound.waits.size());
    bound.waits.insert(bound.waits.end(), pass.waits.begin(), pass.waits.end());
    result.waits_end = static_cast<std::uint32_t>(bound.waits.size());
    result.forwards = static_cast<std::uint32_t>(bound.forwards.size());
    for (const int forward : pass.forwards) {
      bound.forwards.push_back(static_cast<std::uint32_t>(forward));
    }
    result.forwards_end = static_cast<std::uint32_t>(bound.forwards.size());
    const bool to_output = !pass.send && pass.targets[0].place == OperandPlace::output;
    if (to_output && extent.output >= kStreamingBytes) {
      result.store = kernels::Store::streaming;
    }
    bound.passes.push_back(result);
  }
  return bound;
}

}  // namespace unisono::engine
