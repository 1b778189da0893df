#include "machine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

#include "expected.h"

namespace unisono::mscclpp::testing {
namespace {

using executors::testing::Call;
using executors::testing::contribution;
using executors::testing::expected;
using Numbers = std::vector<std::uint64_t>;

constexpr std::size_t kThreads = 2;  // threads per block
constexpr int kElements = 3;         // per chunk: in longer places, a thread has other elements

std::size_t at(int value) {
  return static_cast<std::size_t>(value);
}

class Machine {
 public:
  Machine(const ExecutionPlan& plan, std::uint32_t seed, int launches)
      : plan_(plan), random_(seed), launches_(launches) {
    for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
      const PlanGpu& one = plan.gpus[gpu];
      State& state = states_.emplace_back();
      const int larger = std::max(one.chunks[0], one.chunks[1]);
      state.memory[0].resize(at(larger * kElements));
      state.memory[1].resize(at(larger * kElements));
      state.memory[2].resize(at(one.chunks[2] * kElements));
      state.arrived.assign(one.channels.size(), 0);
      state.awaited.assign(one.channels.size(), 0);
      state.semaphores = one.semaphores;
    }
  }

  bool run() {
    while (true) {
      std::vector<int> gpus;
      for (int gpu = 0; gpu < ranks(); ++gpu) {
        if (states_[at(gpu)].launch < launches_ || states_[at(gpu)].is_running) {
          gpus.push_back(gpu);
        }
      }
      if (gpus.empty()) {
        return is_right_;
      }
      std::shuffle(gpus.begin(), gpus.end(), random_);
      if (std::none_of(gpus.begin(), gpus.end(), [&](int gpu) { return advance(gpu); })) {
        return false;
      }
    }
  }

 private:
  enum class Stage : std::uint8_t { load, store, spin };
  struct Thread {
    int block = 0;
    std::size_t number = 0;
    std::size_t next = 0;       // index of the operation
    std::size_t counted = 0;    // its counters that are done
    Stage stage = Stage::load;  // stage of a wait
    int expected = 0;           // signals that a wait expects
  };
  struct State {
    std::array<Numbers, 3> memory;
    std::vector<int> arrived;  // by channel: signals that arrived
    std::vector<int> awaited;  // by channel: signals that were awaited
    std::vector<int> semaphores;
    std::vector<Thread> threads;
    int launch = 0;  // the current or next launch
    bool is_running = false;
  };

  int ranks() const { return static_cast<int>(plan_.gpus.size()); }
  // Returns the elements of a rank's part of the vector.
  int part() const {
    const int chunks = std::max(plan_.gpus[0].chunks[0], plan_.gpus[0].chunks[1]);
    return chunks / ranks() * kElements;
  }

  // Returns an element of a place as the executor finds it: with the offsets of the accessing GPU.
  std::uint64_t& element(int looking, const PlanPlace& place, int index) {
    Buffer buffer = place.buffer;
    int offset = place.offset * kElements + index;
    if (plan_.in_place && buffer != Buffer::scratch) {
      const bool is_part =
          (plan_.collective == Collective::all_gather && buffer == Buffer::input) ||
          (plan_.collective == Collective::reduce_scatter && buffer == Buffer::output);
      offset += is_part ? looking * part() : 0;
      buffer = Buffer::output;
    }
    Numbers& numbers = states_[at(place.gpu)].memory.at(static_cast<std::size_t>(buffer));
    return numbers.at(at(offset));
  }

  bool advance(int gpu) {
    State& state = states_[at(gpu)];
    if (!state.is_running) {
      begin(gpu);
      return true;
    }
    const std::size_t first = state.threads.empty() ? 0 : random_() % state.threads.size();
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
      if (step(gpu, state.threads[(first + i) % state.threads.size()])) {
        end_if_done(gpu);
        return true;
      }
    }
    return false;
  }

  void scribble(int gpu) {
    for (std::size_t buffer = 0; buffer < 2; ++buffer) {
      for (std::uint64_t& number : states_[at(gpu)].memory.at(buffer)) {
        number = random_();
      }
    }
  }

  void begin(int gpu) {
    State& state = states_[at(gpu)];
    scribble(gpu);
    if (has_input(call(state.launch), gpu)) {
      for (int i = 0; i < plan_.gpus[at(gpu)].chunks[0] * kElements; ++i) {
        element(gpu, {.gpu = gpu, .buffer = Buffer::input}, i) = contribution(state.launch, gpu, i);
      }
    }
    state.threads.clear();
    for (int block = 0; block < static_cast<int>(plan_.gpus[at(gpu)].blocks.size()); ++block) {
      for (std::size_t number = 0; number < kThreads; ++number) {
        state.threads.push_back({.block = block, .number = number});
      }
    }
    state.is_running = true;
    end_if_done(gpu);
  }

  void end_if_done(int gpu) {
    State& state = states_[at(gpu)];
    for (const Thread& thread : state.threads) {
      if (thread.next < plan_.gpus[at(gpu)].blocks[at(thread.block)].size()) {
        return;
      }
    }
    is_right_ = is_right_ && has_result(gpu, state.launch);
    scribble(gpu);
    state.is_running = false;
    ++state.launch;
  }

