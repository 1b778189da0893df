// Runs one thread block of an operation: all passes of its rank, on the block's slice of every
// chunk. Blocks of one rank never wait for each other; block c waits for block c of other ranks.
//
// A Machine is the environment: a GPU thread block, or a test thread. It has thread(), threads(),
// block(), shared(), sync(), any(flag), signal(word, value), tell(word in host memory, value) and
// reaches(word, value, launch, rank).
#pragma once

#include "device/arithmetic.h"
#include "device/image.h"

namespace unisono::device {

inline constexpr int kMaxOperands = 2 * kMaxRanks + 2;

struct BlockMemory {
  unsigned char* pointers[2][kMaxOperands];
  std::uint64_t inputs[kMaxRanks];
  std::uint64_t outputs[kMaxRanks];
  std::uint64_t most[kMaxRanks];
};

struct alignas(16) Vector {
  std::uint32_t words[4];
};

template <Dtype kDtype, ReduceOp kOp>
struct Combiner {
  using F = Element<kDtype>;
  using Stored = typename F::Stored;
  using Wide = typename Accumulator<F, kOp == ReduceOp::avg>::Wide;
  static constexpr ReduceOp kSum =
      kOp == ReduceOp::avg || kOp == ReduceOp::premul_sum ? ReduceOp::sum : kOp;
  static constexpr int kLanes = 16 / sizeof(Stored);

