// Address in Linux's abstract socket namespace. Its name is not a file, and disappears with the
// socket.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

namespace unisono {

class AbstractAddress {
 public:
  // Truncates a name that is too long.
  explicit AbstractAddress(std::string_view name) {
    address_.sun_family = AF_UNIX;
    const std::size_t bytes = name.copy(address_.sun_path + 1, sizeof(address_.sun_path) - 1);
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const { return length_; }

 private:
  sockaddr_un address_ = {};
  socklen_t length_ = 0;
};

}  // namespace unisono
