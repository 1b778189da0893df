#include "run/remote_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "run/spawn.h"
#include "unisono/error.hpp"

namespace unisono::cli {

RemoteInput::RemoteInput(UniqueFd& reader) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::resource, fmt::format("cannot make a pipe to a rank of another host: "
                                                 "{}\nraise the limit of open files (ulimit -n)",
                                                 std::strerror(errno)));
  }
  reader = UniqueFd(ends[0]);
  writer_ = UniqueFd(ends[1]);
  ::fcntl(writer_.get(), F_SETFL, O_NONBLOCK);
}

void RemoteInput::add(std::string_view text) {
  left_ += text;
  write();
}

void RemoteInput::write() noexcept {
  left_.erase(0, tell_child(writer_.get(), left_));
}

}  // namespace unisono::cli
