// Describes this host with hwloc. hwloc knows the devices and their connections, but mostly not the
// speed of links. So links have typical figures, and the source of the topology says so.
#include "cli/failure.h"
#include "topo/topo.h"

#ifdef UNISONO_HAS_HWLOC

#include <fmt/format.h>
#include <hwloc.h>

#include <map>
#include <memory>
#include <vector>

#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

// Between two cores of a package through its shared cache, and between packages.
constexpr double kCoreLatencyUs = 0.05;
constexpr double kCoreBytesPerUs = 10e3;
constexpr double kPackageLatencyUs = 0.1;
constexpr double kPackageBytesPerUs = 40e3;
// PCIe 4.0 x16, if hwloc does not know the speed of the slot.
constexpr double kPcieLatencyUs = 1.0;
constexpr double kPcieBytesPerUs = 31.5e3;

class Discovery {
 public:
  Discovery() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
      throw Error(ErrorCode::resource, "hwloc cannot start\ncheck that enough memory is free");
    }
    host_.reset(raw);
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(raw) != 0) {
      throw Error(ErrorCode::resource, "hwloc cannot read this host\ncheck that /sys is mounted");
    }
  }

  Topology run() {
    topology_.name = "this host";
    topology_.source = "hwloc; figures of links unknown to hwloc are typical values, not measured";
    node_ = add_device(topology_, "host", DeviceKind::node);
    add_packages();
    add_devices_on_bus();
    if (!gpus_.empty()) {
      topology_.ranks = gpus_;
    }
    return std::move(topology_);
  }

 private:
  struct Free {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  };

  void add_packages() {
    const int count = hwloc_get_nbobjs_by_type(host_.get(), HWLOC_OBJ_PACKAGE);
    for (int i = 0; i < (count > 0 ? count : 1); ++i) {
      sockets_.push_back(
          add_device(topology_, fmt::format("socket{}", i), DeviceKind::socket, node_));
      for (int other = 0; other < i; ++other) {
        connect(topology_, sockets_[static_cast<std::size_t>(other)], sockets_.back(),
                kPackageLatencyUs, kPackageBytesPerUs);
      }
    }
    const int cores = hwloc_get_nbobjs_by_type(host_.get(), HWLOC_OBJ_CORE);
    const auto type = cores > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    for (int i = 0; i < hwloc_get_nbobjs_by_type(host_.get(), type); ++i) {
      const hwloc_obj_t object = hwloc_get_obj_by_type(host_.get(), type, static_cast<unsigned>(i));
      const int socket = socket_of(object);
      topology_.ranks.push_back(
          add_device(topology_, fmt::format("core{}", i), DeviceKind::core, socket));
      connect(topology_, topology_.ranks.back(), socket, kCoreLatencyUs, kCoreBytesPerUs);
    }
  }

  int socket_of(hwloc_obj_t object) const {
    const hwloc_obj_t package =
        hwloc_get_ancestor_obj_by_type(host_.get(), HWLOC_OBJ_PACKAGE, object);
    const std::size_t index = package == nullptr ? 0 : package->logical_index;
    return sockets_[index < sockets_.size() ? index : 0];
  }

  void add_devices_on_bus() {
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_osdev(host_.get(), object)) != nullptr) {
      const auto kind = object->attr->osdev.type;
      const bool gpu = kind == HWLOC_OBJ_OSDEV_COPROC || kind == HWLOC_OBJ_OSDEV_GPU;
      const bool nic = kind == HWLOC_OBJ_OSDEV_NETWORK || kind == HWLOC_OBJ_OSDEV_OPENFABRICS;
      if ((!gpu && !nic) || !pci_seen_.emplace(object->parent, object->name).second) {
        continue;  // another name of the same device
      }
      const hwloc_obj_t anchor = hwloc_get_non_io_ancestor_obj(host_.get(), object);
      const int socket = socket_of(anchor);
      const int device =
          add_device(topology_, object->name, gpu ? DeviceKind::gpu : DeviceKind::nic, node_);
      connect(topology_, device, socket, kPcieLatencyUs, pcie_rate(object->parent));
      if (gpu) {
        gpus_.push_back(device);
      }
    }
  }

  // The rate of the slot, in GB/s, if hwloc has found it.
  static double pcie_rate(hwloc_obj_t object) {
    if (object != nullptr && object->type == HWLOC_OBJ_PCI_DEVICE &&
        object->attr->pcidev.linkspeed > 0) {
      return static_cast<double>(object->attr->pcidev.linkspeed) * 1e3;
    }
    return kPcieBytesPerUs;
  }

  std::unique_ptr<hwloc_topology, Free> host_;
  Topology topology_;
  int node_ = 0;
  std::vector<int> sockets_;
  std::vector<int> gpus_;
  std::map<hwloc_obj_t, std::string> pci_seen_;
};

}  // namespace

Topology discover_host() {
  return Discovery().run();
}

}  // namespace unisono::cli

#else

namespace unisono::cli {

Topology discover_host() {
  throw UsageError("this unisono cannot discover the host", "it was built without hwloc",
                   "install libhwloc-dev and build again");
}

}  // namespace unisono::cli

#endif
