// A topology with parameters, of a machine that is well known.
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
  // `values` are those of the parameters, in their order.
  Topology (*build)(std::span<const std::int64_t> values);
  std::int64_t (*ranks)(std::span<const std::int64_t> values);
  // Why there is no such machine, though each value is in its range; empty: there is.
  // nullptr: there always is.
  std::string (*objection)(std::span<const std::int64_t> values) = nullptr;
};

}  // namespace unisono
