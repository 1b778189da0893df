#include "base/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>

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

std::string difference_of_hosts(const std::string& one, const std::string& other) {
  constexpr std::array<const char*, 3> kParts = {"boots", "network namespaces", "users"};
  std::string_view rest = one;
  std::string_view other_rest = other;
  const auto told = [](const char* what, std::string_view its, std::string_view others) {
    const auto word = [](std::string_view text) {
      return text.empty() ? std::string("none") : std::string(text);
    };
    return std::string(what) + ", " + word(its) + " and " + word(others);
  };
  const auto next = [](std::string_view& text) {
    const std::string_view part = text.substr(0, text.find('/'));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    return part;
  };
  for (const char* const what : kParts) {
    const std::string_view its = next(rest);
    const std::string_view others = next(other_rest);
    if (its != others) {
      return told(what, its, others);
    }
  }
  return rest == other_rest ? "" : told("UNISONO_HOST", rest, other_rest);
}

}  // namespace unisono
