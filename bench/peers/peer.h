// Interface between the driver and a library under test: prepares one operation as a call to be
// timed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "unisono/types.hpp"

namespace unisono::bench {

// The collectives, and two calls between neighbours (rank xor 1): `exchange`, in which each rank
// sends a message and receives one, and `window`, in which it posts kWindow receives and kWindow
// sends of one message each, and then waits for all of them.
enum class Kind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  exchange,
  window,
  broadcast,
  reduce,
  gather,
  scatter
};

// Kind of buffers and call. Only unisono supports kinds other than `ordinary`.
enum class Memory {
  ordinary,    // anonymous private pages, the normal call
  registered,  // memory that the library allocated for this purpose, the normal call
  persistent   // ordinary memory; checks and algorithm choice happen once, before the timed calls
};

// One row. `count` is the number of elements in the vector (all_reduce, broadcast, reduce,
// exchange), in one message (window), in one rank's part (all_gather, reduce_scatter, gather,
// scatter) or in one pair's part (all_to_all).
struct Operation {
  Kind kind = Kind::barrier;
  Dtype dtype = Dtype::f32;
  std::size_t count = 0;
  Memory memory = Memory::ordinary;
  void* in = nullptr;
  void* out = nullptr;
};
inline constexpr int kRoot = 0;
inline constexpr std::size_t kWindow = 64;

// Memory of a row, released with the last copy of the pointer.
using Buffer = std::shared_ptr<void>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the operation as a function without arguments; empty if the library does not offer it.
  virtual std::function<void()> bind(const Operation& operation) = 0;
  virtual Buffer allocate(std::size_t bytes, Memory memory);  // default: anonymous private pages
};

struct LaunchOptions {
  std::string directory;  // control file, command and answer pipes
  int rank = -1;          // given if the library has no launcher
  int size = -1;
};

// Defined by the library for which the program is built.
std::unique_ptr<Peer> make_peer(const LaunchOptions& options);

}  // namespace unisono::bench
