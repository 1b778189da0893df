#include "run/job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(bytes)) {
    throw Error(ErrorCode::resource, "the system gives no random numbers");
  }
  std::string text;
  for (const unsigned char byte : raw) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

// A port that no one listens on now; programs that are used to torchrun meet there.
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

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  const std::string full(name.data());
  return full.substr(0, full.find('.'));
}

std::vector<std::string> job_environment(int ranks) {
  // What would win over the launcher's own variables is taken away.
  return {"UNISONO_RANK",
          "UNISONO_SIZE",
          "UNISONO_FILE",
          fmt::format("WORLD_SIZE={}", ranks),
          fmt::format("LOCAL_WORLD_SIZE={}", ranks),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", free_port()),
          fmt::format("UNISONO_JOB=run-{}", random_hex(8)),
          fmt::format("UNISONO_TOKEN={}", random_hex(16))};
}

}  // namespace unisono::cli
