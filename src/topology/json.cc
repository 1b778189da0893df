#include "topology/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/words.h"
#include "topology/presets.h"

namespace unisono {
namespace {

// Large enough for every network, and small enough that sums of times stay finite.
constexpr double kMostLatencyUs = 1e15;
constexpr double kLeastShare = 1e-3;
constexpr double kMostBytesPerUs = 1e15;
constexpr double kLeastBytesPerUs = 1e-6;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 3> kTimes = {{{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}}};
constexpr std::array<Unit, 4> kRates = {
    {{"gb_per_s", 1e3}, {"gbit_per_s", 125}, {"gib_per_s", 1073.741824}, {"mb_per_s", 1}}};

// The direction of a pair that a figure describes.
enum class Ways : std::uint8_t { one, each };

struct Figures {
  double latency_us = -1;
  double bytes_per_us = -1;
  Ways ways = Ways::one;
};

std::string known_units(std::span<const Unit> units) {
  std::string text;
  for (const Unit& unit : units) {
    text += (text.empty() ? "" : ", ") + std::string(unit.name);
  }
  return text;
}

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(),
                                  [name](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

void read_latency(const JsonNode& link, const std::string& key, Figures& figures) {
  const JsonNode value = link.at(key);
  const std::string unit_name = key.substr(std::string_view("latency_").size());
  const Unit* unit = find_unit(kTimes, unit_name);
  if (unit == nullptr) {
    value.fail("unknown unit " + in_quotes(unit_name) + "; latency_ must be followed by one of " +
               known_units(kTimes));
  }
  if (figures.latency_us >= 0) {
    value.fail("a second latency");
  }
  figures.latency_us = value.number(0, kMostLatencyUs / unit->factor) * unit->factor;
}

void read_bandwidth(const JsonNode& link, const std::string& key, Figures& figures) {
  const JsonNode value = link.at(key);
  std::string_view rest = std::string_view(key).substr(std::string_view("bandwidth_").size());
  if (rest.ends_with("_each_way")) {
    figures.ways = Ways::each;
    rest.remove_suffix(std::string_view("_each_way").size());
  } else if (rest.ends_with("_one_way")) {
    figures.ways = Ways::one;
    rest.remove_suffix(std::string_view("_one_way").size());
  } else {
    value.fail("the key must end with _each_way or _one_way, to state its direction");
  }
  const Unit* unit = find_unit(kRates, rest);
  if (unit == nullptr) {
    value.fail("unknown unit " + in_quotes(rest) + "; bandwidth_ must be followed by one of " +
               known_units(kRates));
  }
  if (figures.bytes_per_us >= 0) {
    value.fail("a second bandwidth");
  }
  figures.bytes_per_us = value.number(0, kMostBytesPerUs / unit->factor) * unit->factor;
  if (!(figures.bytes_per_us > 0)) {
    value.fail("the bandwidth must be above zero");
  }
  if (figures.bytes_per_us < kLeastBytesPerUs) {
    value.fail("the bandwidth is below one byte per second");
  }
}

Figures read_figures(const JsonNode& link) {
  Figures figures;
  for (const std::string& key : link.keys()) {
    if (key.starts_with("latency_")) {
      read_latency(link, key, figures);
    } else if (key.starts_with("bandwidth_")) {
      read_bandwidth(link, key, figures);
    } else if (key != "from" && key != "to") {
      link.fail("unknown key " + in_quotes(key) +
                "; a link has from, to, latency_UNIT and bandwidth_UNIT_DIRECTION");
    }
  }
  if (figures.latency_us < 0) {
    link.fail("the latency is missing: add a member such as latency_us");
  }
  if (figures.bytes_per_us < 0) {
    link.fail("the bandwidth is missing: add a member such as bandwidth_gb_per_s_each_way");
  }
  return figures;
}

class Reader {
 public:
  explicit Reader(const JsonNode& document) : document_(document) {}

  Topology read() {
    document_.allow_only(
        {"format", "name", "source", "overhead_us", "protocols", "devices", "links", "ranks"});
    if (const auto name = document_.find("name")) {
      topology_.name = name->text();
    }
    if (const auto source = document_.find("source")) {
      topology_.source = source->text();
    }
    if (const auto overhead = document_.find("overhead_us")) {
      topology_.overhead_us = overhead->number(0, kMostLatencyUs);
    }
    if (const auto protocols = document_.find("protocols")) {
      read_protocols(*protocols);
    }
    read_devices(document_.at("devices"));
    read_links(document_.at("links"));
    read_ranks(document_.at("ranks"));
    return std::move(topology_);
  }

  // Returns the document's position for a problem that check() has found: one entry of the document
  // may be two links.
  std::string place(const std::string& position) const {
    const std::string_view list = "/links/";
    if (!position.starts_with(list)) {
      return position;
    }
    return std::string(list) +
           std::to_string(entry_of_link_.at(std::stoul(position.substr(list.size()))));
  }

 private:
  void read_protocols(const JsonNode& protocols) {
    constexpr std::size_t kMostProtocols = 16;
    if (protocols.size() > kMostProtocols) {
      protocols.fail("there are more than 16 protocols");
    }
    for (std::size_t i = 0; i < protocols.size(); ++i) {
      const JsonNode one = protocols.item(i);
      one.allow_only({"name", "start_us", "message_us", "share"});
      topology_.protocols.push_back({.name = one.at("name").text(),
                                     .start_us = one.at("start_us").number(0, kMostLatencyUs),
                                     .message_us = one.at("message_us").number(0, kMostLatencyUs),
                                     .share = one.at("share").number(0, 1)});
      if (topology_.protocols.back().share < kLeastShare) {
        one.at("share").fail("a protocol must use at least a thousandth of the bandwidth");
      }
    }
  }

  void read_devices(const JsonNode& devices) {
    const std::size_t count = devices.size();
    for (std::size_t i = 0; i < count; ++i) {
      const JsonNode device = devices.item(i);
      device.allow_only({"name", "kind", "inside", "reduces"});
      const JsonNode kind = device.at("kind");
      const auto parsed = parse_device_kind(kind.text());
      if (!parsed) {
        kind.fail(in_quotes(kind.text()) +
                  " is not a kind of device: node, socket, core, gpu, nic, switch, group");
      }
      add_device(topology_, device.at("name").text(), *parsed);
      index_.emplace(topology_.devices.back().name, static_cast<int>(i));
      if (const auto reduces = device.find("reduces")) {
        if (*parsed != DeviceKind::network_switch) {
          reduces->fail("only a switch can reduce");
        }
        topology_.devices.back().reduces = reduces->number(0, 1);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto inside = devices.item(i).find("inside")) {
        topology_.devices[i].inside = device_named(*inside);
      }
    }
  }

  void read_links(const JsonNode& links) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      const JsonNode link = links.item(i);
      const Figures figures = read_figures(link);
      const int from = device_named(link.at("from"));
      const int to = device_named(link.at("to"));
      add_way(link, from, to);
      if (figures.ways == Ways::each) {
        add_way(link, to, from);
      }
      if (figures.ways == Ways::each) {
        connect(topology_, from, to, figures.latency_us, figures.bytes_per_us);
      } else {
        topology_.links.push_back({.from = from,
                                   .to = to,
                                   .latency_us = figures.latency_us,
                                   .bytes_per_us = figures.bytes_per_us});
      }
      entry_of_link_.resize(topology_.links.size(), i);
    }
  }