  static UNISONO_DEVICE Wide read(Stored stored, const Launch& launch, bool is_input) {
    if constexpr (kOp == ReduceOp::premul_sum) {
      if (is_input) {
        using Value = typename F::Value;
        return F::decode(
            F::encode(static_cast<Value>(F::decode(stored) * static_cast<Value>(launch.factor))));
      }
    }
    return static_cast<Wide>(F::decode(stored));
  }
  static UNISONO_DEVICE Stored write(Wide sum, const Launch& launch, bool finish) {
    if constexpr (kOp == ReduceOp::avg) {
      if (finish) {
        return divide<F>(sum, launch.divisor);
      }
    }
    return F::encode(static_cast<typename F::Value>(sum));
  }
};

// Combines `count` elements of all sources and writes the results to all targets, which may be
// sources. Skips the first `skipped` bytes of each operand.
template <class C, class Machine>
UNISONO_DEVICE void combine_scalar(const Machine& machine, const Launch& launch,
                                   const KernelPass& pass, unsigned char* const* pointers,
                                   std::uint64_t skipped, std::uint64_t count) {
  using Stored = typename C::Stored;
  const PassOperand* operands = launch.image.operands + pass.operands;
  for (std::uint64_t i = machine.thread(); i < count; i += machine.threads()) {
    Stored stored;
    std::memcpy(&stored, pointers[0] + skipped + i * sizeof(Stored), sizeof(Stored));
    auto sum = C::read(stored, launch, operands[0].place == OperandKind::input);
    for (std::uint32_t s = 1; s < pass.sources; ++s) {
      std::memcpy(&stored, pointers[s] + skipped + i * sizeof(Stored), sizeof(Stored));
      sum = combine<C::kSum>(sum, C::read(stored, launch, operands[s].place == OperandKind::input));
    }
    stored = C::write(sum, launch, pass.finish != 0);
    for (std::uint32_t t = 0; t < pass.targets; ++t) {
      std::memcpy(pointers[pass.sources + t] + skipped + i * sizeof(Stored), &stored,
                  sizeof(Stored));
    }
  }
}

template <class C, unsigned kUnroll>
UNISONO_DEVICE void combine_vectors(const Launch& launch, const KernelPass& pass,
                                    unsigned char* const* pointers, std::uint64_t head,
                                    std::uint64_t begin, std::uint64_t stride) {
  using Stored = typename C::Stored;
  using Wide = typename C::Wide;
  const PassOperand* operands = launch.image.operands + pass.operands;
  Wide sums[kUnroll][C::kLanes] = {};
  Vector vectors[kUnroll];
  for (std::uint32_t s = 0; s < pass.sources; ++s) {
    const bool is_input = operands[s].place == OperandKind::input;
    const auto* from = reinterpret_cast<const Vector*>(pointers[s] + head) + begin;
    UNISONO_UNROLL
    for (unsigned u = 0; u < kUnroll; ++u) {
      vectors[u] = from[u * stride];
    }
    UNISONO_UNROLL
    for (unsigned u = 0; u < kUnroll; ++u) {
      Stored lanes[C::kLanes];
      std::memcpy(lanes, &vectors[u], 16);
      UNISONO_UNROLL
      for (int k = 0; k < C::kLanes; ++k) {
        const Wide value = C::read(lanes[k], launch, is_input);
        sums[u][k] = s == 0 ? value : combine<C::kSum>(sums[u][k], value);
      }
    }
  }
  UNISONO_UNROLL
  for (unsigned u = 0; u < kUnroll; ++u) {
    Stored lanes[C::kLanes];
    UNISONO_UNROLL
    for (int k = 0; k < C::kLanes; ++k) {
      lanes[k] = C::write(sums[u][k], launch, pass.finish != 0);
    }
    std::memcpy(&vectors[u], lanes, 16);
  }
  for (std::uint32_t t = 0; t < pass.targets; ++t) {
    auto* to = reinterpret_cast<Vector*>(pointers[pass.sources + t] + head) + begin;
    UNISONO_UNROLL
    for (unsigned u = 0; u < kUnroll; ++u) {
      to[u * stride] = vectors[u];
    }
  }
}

template <unsigned kUnroll>
UNISONO_DEVICE void copy_vectors(const KernelPass& pass, unsigned char* const* pointers,
                                 std::uint64_t head, std::uint64_t begin, std::uint64_t stride) {
  Vector vectors[kUnroll];
  const auto* from = reinterpret_cast<const Vector*>(pointers[0] + head) + begin;
  UNISONO_UNROLL
  for (unsigned u = 0; u < kUnroll; ++u) {
    vectors[u] = from[u * stride];
  }
  for (std::uint32_t t = 0; t < pass.targets; ++t) {
    auto* to = reinterpret_cast<Vector*>(pointers[pass.sources + t] + head) + begin;
    UNISONO_UNROLL
    for (unsigned u = 0; u < kUnroll; ++u) {
      to[u * stride] = vectors[u];
    }
  }
}

// Combines `bytes` bytes of all sources. REQUIRES: `bytes` is a multiple of the element size.
template <class C, class Machine>
UNISONO_DEVICE void combine_all(const Machine& machine, const Launch& launch,
                                const KernelPass& pass, unsigned char* const* pointers,
                                std::uint64_t bytes) {
  const bool plain = pass.sources == 1 && pass.finish == 0 && launch.multiplies == 0;
  if (plain && pass.targets == 1 && pointers[0] == pointers[1]) {
    return;  // already in place, and other ranks may be reading it
  }
  constexpr unsigned kUnroll = C::kLanes > 8 ? 2 : 4;
  // If all operands have the same alignment, only the elements before and after the whole vectors
  // are processed one by one. Otherwise all elements are.
  const std::uint64_t past = reinterpret_cast<std::uint64_t>(pointers[0]) % 16;
  bool alike = true;
  for (std::uint32_t k = 1; k < pass.sources + pass.targets; ++k) {
    alike = alike && reinterpret_cast<std::uint64_t>(pointers[k]) % 16 == past;
  }
  const std::uint64_t until = (16 - past) % 16;
  const std::uint64_t head =
      alike && until % sizeof(typename C::Stored) == 0 && until < bytes ? until : 0;
  const std::uint64_t vectors = alike && (past + head) % 16 == 0 ? (bytes - head) / 16 : 0;
  if (head != 0) {
    combine_scalar<C>(machine, launch, pass, pointers, 0, head / sizeof(typename C::Stored));
  }
  const std::uint64_t threads = machine.threads();
  const std::uint64_t whole = vectors / (kUnroll * threads) * (kUnroll * threads);
  if (plain) {
    for (std::uint64_t i = 0; i < whole; i += kUnroll * threads) {
      copy_vectors<kUnroll>(pass, pointers, head, i + machine.thread(), threads);
    }
    for (std::uint64_t i = whole + machine.thread(); i < vectors; i += threads) {
      copy_vectors<1>(pass, pointers, head, i, threads);
    }
  } else {
    for (std::uint64_t i = 0; i < whole; i += kUnroll * threads) {
      combine_vectors<C, kUnroll>(launch, pass, pointers, head, i + machine.thread(), threads);
    }
    for (std::uint64_t i = whole + machine.thread(); i < vectors; i += threads) {
      combine_vectors<C, 1>(launch, pass, pointers, head, i, threads);
    }
  }
  if (head + vectors * 16 != bytes) {
    combine_scalar<C>(machine, launch, pass, pointers, head + vectors * 16,
                      (bytes - head - vectors * 16) / sizeof(typename C::Stored));
  }
}

// Returns the slice of a chunk for `channel`: whole cache lines, except at the end.
UNISONO_DEVICE inline void slice_of(std::uint64_t bytes, std::uint32_t channel,
                                    std::uint32_t channels, std::uint64_t& begin,
                                    std::uint64_t& end) {
  const std::uint64_t lines = (bytes + 127) / 128;
  const std::uint64_t each = (lines + channels - 1) / channels * 128;
  begin = channel * each < bytes ? channel * each : bytes;
  end = begin + each < bytes ? begin + each : bytes;
}

// Addresses the contents of a rank's arena by channel.
struct ArenaView {
  std::uint64_t base;
  const Launch& launch;

