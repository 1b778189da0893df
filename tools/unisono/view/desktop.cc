#include "view/desktop.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>

#include "base/env.h"

namespace unisono::cli {

bool has_desktop() {
  for (const char* name : {"WAYLAND_DISPLAY", "DISPLAY"}) {
    const auto value = read_env(name);
    if (value && !value->empty()) {
      return true;
    }
  }
  return false;
}

bool open_on_desktop(const std::string& path) {
  // A name that begins with a dash would be taken for an option.
  std::string file = path.starts_with('-') ? "./" + path : path;
  std::string program = "xdg-open";
  std::array<char*, 3> words = {program.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  pid_t child = -1;
  const int failed =
      posix_spawnp(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0;
}

}  // namespace unisono::cli
