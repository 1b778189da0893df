// One unit of a ShardedState: flat, padded vectors, and this rank's part of each.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "parallel/floats.h"
#include "unisono/parallel/sharded_state.hpp"

namespace unisono::parallel {

// Elements in f32, bf16 or f16; may be empty.
class Elements {
 public:
  void make(Dtype dtype, std::size_t count) {
    dtype_ = dtype;
    bytes_.assign(count * size_of(dtype), std::byte{});
  }
  void free() { std::vector<std::byte>().swap(bytes_); }
  bool empty() const { return bytes_.empty(); }
  std::span<std::byte> bytes() { return bytes_; }
  std::size_t size_bytes() const { return bytes_.size(); }
  std::byte* at(std::size_t element) { return bytes_.data() + element * size_of(dtype_); }
  float get(std::size_t element) const;
  void set(std::size_t element, float value);

 private:
  Dtype dtype_ = Dtype::f32;
  std::vector<std::byte> bytes_;
};

struct FlatUnit {
  std::vector<Parameter> list = {};
  std::size_t count = 0;   // without padding
  std::size_t padded = 0;  // a multiple of the number of ranks
  std::size_t share = 0;   // elements per rank

  Elements parameters = {};  // whole; in stage 3 only while they are used
  Elements shard = {};       // stage 3: this rank's part of the parameters
  Elements gradients = {};   // whole; in stages 2 and 3 only until they are reduced
  Elements reduced = {};     // stages 2 and 3: this rank's part of the gradients
  // The elements that this rank updates.
  std::vector<float> master = {};  // empty if the parameters are f32
  std::vector<float> mean = {};
  std::vector<float> variance = {};

  // For sums over a tree: the leaves of each rank, this rank's running sum, and the sum in
  // progress.
  std::vector<Leaves> leaves = {};
  std::optional<TreeSum> tree = {};
  TreeSum::Scattering scattering = {};

  Request gathering = {};
  SumOnce sum = {};  // the operation of `reducing`
  Request reducing = {};
  bool is_gathering = false;
  bool is_ready = false;

  // Calls body(parameter, first, last) for each parameter in [first, last) of the unit.
  template <typename Body>
  void for_each_in(std::size_t first, std::size_t last, const Body& body) const {
    std::size_t begin = 0;
    for (const Parameter& parameter : list) {
      const std::size_t end = begin + parameter.count;
      const std::size_t from = begin < first ? first : begin;
      const std::size_t to = end < last ? end : last;
      if (from < to) {
        body(parameter, from, to);
      }
      begin = end;
    }
  }
};

}  // namespace unisono::parallel
