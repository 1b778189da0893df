#include "memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "driver.h"

namespace fake_device {
namespace {

constexpr std::size_t kArena = std::size_t{64} << 20;
constexpr std::size_t kLeast = 512;
constexpr int kGarbage = 0x5A;

struct Block {
  std::size_t bytes = 0;
  c10::Stream stream = default_stream(0);  // the current stream of the allocating thread
  std::vector<c10::Stream> others = {};
};

struct Freed {
  void* memory = nullptr;
  std::vector<void*> events = {};
};

struct Arena {
  std::byte* next = nullptr;
  std::size_t left = 0;
};

struct Less {
  using Key = std::pair<c10::Stream, std::size_t>;
  static auto order(const Key& key) {
    return std::tuple(key.first.device_index(), key.first.id(), key.second);
  }
  bool operator()(const Key& a, const Key& b) const { return order(a) < order(b); }
};

class Blocks {
 public:
  static Blocks& all() {
    static auto* const blocks = new Blocks;
    return *blocks;
  }

  void* take(std::size_t asked) {
    std::size_t bytes = kLeast;
    while (bytes < asked) {
      bytes *= 2;
    }
    const std::lock_guard lock(mutex_);
    const c10::Stream stream = current_stream(current_device());
    void* const memory = take_freed(stream, bytes);
    void* const taken = memory == nullptr ? take_new(stream.device_index(), bytes) : memory;
    used_[taken] = {.bytes = bytes, .stream = stream};
    return taken;
  }

  void note_use(void* memory, c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    if (const auto at = used_.find(memory); at != used_.end() && at->second.stream != stream) {
      at->second.others.push_back(stream);
    }
  }

  void give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const Block block = std::move(used_.extract(memory).mapped());
    Freed freed{.memory = memory};
    for (const c10::Stream stream : block.others) {
      record(&freed.events.emplace_back(nullptr), stream);
      fake_device::block(freed.events.back(), block.stream);
    }
    enqueue(block.stream, [memory, bytes = block.bytes] { std::memset(memory, kGarbage, bytes); });
    freed_[{block.stream, block.bytes}].push_back(std::move(freed));
  }

 private:
  // Prefers the block that was freed last, as real caches do.
  void* take_freed(c10::Stream stream, std::size_t bytes) {
    const Relaxed relaxed;
    auto& list = freed_[{stream, bytes}];
    for (auto at = list.rbegin(); at != list.rend(); ++at) {
      if (std::all_of(at->events.begin(), at->events.end(), is_over)) {
        std::for_each(at->events.begin(), at->events.end(), destroy);
        void* const memory = at->memory;
        list.erase(std::next(at).base());
        return memory;
      }
    }
    return nullptr;
  }

  void* take_new(c10::DeviceIndex device, std::size_t bytes) {
    Arena& arena = arenas_.at(static_cast<std::size_t>(device));
    if (bytes > arena.left) {
      arena.left = std::max(bytes, kArena);
      arena.next = static_cast<std::byte*>(allocate(device, arena.left));
    }
    void* const memory = arena.next;
    arena.next += bytes;
    arena.left -= bytes;
    return memory;
  }

  std::mutex mutex_;
  std::map<void*, Block> used_;
  std::map<std::pair<c10::Stream, std::size_t>, std::list<Freed>, Less> freed_;  // by bytes, too
  std::array<Arena, kDevices> arenas_ = {};
};

void give_back(void* memory) {
  Blocks::all().give_back(memory);
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = bytes == 0 ? nullptr : Blocks::all().take(bytes);
    return {memory, memory, memory == nullptr ? [](void*) {} : &give_back,
            c10::Device(kFake, current_device())};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    synchronize(current_stream(current_device()));
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::Allocator* allocator() {
  static auto* const one = new Allocator;
  return one;
}

void note_use(const void* memory, c10::Stream stream) {
  Blocks::all().note_use(const_cast<void*>(memory), stream);
}

}  // namespace fake_device
