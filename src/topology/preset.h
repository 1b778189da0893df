// A topology of a well-known machine, with parameters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace unisono {

struct PresetParameter {
  std::string_view name;
  std::int64_t fallback = 1;
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::string_view help;
};

struct PresetValue {
  std::string name;
  std::int64_t value = 0;
};

struct Preset {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::span<const PresetParameter> parameters;
  // `values`: the values of the parameters, in order.
  Topology (*build)(std::span<const std::int64_t> values);
  std::int64_t (*ranks)(std::span<const std::int64_t> values);
  // Returns why there is no such machine although each value is in its range; empty if there is
  // one. May be nullptr: all values are allowed.
  std::string (*objection)(std::span<const std::int64_t> values) = nullptr;
};

}  // namespace unisono