  bool step(int gpu, Thread& thread) {
    const ThreadBlock& block = plan_.gpus[at(gpu)].blocks[at(thread.block)];
    if (thread.next == block.size()) {
      return false;
    }
    const PlanOperation& operation = block[thread.next];
    switch (traits_of(operation.type).effect) {
      case Effect::joins:
        return join(gpu, thread, operation);
      case Effect::raises:
      case Effect::lowers:
        return count(gpu, thread, operation);
      case Effect::moves:
        for (std::size_t i = 0; i < operation.targets.size(); ++i) {
          for (int e = 0; e < operation.targets[i].chunks * kElements; ++e) {
            if (is_of(thread, e)) {
              element(gpu, operation.targets[i], e) = element(gpu, operation.sources[i], e);
            }
          }
        }
        break;
      case Effect::adds:
        for (int e = 0; e < operation.targets[0].chunks * kElements; ++e) {
          if (is_of(thread, e)) {
            std::uint64_t sum = 0;
            for (const PlanPlace& source : operation.sources) {
              sum += element(gpu, source, e);
            }
            for (const PlanPlace& target : operation.targets) {
              element(gpu, target, e) = sum;
            }
          }
        }
        break;
    }
    ++thread.next;
    return true;
  }
  static bool is_of(const Thread& thread, int index) {
    return at(index) % kThreads == thread.number;
  }

  // Waits for all threads of the block and, at a barrier, of the other blocks.
  bool join(int gpu, const Thread& one, const PlanOperation& operation) {
    std::vector<Thread*> together;
    std::size_t blocks = 0;
    for (Thread& thread : states_[at(gpu)].threads) {
      const ThreadBlock& block = plan_.gpus[at(gpu)].blocks[at(thread.block)];
      const bool is_there =
          thread.next < block.size() && (operation.type == OperationType::nop
                                             ? thread.block == one.block && thread.next == one.next
                                             : block[thread.next].type == OperationType::barrier &&
                                                   block[thread.next].barrier == operation.barrier);
      if (is_there) {
        together.push_back(&thread);
        blocks += thread.number == 0 ? 1 : 0;
      }
    }
    const std::size_t needed =
        operation.type == OperationType::nop ? 1 : at(operation.barrier_blocks);
    if (blocks < needed || together.size() < needed * kThreads) {
      return false;
    }
    for (Thread* thread : together) {
      ++thread->next;
    }
    return true;
  }

  // Each counter has a thread; threads without a counter continue.
  bool count(int gpu, Thread& thread, const PlanOperation& operation) {
    const std::size_t counters = operation.channels.size() + operation.semaphores.size();
    while (thread.counted < counters && thread.counted % kThreads != thread.number) {
      ++thread.counted;
    }
    if (thread.counted < counters) {
      const bool lowers = traits_of(operation.type).effect == Effect::lowers;
      if (lowers && operation.semaphores.empty()) {
        return await(states_[at(gpu)], thread, at(operation.channels[thread.counted]));
      }
      int* const counter = counter_of(gpu, operation, thread.counted);
      if (lowers) {
        if (*counter == 0) {
          return false;
        }
        --*counter;
      } else if (counter != nullptr) {
        ++*counter;
      }
      ++thread.counted;
      return true;
    }
    thread.counted = 0;
    ++thread.next;
    return true;
  }

  // The expected value of a wait is loaded and stored as an ordinary number: two threads may load
  // the same value.
  static bool await(State& state, Thread& thread, std::size_t channel) {
    switch (thread.stage) {
      case Stage::load:
        thread.expected = state.awaited[channel] + 1;
        thread.stage = Stage::store;
        return true;
      case Stage::store:
        state.awaited[channel] = thread.expected;
        thread.stage = Stage::spin;
        return true;
      case Stage::spin:
        break;
    }
    if (state.arrived[channel] < thread.expected) {
      return false;
    }
    thread.stage = Stage::load;
    ++thread.counted;
    return true;
  }

  // A semaphore, or the counter that a signal increments.
  int* counter_of(int gpu, const PlanOperation& operation, std::size_t index) {
    if (!operation.semaphores.empty()) {
      return &states_[at(gpu)].semaphores[at(operation.semaphores[index])];
    }
    const int channel = operation.channels[index];
    // The k-th channel to a GPU is paired with that GPU's k-th channel to this one.
    const int peer = plan_.gpus[at(gpu)].channels[at(channel)];
    int before = 0;
    for (int i = 0; i < channel; ++i) {
      before += plan_.gpus[at(gpu)].channels[at(i)] == peer ? 1 : 0;
    }
    const std::vector<int>& others = plan_.gpus[at(peer)].channels;
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (others[i] == gpu && before-- == 0) {
        return &states_[at(peer)].arrived[i];
      }
    }
    return nullptr;
  }

  Call call(int launch) const {
    return {.collective = plan_.collective,
            .ranks = ranks(),
            .root = plan_.root,
            .part = part(),
            .launch = launch};
  }

  bool has_result(int gpu, int launch) {
    for (int i = 0; i < plan_.gpus[at(gpu)].chunks[1] * kElements; ++i) {
      const std::optional<std::uint64_t> value = expected(call(launch), gpu, i);
      if (value && element(gpu, {.gpu = gpu, .buffer = Buffer::output}, i) != *value) {
        return false;
      }
    }
    return true;
  }

  const ExecutionPlan& plan_;
  std::mt19937 random_;
  int launches_;
  std::vector<State> states_;
  bool is_right_ = true;
};

}  // namespace

bool runs_right(const ExecutionPlan& plan, std::uint32_t seed, int launches) {
  return Machine(plan, seed, launches).run();
}

}  // namespace unisono::mscclpp::testing
