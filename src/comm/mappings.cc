#include "comm/mappings.h"

#include <fstream>
#include <sstream>

namespace unisono::comm {

std::string why_not_adoptable(std::uintptr_t begin, std::uintptr_t end) {
  std::ifstream maps("/proc/self/maps");  // sorted by address
  for (std::string line; begin < end && std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    char dash = 0;
    std::string access;
    std::string offset;
    std::string device;
    std::uint64_t inode = 0;
    std::string path;
    fields >> std::hex >> first >> dash >> last >> access >> offset >> device >> std::dec >> inode;
    std::getline(fields >> std::ws, path);
    if (last <= begin) {
      continue;
    }
    if (first > begin) {
      break;
    }
    if (inode != 0) {
      return "it is mapped from " + path;
    }
    if (access.size() < 4 || access[0] != 'r' || access[1] != 'w') {
      return "it is not readable and writable";
    }
    if (access[3] != 'p') {
      return "it is shared already";
    }
    begin = last;
  }
  return begin < end ? "not all of it is mapped" : "";
}

}  // namespace unisono::comm