  // Routes use one link, so a parallel link would never carry anything.
  void add_way(const JsonNode& link, int from, int to) {
    const auto way = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32U |
                     static_cast<std::uint32_t>(to);
    if (from != to && !ways_.insert(way).second) {  // check() rejects a link to itself
      const auto name = [this](int device) {
        return in_quotes(topology_.devices[static_cast<std::size_t>(device)].name);
      };
      link.fail("a second link from " + name(from) + " to " + name(to) +
                "; write parallel cables as one link with their sum");
    }
  }

  void read_ranks(const JsonNode& ranks) {
    const std::size_t count = ranks.size();
    if (count > static_cast<std::size_t>(kMostTopologyRanks)) {
      ranks.fail(std::to_string(count) + " ranks are more than the " +
                 std::to_string(kMostTopologyRanks) + " that a topology can have");
    }
    for (std::size_t i = 0; i < count; ++i) {
      topology_.ranks.push_back(device_named(ranks.item(i)));
    }
  }

  int device_named(const JsonNode& node) const {
    const auto found = index_.find(node.text());
    if (found == index_.end()) {
      node.fail("there is no device " + in_quotes(node.text()));
    }
    return found->second;
  }

  const JsonNode& document_;
  Topology topology_;
  std::unordered_map<std::string, int> index_;
  std::vector<std::size_t> entry_of_link_;
  std::unordered_set<std::uint64_t> ways_;  // pairs of devices that already have a link
};

Topology read_preset(const JsonNode& document) {
  document.allow_only({"format", "preset", "parameters"});
  const JsonNode preset = document.at("preset");
  std::vector<PresetValue> values;
  std::optional<JsonNode> parameters = document.find("parameters");
  if (parameters) {
    constexpr std::size_t kMostParameters = 64;
    if (parameters->keys().size() > kMostParameters) {
      parameters->fail("more than 64 parameters");
    }
    for (const std::string& key : parameters->keys()) {
      values.push_back({key, static_cast<std::int64_t>(parameters->at(key).whole(
                                 -1'000'000'000'000, 1'000'000'000'000))});
    }
  }
  Parsed<Topology> made = make_preset(preset.text(), values);
  if (!made) {
    const bool of_parameter = parameters && parameters->find(made.position).has_value();
    (of_parameter ? parameters->at(made.position) : preset).fail(made.message);
  }
  return std::move(*made.value);
}

Topology read_document(const JsonNode& document) {
  const JsonNode format = document.at("format");
  if (format.text() != kTopologyFormat) {
    format.fail("unknown format " + in_quotes(format.text()) + ", this reads " +
                std::string(kTopologyFormat));
  }
  if (document.find("preset")) {
    return read_preset(document);
  }
  Reader reader(document);
  Topology topology = reader.read();
  if (const auto found = check(topology)) {
    throw JsonProblem{found->message, reader.place(found->position)};
  }
  return topology;
}

// Writes GB/s, or MB/s if only MB/s reads back as the same number.
std::string bandwidth_text(double bytes_per_us, bool each_way) {
  const bool exact = bytes_per_us / 1e3 * 1e3 == bytes_per_us;
  return std::string("\"bandwidth_") + (exact ? "gb" : "mb") + "_per_s_" +
         (each_way ? "each_way" : "one_way") +
         "\": " + json_number(exact ? bytes_per_us / 1e3 : bytes_per_us);
}

std::string link_text(const Topology& topology, const Link& link, bool each_way) {
  const auto name = [&](int device) {
    return json_string(topology.devices[static_cast<std::size_t>(device)].name);
  };
  return "{\"from\": " + name(link.from) + ", \"to\": " + name(link.to) +
         ", \"latency_us\": " + json_number(link.latency_us) + ", " +
         bandwidth_text(link.bytes_per_us, each_way) + "}";
}

std::string device_text(const Topology& topology, const Device& device) {
  std::string text = "{\"name\": " + json_string(device.name) + ", \"kind\": \"" +
                     std::string(to_string(device.kind)) + "\"";
  if (device.inside >= 0) {
    text += ", \"inside\": " +
            json_string(topology.devices[static_cast<std::size_t>(device.inside)].name);
  }
  if (device.reduces > 0) {
    text += ", \"reduces\": " + json_number(device.reduces);
  }
  return text + "}";
}

std::string protocol_text(const Protocol& protocol) {
  return "{\"name\": " + json_string(protocol.name) +
         ", \"start_us\": " + json_number(protocol.start_us) +
         ", \"message_us\": " + json_number(protocol.message_us) +
         ", \"share\": " + json_number(protocol.share) + "}";
}

}  // namespace

