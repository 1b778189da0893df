// NCCL's XML: CPUs, the tree of PCIe below each, GPUs, NICs, and NVLinks between GPUs.
#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "topo/foreign.h"

namespace unisono::cli {
namespace {

constexpr std::size_t kMostDevices = 10'000;
constexpr std::size_t kMostNvlinks = 100'000;

using Attributes = std::map<std::string, std::string, std::less<>>;

std::string text_of(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string() : found->second;
}

std::optional<double> number_of(const Attributes& attributes, std::string_view name) {
  const std::string text = text_of(attributes, name);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() && number >= 0 && number < 1e9
             ? std::optional(number)
             : std::nullopt;
}

// Converts "16.0 GT/s PCIe" and the lanes to bytes per microsecond in each direction; 0: unknown.
double slot_bytes_per_us(const Attributes& pci) {
  const double gigatransfers = number_of(pci, "link_speed").value_or(0);
  const double lanes = number_of(pci, "link_width").value_or(0);
  const double coding = gigatransfers > 5 ? 128.0 / 130 : 0.8;
  return gigatransfers * lanes * coding / 8 * 1e3;
}

class NcclReader {
 public:
  explicit NcclReader(std::string_view text) : text_(text), parser_(XML_ParserCreate(nullptr)) {}

  Parsed<Topology> read() {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), begin, end);
    XML_SetStartDoctypeDeclHandler(parser_.get(), begin_document_type);
    const XML_Status status =
        XML_Parse(parser_.get(), text_.data(), static_cast<int>(text_.size()), 1);
    if (status != XML_STATUS_OK && problem_.empty()) {
      fail(std::string("not valid XML: ") + XML_ErrorString(XML_GetErrorCode(parser_.get())));
    }
    if (problem_.empty()) {
      finish();
    }
    if (!problem_.empty()) {
      return Parsed<Topology>::failure("NCCL's topology: " + problem_,
                                       fmt::format("line {}", line_));
    }
    return Parsed<Topology>::success(std::move(topology_));
  }

