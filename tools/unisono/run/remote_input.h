// The input of a rank's shell on another host: its script, followed by words of the launcher. A
// pipe accepts a part at once (its size depends on the number of the user's pipes), and the rest
// when the shell has read this part. So a host that hangs does not block the launcher.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace unisono::cli {

class RemoteInput {
 public:
  // Throws resource. `reader`: the end for the shell.
  explicit RemoteInput(UniqueFd& reader);

  void add(std::string_view text);
  // Writes as much as the pipe accepts now.
  void write() noexcept;
  bool has_more() const noexcept { return !left_.empty(); }
  int fd() const noexcept { return writer_.get(); }

 private:
  UniqueFd writer_;
  std::string left_ = {};
};

}  // namespace unisono::cli
