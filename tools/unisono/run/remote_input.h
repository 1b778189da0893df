// The input of a rank's shell on another host: its script, followed by words of the launcher. A
// pipe takes some of it at once (how much depends on how many pipes the user has), and the rest
// when the shell has read that: a host that hangs does not stop the launcher.
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
  // As much as the pipe takes now.
  void write() noexcept;
  bool has_more() const noexcept { return !left_.empty(); }
  int fd() const noexcept { return writer_.get(); }

 private:
  UniqueFd writer_;
  std::string left_ = {};
};

}  // namespace unisono::cli