  UNISONO_DEVICE std::uint64_t* counts(std::uint32_t channel) const {
    return reinterpret_cast<std::uint64_t*>(base) + std::uint64_t{channel} * launch.ranks;
  }
  UNISONO_DEVICE Record* records(std::uint32_t channel, std::uint64_t parity) const {
    return reinterpret_cast<Record*>(base + launch.arena.records) +
           (std::uint64_t{channel} * 2 + parity) * launch.ranks;
  }
  UNISONO_DEVICE std::uint64_t& epoch(std::uint32_t channel) const {
    return reinterpret_cast<std::uint64_t*>(base + launch.arena.epochs)[channel];
  }
  UNISONO_DEVICE std::uint64_t scratch(std::uint32_t channel, std::uint32_t slot) const {
    return base + launch.arena.scratch +
           (std::uint64_t{channel} * launch.image.slots + slot) * launch.part;
  }
};

UNISONO_DEVICE inline ArenaView arena_of(const Launch& launch, std::uint32_t rank) {
  return {launch.arenas[rank], launch};
}

template <class Machine>
UNISONO_DEVICE bool wait_for(Machine& machine, const Launch& launch, const PassWait* waits,
                             std::uint32_t count, std::uint64_t base) {
  const std::uint64_t* counts = arena_of(launch, launch.rank).counts(machine.block());
  bool stop = false;
  for (std::uint32_t k = machine.thread(); k < count; k += machine.threads()) {
    stop = stop ||
           !machine.reaches(counts + waits[k].rank, base + waits[k].count, launch, waits[k].rank);
  }
  return !machine.any(stop);
}

// Announces this rank to all ranks and receives their buffers' addresses. Returns false if the
// block must give up.
template <class Machine>
UNISONO_DEVICE bool enter(Machine& machine, const Launch& launch, std::uint64_t epoch) {
  BlockMemory& shared = machine.shared();
  const std::uint32_t channel = machine.block();
  const std::uint32_t me = launch.rank;
  const std::uint64_t here = (epoch << 32) + 1;
  std::uint64_t most = 0;
  if (launch.has_blocks != 0) {
    for (std::uint32_t r = 0; r < launch.ranks; ++r) {
      most = launch.sent[r].bytes > most ? launch.sent[r].bytes : most;
    }
  }
  for (std::uint32_t r = machine.thread(); r < launch.ranks; r += machine.threads()) {
    const ArenaView other = arena_of(launch, r);
    other.records(channel, epoch % 2)[me] = {launch.input + launch.sent[r].offset,
                                             launch.output,
                                             launch.signature,
                                             launch.input_region,
                                             launch.output_region,
                                             launch.sent[r].bytes,
                                             most};
    machine.signal(other.counts(channel) + me, here);
  }
  const ArenaView mine = arena_of(launch, me);
  bool stop = false;
  for (std::uint32_t r = machine.thread(); r < launch.ranks; r += machine.threads()) {
    if (!machine.reaches(mine.counts(channel) + r, here, launch, r)) {
      stop = true;
      break;
    }
    const Record& record = mine.records(channel, epoch % 2)[r];
    shared.inputs[r] = record.input + launch.shifts[record.input_region * launch.ranks + r];
    shared.outputs[r] = record.output + launch.shifts[record.output_region * launch.ranks + r];
    shared.most[r] = record.most;
    if (record.signature != launch.signature || record.bytes != launch.received[r].bytes) {
      machine.tell(&launch.status[channel].mismatch, r + 1);
      stop = true;
    }
  }
  return !machine.any(stop);
}

// Returns the number of parts in the longest block of any rank, which is equal on all ranks.
template <class Machine>
UNISONO_DEVICE std::uint64_t count_parts(Machine& machine, const Launch& launch) {
  if (launch.has_blocks == 0) {
    return launch.parts;
  }
  std::uint64_t most = 0;
  for (std::uint32_t r = 0; r < launch.ranks; ++r) {
    most = machine.shared().most[r] > most ? machine.shared().most[r] : most;
  }
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  slice_of(most, 0, launch.channels, begin, end);
  return end == 0 ? 1 : (end + launch.part - 1) / launch.part;
}

// Returns the address of an operand. `begin` is the offset of the current part in the chunk.
template <class Machine>
UNISONO_DEVICE std::uint64_t place_of(Machine& machine, const Launch& launch,
                                      const KernelPass& pass, const PassOperand& operand,
                                      std::uint64_t begin) {
  const BlockMemory& shared = machine.shared();
  const auto rank = static_cast<std::uint32_t>(operand.rank);
  switch (operand.place) {
    case OperandKind::scratch:
      return arena_of(launch, rank).scratch(machine.block(), operand.slot);
    case OperandKind::input:
      if (launch.has_blocks != 0 && rank == launch.rank) {
        return launch.input + launch.sent[pass.to].offset + begin;
      }
      return shared.inputs[rank] + operand.offset + begin;
    case OperandKind::output:
      break;
  }
  if (launch.has_blocks != 0) {
    return launch.output + launch.received[pass.from].offset + begin;
  }
  return shared.outputs[rank] + operand.offset + begin;
}

UNISONO_DEVICE inline std::uint64_t bytes_of(const Launch& launch, const KernelPass& pass) {
  if (launch.has_blocks == 0) {
    return pass.bytes;
  }
  return pass.receives != 0 ? launch.received[pass.from].bytes : launch.sent[pass.to].bytes;
}

template <class C, class Machine>
UNISONO_DEVICE void run_block(Machine& machine, const Launch& launch) {
  BlockMemory& shared = machine.shared();
  const std::uint32_t channel = machine.block();
  const std::uint32_t me = launch.rank;
  const std::uint64_t epoch = arena_of(launch, me).epoch(channel) + 1;
  if (!enter(machine, launch, epoch)) {
    return;
  }
  const std::uint64_t parts = count_parts(machine, launch);
  std::uint64_t base = epoch << 32;
  std::uint32_t turn = 0;
  for (std::uint64_t part = 0; part < parts; ++part, base += launch.image.stride) {
    for (std::uint32_t p = 0; p < launch.image.pass_count; ++p, ++turn) {
      const KernelPass pass = launch.image.passes[p];
      std::uint64_t begin = 0;
      std::uint64_t end = 0;
      slice_of(bytes_of(launch, pass), channel, launch.channels, begin, end);
      begin = part * launch.part < end - begin ? begin + part * launch.part : end;
      end = launch.part < end - begin ? begin + launch.part : end;
      // There are two sets of pointers, because a thread may be one pass ahead of the others.
      unsigned char** pointers = shared.pointers[turn % 2];
      for (std::uint32_t k = machine.thread(); k < pass.sources + pass.targets;
           k += machine.threads()) {
        pointers[k] = reinterpret_cast<unsigned char*>(
            place_of(machine, launch, pass, launch.image.operands[pass.operands + k], begin));
      }
      if (!wait_for(machine, launch, launch.image.waits + pass.waits, pass.wait_count, base + 1)) {
        return;
      }
      if (begin != end) {
        combine_all<C>(machine, launch, pass, pointers, end - begin);
      }
      if (pass.signals != 0) {
        machine.sync();
        for (std::uint32_t r = machine.thread(); r < launch.ranks; r += machine.threads()) {
          if ((pass.signals >> r & 1U) != 0) {
            machine.signal(arena_of(launch, r).counts(channel) + me, base + 2 + p);
          }
        }
      }
    }
    if (!wait_for(machine, launch, launch.image.waits + launch.image.exit_waits,
                  launch.image.exit_wait_count, base + 1)) {
      return;
    }
  }
  if (machine.thread() == 0) {
    arena_of(launch, me).epoch(channel) = epoch;
  }
}

}  // namespace unisono::device
