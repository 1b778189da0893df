// The driver's interface to a library under test: one call of one operation, ready to be timed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "unisono/types.hpp"

namespace unisono::bench {

// The collectives, and `exchange`: each rank sends to its neighbour (rank xor 1) and receives
// from it.
enum class Kind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  exchange,
  broadcast,
  reduce,
  gather,
  scatter
};

// The kind of buffers and of the call. Only unisono has more than `ordinary`.
enum class Memory {
  ordinary,    // anonymous private pages, the usual call
  registered,  // memory the library allocated for this purpose, the usual call
  persistent   // ordinary memory; checks and choices made once, before the timed calls
};

// One row. `count` is the vector (all_reduce, broadcast, reduce, exchange), or one rank's part of
// it (all_gather, reduce_scatter, gather, scatter), or one pair's part (all_to_all).
struct Operation {
  Kind kind = Kind::barrier;
  Dtype dtype = Dtype::f32;
  std::size_t count = 0;
  Memory memory = Memory::ordinary;
  void* in = nullptr;
  void* out = nullptr;
};
inline constexpr int kRoot = 0;

// Memory of a row; released when the last copy of the pointer goes.
using Buffer = std::shared_ptr<void>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The operation as a function without arguments; empty if the library does not offer it.
  virtual std::function<void()> bind(const Operation& operation) = 0;
  virtual Buffer allocate(std::size_t bytes, Memory memory);  // default: anonymous private pages
};

struct LaunchOptions {
  std::string directory;  // control file, command and answer pipes
  int rank = -1;          // of ranks that no launcher of the library starts
  int size = -1;
};

// Defined by the one library that the program is built for.
std::unique_ptr<Peer> make_peer(const LaunchOptions& options);

}  // namespace unisono::bench