 private:
  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };
  // An open element: the device of its children, and the figures of a PCIe slot.
  struct Open {
    std::string name = {};
    std::string busid = {};
    int device = -1;
    double slot = 0;
  };
  struct Gpu {
    int device = 0;
    double number = 0;  // its rank, or the number of the device
    double architecture = 0;
  };
  struct NvLink {
    std::string from = {};
    std::string to = {};
    double links = 0;
    std::string target_class = {};
    double bytes_per_us = 0;
    bool is_xgmi = false;
  };

  static void begin(void* user, const XML_Char* name, const XML_Char** list) {
    auto& reader = *static_cast<NcclReader*>(user);
    if (reader.problem_.empty()) {
      Attributes attributes;
      for (; *list != nullptr; list += 2) {
        attributes[list[0]] = list[1];
      }
      reader.open(name, attributes);
    }
  }
  static void end(void* user, const XML_Char*) {
    auto& reader = *static_cast<NcclReader*>(user);
    if (reader.problem_.empty()) {
      reader.open_.pop_back();
    }
  }

  // Only a document type can declare entities, which may grow without bound.
  static void begin_document_type(void* user, const XML_Char*, const XML_Char*, const XML_Char*,
                                  int) {
    static_cast<NcclReader*>(user)->fail("a document type is not allowed in it");
  }

  void fail(std::string problem) {
    problem_ = std::move(problem);
    line_ = XML_GetCurrentLineNumber(parser_.get());
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  int add(const std::string& name, DeviceKind kind) {
    std::string unique = name;
    for (int i = 2; !names_.insert(unique).second; ++i) {
      unique = fmt::format("{}.{}", name, i);
    }
    return add_device(topology_, unique, kind, host_);
  }

  void open(const std::string& name, const Attributes& attributes) {
    constexpr std::size_t kMostDepth = 64;
    if (open_.size() > kMostDepth || topology_.devices.size() > kMostDevices) {
      fail("too deep, or too many devices");
      return;
    }
    Open one = open_.empty() ? Open{} : open_.back();
    one.name = name;
    if (name == "system") {
      host_ = add("host", DeviceKind::node);
    } else if (host_ < 0) {
      fail("it does not begin with <system>");
      return;
    } else if (name == "cpu") {
      enter_host(text_of(attributes, "host_hash"));
      one.device = add("cpu" + text_of(attributes, "numaid"), DeviceKind::socket);
      std::vector<int>& cpus = cpus_[hash_];
      for (const int other : cpus) {
        connect(topology_, other, one.device, kSocketsUs, kSocketsBytesPerUs);
      }
      cpus.push_back(one.device);
    } else if (name == "pci") {
      open_slot(one, attributes);
    } else if (name == "gpu") {
      add_gpu(one, attributes);
    } else if (name == "net") {
      add_net(one, attributes);
    } else if (name == "nvlink" || name == "xgmi" || name == "c2c") {
      add_nvlink(one, name, attributes);
    } else if (name != "nic" && name != "pcilink") {
      leave_out(name);
    }
    open_.push_back(std::move(one));
  }

  // NVLinks may span hosts. Then each CPU names its host, and hosts have the same bus ids.
  void enter_host(const std::string& hash) {
    if (hosts_.empty()) {
      hosts_[hash] = host_;
    } else if (!hosts_.contains(hash)) {
      hosts_[hash] = add("host", DeviceKind::node);
    }
    hash_ = hash;
    host_ = hosts_[hash];
  }

  void leave_out(const std::string& name) {
    constexpr std::size_t kMostNames = 16;
    strange_[strange_.size() < kMostNames || strange_.contains(name) ? name : "..."] += 1;
  }

  // A bridge becomes a switch. A slot with a GPU or a NIC becomes the link of that device, which
  // its child elements add.
  void open_slot(Open& one, const Attributes& attributes) {
    if (one.device < 0) {
      fail("a <pci> outside a <cpu>");
      return;
    }
    const std::string busid = text_of(attributes, "busid");
    one.busid = hash_ + " " + busid;
    const double slot = slot_bytes_per_us(attributes);
    if (slot == 0) {
      ++unknown_slots_;
    }
    one.slot = slot > 0 ? slot : kSlotBytesPerUs;
    if (text_of(attributes, "class").starts_with("0x0604")) {
      const int bridge = add("pcie." + busid, DeviceKind::network_switch);
      connect(topology_, bridge, one.device, kSlotUs, one.slot);
      one.device = bridge;
    }
  }

  void add_gpu(Open& one, const Attributes& attributes) {
    if (one.busid.empty()) {
      fail("a <gpu> outside a <pci>");
      return;
    }
    if (gpus_.contains(one.busid)) {
      fail("two GPUs at the bus id" + one.busid.substr(one.busid.rfind(' ')));
      return;
    }
    const double dev = number_of(attributes, "dev").value_or(static_cast<double>(gpus_.size()));
    const int device = add(fmt::format("gpu{:g}", dev), DeviceKind::gpu);
    connect(topology_, device, one.device, kSlotUs, one.slot);
    gpus_[one.busid] = {.device = device,
                        .number = number_of(attributes, "rank").value_or(dev),
                        .architecture = number_of(attributes, "sm").value_or(0)};
    one.device = device;
  }

  void add_net(const Open& one, const Attributes& attributes) {
    if (one.device < 0) {
      ++lone_nets_;
      return;
    }
    const double megabits = number_of(attributes, "speed").value_or(0);
    const int nic = add(text_of(attributes, "name"), DeviceKind::nic);
    connect(topology_, nic, one.device, kSlotUs,
            one.slot > 0 ? one.slot : std::max(1.0, megabits / 8));
  }

  // NCCL's own figures are a fifth lower, because they are measured.
  void add_nvlink(const Open& one, const std::string& name, const Attributes& attributes) {
    const auto gpu = gpus_.find(one.busid);
    if (gpu == gpus_.end()) {
      fail(fmt::format("a <{}> outside a <gpu>", name));
      return;
    }
    if (name == "c2c") {
      leave_out(name);
      return;
    }
    if (nvlinks_.size() == kMostNvlinks) {
      fail("too many links");
      return;
    }
    const double architecture = gpu->second.architecture;
    const double each = name == "xgmi"        ? kXgmiBytesPerUs
                        : architecture >= 100 ? 2 * kNvlinkBytesPerUs
                        : architecture == 60  ? 20e3
                                              : kNvlinkBytesPerUs;
    nvlinks_.push_back({.from = one.busid,
                        .to = hash_ + " " + text_of(attributes, "target"),
                        .links = number_of(attributes, "count").value_or(1),
                        .target_class = text_of(attributes, "tclass"),
                        .bytes_per_us = each,
                        .is_xgmi = name == "xgmi"});
  }

  void finish() {
    host_ = hosts_.size() > 1 ? -1 : host_;  // NVSwitches then belong to none
    for (const NvLink& link : nvlinks_) {
      join(link);
    }
    std::vector<Gpu> gpus;
    for (const auto& [busid, gpu] : gpus_) {
      gpus.push_back(gpu);
    }
    std::ranges::sort(gpus, {}, [](const Gpu& gpu) { return std::pair(gpu.number, gpu.device); });
    for (const Gpu& gpu : gpus) {
      topology_.ranks.push_back(gpu.device);
    }
    if (gpus.empty()) {
      fail("no <gpu>");
      return;
    }
    topology_.name = "NCCL's topology";
    topology_.source = source();
  }

  void join(const NvLink& link) {
    const int from = gpus_.at(link.from).device;
    const double rate = std::max(1.0, link.links) * link.bytes_per_us;
    if (link.target_class.starts_with("0x0680")) {
      if (nvswitch_ < 0) {
        nvswitch_ = add("nvswitch", DeviceKind::network_switch);
      }
      switch_rates_[from] += rate;  // a GPU may list each of its switches
      return;
    }
    const auto to = gpus_.find(link.to);
    if (to == gpus_.end()) {
      ++lost_links_;
      return;
    }
    // Each of two GPUs lists the links between them.
    const auto [joined, is_new] = joined_.emplace(std::minmax(from, to->second.device), link.links);
    if (is_new) {
      connect(topology_, from, to->second.device, kNvlinkUs, rate);
    } else if (joined->second != link.links) {
      fail(fmt::format("{} links join two GPUs one way, and {} back", joined->second, link.links));
    }
  }

  std::string source() {
    for (const auto& [gpu, rate] : switch_rates_) {
      connect(topology_, gpu, nvswitch_, kNvlinkUs / 2, rate);
    }
    std::string text =
        fmt::format("NCCL's XML; assumed: {:g} GB/s between CPUs", kSocketsBytesPerUs / 1e3);
    if (!nvlinks_.empty()) {
      text += fmt::format(", {:g} each way of an {}", nvlinks_.front().bytes_per_us / 1e3,
                          nvlinks_.front().is_xgmi ? "xGMI link" : "NVLink");
    }
    if (unknown_slots_ > 0) {
      text += fmt::format(", {:g} of {} PCIe slots without a speed", kSlotBytesPerUs / 1e3,
                          unknown_slots_);
    }
    text += "; not included: the network beyond the NICs";
    if (lone_nets_ > 0) {
      text += fmt::format("; left out: {} NICs outside PCIe", lone_nets_);
    }
    if (lost_links_ > 0) {
      text +=
          fmt::format("; left out: {} links to devices that the file does not list", lost_links_);
    }
    for (const auto& [name, count] : strange_) {
      text += fmt::format("; left out: {} <{}>", count, name.substr(0, 20));
    }
    return text;
  }

  std::string_view text_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, Free> parser_;
  std::string problem_;
  std::size_t line_ = 1;
  Topology topology_;
  int host_ = -1;
  int nvswitch_ = -1;
  int unknown_slots_ = 0;
  int lone_nets_ = 0;
  int lost_links_ = 0;
  std::vector<Open> open_;
  std::string hash_;                              // of the host of the CPU that is open
  std::map<std::string, int> hosts_;              // by their hashes
  std::map<std::string, std::vector<int>> cpus_;  // by the hash of their host
  std::map<std::string, Gpu> gpus_;               // by host and bus id
  std::vector<NvLink> nvlinks_;
  std::map<int, double> switch_rates_;
  std::map<std::pair<int, int>, double> joined_;  // links of two devices
  std::set<std::string> names_;
  std::map<std::string, int> strange_;
};

}  // namespace

bool is_nccl_topology(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 16;
  text = text.substr(0, kLooked);
  return text.find("<system") != std::string_view::npos &&
         text.find("<cpu") != std::string_view::npos;
}

Parsed<Topology> read_nccl_topology(std::string_view text) {
  return NcclReader(text).read();
}

}  // namespace unisono::cli