std::string to_json(const Topology& topology) {
  std::string text = "{\n  \"format\": \"" + std::string(kTopologyFormat) + "\",\n";
  text += "  \"name\": " + json_string(topology.name) + ",\n";
  text += "  \"source\": " + json_string(topology.source) + ",\n";
  text += "  \"overhead_us\": " + json_number(topology.overhead_us) + ",\n";
  const char* between = "\n    ";
  if (!topology.protocols.empty()) {
    text += "  \"protocols\": [";
    for (const Protocol& protocol : topology.protocols) {
      text += between + protocol_text(protocol);
      between = ",\n    ";
    }
    text += "\n  ],\n";
    between = "\n    ";
  }
  text += "  \"devices\": [";
  for (const Device& device : topology.devices) {
    text += between + device_text(topology, device);
    between = ",\n    ";
  }
  text += "\n  ],\n  \"links\": [";
  between = "\n    ";
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const Link* next = i + 1 < topology.links.size() ? &topology.links[i + 1] : nullptr;
    const bool each_way = link.reverse == static_cast<int>(i) + 1 && next != nullptr &&
                          next->latency_us == link.latency_us &&
                          next->bytes_per_us == link.bytes_per_us;
    text += between + link_text(topology, link, each_way);
    between = ",\n    ";
    i += each_way ? 1 : 0;
  }
  text += "\n  ],\n  \"ranks\": [";
  between = "\n    ";
  for (const int device : topology.ranks) {
    text += between + json_string(topology.devices[static_cast<std::size_t>(device)].name);
    between = ", ";
  }
  return text + "\n  ]\n}\n";
}

Parsed<Topology> parse_topology_json(std::string_view text) {
  return parse_json_as<Topology>(text, read_document);
}

}  // namespace unisono
