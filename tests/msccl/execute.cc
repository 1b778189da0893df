#include "execute.h"

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "expected.h"

namespace unisono::msccl::testing {
namespace {

using executors::testing::Call;
using executors::testing::contribution;
using executors::testing::expected;
using Numbers = std::vector<std::uint64_t>;

class Machine {
 public:
  Machine(const MscclProgram& program, std::uint32_t seed, bool is_in_place, std::size_t room)
      : program_(program),
        call_{.collective = program.collective,
              .ranks = static_cast<int>(program.gpus.size()),
              .root = program.root,
              .part = program.chunks_per_loop / static_cast<int>(program.gpus.size())},
        random_(seed),
        is_in_place_(is_in_place),
        room_(room) {
    for (int rank = 0; rank < call_.ranks; ++rank) {
      const Gpu& gpu = program.gpus[static_cast<std::size_t>(rank)];
      auto& of_rank = memory_.emplace_back();
      for (std::size_t i = 0; i < of_rank.size(); ++i) {
        of_rank[i].assign(static_cast<std::size_t>(gpu.chunks[i]), 7);
      }
      for (int i = 0; i < input_size() && has_input(call_, rank); ++i) {
        *at(rank, {Buffer::input, i}) = contribution(call_.launch, rank, i);
      }
      done_.emplace_back(gpu.blocks.size(), 0);
    }
  }

  bool run() {
    while (true) {
      std::vector<std::pair<int, int>> ready;
      bool is_done = true;
      for (int gpu = 0; gpu < static_cast<int>(done_.size()); ++gpu) {
        for (int block = 0; block < static_cast<int>(done_[index(gpu)].size()); ++block) {
          const ThreadBlock& one = program_.gpus[index(gpu)].blocks[index(block)];
          if (done_[index(gpu)][index(block)] < one.steps.size()) {
            is_done = false;
            if (can_run(gpu, block)) {
              ready.emplace_back(gpu, block);
            }
          }
        }
      }
      if (is_done) {
        return is_right();
      }
      if (ready.empty()) {
        return false;
      }
      const auto& [gpu, block] = ready[random_() % ready.size()];
      step(gpu, block);
    }
  }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  int input_size() const {
    return program_.collective == Collective::all_gather ? call_.part : program_.chunks_per_loop;
  }

  std::uint64_t* at(int rank, BufferPlace place) {
    if (is_in_place_ && place.buffer == Buffer::input) {
      place.buffer = Buffer::output;
      if (program_.collective == Collective::all_gather) {
        place.offset += rank * call_.part;
      }
      if (program_.collective == Collective::reduce_scatter) {
        place.buffer = Buffer::input;
      }
    } else if (is_in_place_ && place.buffer == Buffer::output &&
               program_.collective == Collective::reduce_scatter) {
      place = {Buffer::input, place.offset + rank * call_.part};
    }
    Numbers& numbers = memory_[index(rank)].at(static_cast<std::size_t>(place.buffer));
    if (numbers.size() <= index(place.offset)) {
      numbers.resize(index(place.offset) + 1, 7);
    }
    return &numbers[index(place.offset)];
  }

  std::deque<Numbers>& link(int from, int to, int channel) { return links_[{from, to, channel}]; }

  bool can_run(int gpu, int block) {
    const ThreadBlock& one = program_.gpus[index(gpu)].blocks[index(block)];
    const Step& step = one.steps[done_[index(gpu)][index(block)]];
    const StepTraits& traits = traits_of(step.type);
    if (step.depends_on_block >= 0) {
      // The flag of a block is its last step that signals.
      const std::size_t done = done_[index(gpu)][index(step.depends_on_block)];
      const auto& steps = program_.gpus[index(gpu)].blocks[index(step.depends_on_block)].steps;
      bool is_told = false;
      for (std::size_t i = index(step.depends_on_step); i < done; ++i) {
        is_told = is_told || steps[i].tells;
      }
      if (!is_told) {
        return false;
      }
    }
    return !(traits.receives && link(one.receive, gpu, one.channel).empty()) &&
           !(traits.sends && room_ > 0 && link(gpu, one.send, one.channel).size() >= room_);
  }

  void step(int gpu, int block) {
    const ThreadBlock& one = program_.gpus[index(gpu)].blocks[index(block)];
    const Step& step = one.steps[done_[index(gpu)][index(block)]++];
    const StepTraits& traits = traits_of(step.type);
    Numbers came(index(step.chunks), 0);
    if (traits.receives) {
      came = link(one.receive, gpu, one.channel).front();
      link(one.receive, gpu, one.channel).pop_front();
      came.resize(index(step.chunks), 13);
    }
    for (int i = 0; i < step.chunks; ++i) {
      std::uint64_t& value = came[index(i)];
      if (traits.reads_source) {
        value += *at(gpu, {step.source.buffer, step.source.offset + i});
      }
      if (step.type == StepType::reduce) {
        value += *at(gpu, {step.target.buffer, step.target.offset + i});
      }
      if (traits.writes_target) {
        *at(gpu, {step.target.buffer, step.target.offset + i}) = value;
      }
    }
    if (traits.sends) {
      link(gpu, one.send, one.channel).push_back(came);
    }
  }

  bool is_right() {
    for (const auto& [key, messages] : links_) {
      if (!messages.empty()) {
        return false;
      }
    }
    for (int rank = 0; rank < call_.ranks; ++rank) {
      for (int i = 0; i < program_.chunks_per_loop; ++i) {
        const std::optional<std::uint64_t> value = expected(call_, rank, i);
        if (value && *at(rank, {Buffer::output, i}) != *value) {
          return false;
        }
      }
    }
    return true;
  }

  const MscclProgram& program_;
  Call call_;
  std::mt19937 random_;
  bool is_in_place_;
  std::size_t room_;
  std::vector<std::array<Numbers, 3>> memory_;
  std::vector<std::vector<std::size_t>> done_;
  std::map<std::tuple<int, int, int>, std::deque<Numbers>> links_;
};

}  // namespace

bool runs_right(const MscclProgram& program, std::uint32_t seed, bool is_in_place,
                std::size_t room) {
  return Machine(program, seed, is_in_place, room).run();
}

}  // namespace unisono::msccl::testing
