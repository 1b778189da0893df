#include "topology/presets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/words.h"
#include "topology/preset_list.h"

namespace unisono {
namespace {

constexpr std::array<const Preset*, 22> kPresets = {
    &machines::dgx_a100,        &machines::dgx_a100_40gb,
    &machines::dgx_h100,        &machines::hgx_h800,
    &machines::hgx_h20,         &machines::hgx_h200,
    &machines::hgx_b200,        &machines::hgx_b300,
    &machines::gh200_nvl32,     &machines::gb200_nvl72,
    &machines::gb300_nvl72,     &machines::mi300x_platform,
    &machines::mi355x_platform, &machines::tpu_v5p,
    &machines::tpu_v6e,         &machines::l40s_server,
    &machines::pcie_server,     &machines::ethernet_cluster,
    &machines::fat_tree,        &machines::rail_optimised,
    &machines::dragonfly,       &machines::torus};

std::string range_text(const PresetParameter& parameter) {
  return std::to_string(parameter.least) + ".." + std::to_string(parameter.most);
}

Parsed<Topology> unknown_parameter(const Preset& preset, const std::string& name) {
  std::string known;
  for (const PresetParameter& parameter : preset.parameters) {
    known += (known.empty() ? "" : ", ") + std::string(parameter.name);
  }
  return Parsed<Topology>::failure(in_quotes(name) + " is not a parameter of " +
                                       std::string(preset.name) + ", which has " + known,
                                   name);
}

}  // namespace

std::span<const Preset* const> presets() {
  return kPresets;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [name](const Preset* preset) { return preset->name == name; });
  return found == kPresets.end() ? nullptr : *found;
}

Parsed<Topology> make_preset(std::string_view name, std::span<const PresetValue> values) {
  const Preset* preset = find_preset(name);
  if (preset == nullptr) {
    std::vector<std::string_view> names;
    for (const Preset* known : kPresets) {
      names.push_back(known->name);
    }
    return Parsed<Topology>::failure(
        "there is no preset " + in_quotes(name) + suggestion(name, names), "preset");
  }
  std::vector<std::int64_t> chosen;
  for (const PresetParameter& parameter : preset->parameters) {
    chosen.push_back(parameter.fallback);
  }
  for (const PresetValue& given : values) {
    const auto found = std::find_if(
        preset->parameters.begin(), preset->parameters.end(),
        [&given](const PresetParameter& parameter) { return parameter.name == given.name; });
    if (found == preset->parameters.end()) {
      return unknown_parameter(*preset, given.name);
    }
    if (given.value < found->least || given.value > found->most) {
      return Parsed<Topology>::failure(
          given.name + "=" + std::to_string(given.value) + " is not in " + range_text(*found),
          given.name);
    }
    chosen[static_cast<std::size_t>(found - preset->parameters.begin())] = given.value;
  }
  if (std::string objection = preset->objection == nullptr ? "" : preset->objection(chosen);
      !objection.empty()) {
    return Parsed<Topology>::failure(std::move(objection), "preset");
  }
  const std::int64_t ranks = preset->ranks(chosen);
  if (ranks > kMostTopologyRanks) {
    return Parsed<Topology>::failure(std::to_string(ranks) + " ranks are more than the " +
                                         std::to_string(kMostTopologyRanks) +
                                         " that a topology can have",
                                     "preset");
  }
  Topology topology = preset->build(chosen);
  topology.name = std::string(preset->name);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    topology.name += (i == 0 ? ":" : ",") + std::string(preset->parameters[i].name) + "=" +
                     std::to_string(chosen[i]);
  }
  topology.source = std::string(preset->source);
  return Parsed<Topology>::success(std::move(topology));
}

Parsed<Topology> make_preset(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::vector<PresetValue> values;
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    const std::size_t equals = word.find('=');
    PresetValue value{.name = std::string(word.substr(0, equals))};
    const std::string_view number = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value.value);
    if (error != std::errc() || end != number.data() + number.size()) {
      return Parsed<Topology>::failure(
          in_quotes(word) + " is not NAME=NUMBER, such as " + in_quotes("nodes=4"), value.name);
    }
    const bool again = std::any_of(values.begin(), values.end(), [&](const PresetValue& known) {
      return known.name == value.name;
    });
    if (again) {
      return Parsed<Topology>::failure(in_quotes(value.name) + " comes twice", value.name);
    }
    values.push_back(std::move(value));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return make_preset(text.substr(0, colon), values);
}

}  // namespace unisono
