#include "base/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace unisono {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string host_identity(const std::string& machine) {
  struct stat name_space = {};
  static_cast<void>(::stat("/proc/self/ns/net", &name_space));
  return machine + "/" + std::to_string(name_space.st_ino) + "/" + std::to_string(::geteuid());
}

}  // namespace unisono
