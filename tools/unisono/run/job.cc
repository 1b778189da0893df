#include "run/job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string_view>

#include "base/secret.h"

namespace unisono::cli {
namespace {

// Returns a port that is free now. Programs written for torchrun rendezvous there.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool found = fd >= 0 &&
                     ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) {
    ::close(fd);
  }
  return found ? ::ntohs(address.sin_port) : 29500;
}

// Returns a random port, because the free ports of another host are unknown. Ports below 32768 are
// not ephemeral.
int port_by_chance() {
  std::uint16_t chance = 0;
  fill_random(std::as_writable_bytes(std::span(&chance, 1)));
  return 20000 + chance % 12000;
}

std::vector<std::string> common_environment(int ranks, const std::string& transport) {
  // Removes variables that would override the launcher's.
  return {"UNISONO_RANK",
          "UNISONO_SIZE",
          "UNISONO_FILE",
          "UNISONO_ADDRESS",
          fmt::format("WORLD_SIZE={}", ranks),
          fmt::format("UNISONO_TRANSPORT={}", transport),
          fmt::format("UNISONO_JOB=run-{}", random_hex(8)),
          fmt::format("UNISONO_TOKEN={}", random_hex(16))};
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  const std::string full(name.data());
  return full.substr(0, full.find('.'));
}

std::vector<std::string> job_environment(int ranks, const std::string& transport) {
  std::vector<std::string> entries = common_environment(ranks, transport);
  entries.insert(entries.end(), {fmt::format("LOCAL_WORLD_SIZE={}", ranks), "MASTER_ADDR=127.0.0.1",
                                 fmt::format("MASTER_PORT={}", free_port())});
  if (transport == "tcp") {
    entries.push_back(fmt::format("UNISONO_ADDRESS=127.0.0.1:{}", free_port()));
  }
  return entries;
}

std::vector<std::string> hosts_environment(int ranks, const std::string& first_host,
                                           const std::string& transport) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with("UNISONO_")) {
      entries.emplace_back(*entry);
    }
  }
  const std::vector<std::string> common = common_environment(ranks, transport);
  entries.insert(entries.end(), common.begin(), common.end());
  const int port = port_by_chance();
  std::string plain = first_host;  // as with torchrun
  std::erase_if(plain, [](char c) { return c == '[' || c == ']'; });
  entries.insert(entries.end(),
                 {fmt::format("MASTER_ADDR={}", plain), fmt::format("MASTER_PORT={}", port),
                  fmt::format("UNISONO_ADDRESS={}:{}", first_host, port + 1)});
  return entries;
}

}  // namespace unisono::cli
