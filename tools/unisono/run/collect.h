// Fetches what ranks of other hosts recorded, by the same program that started them there, and sees
// to it that nothing of it stays there.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "run/hosts.h"

namespace unisono::cli {

// On each host a shell that makes a new folder, which no other user can enter, and removes it when
// it is told to print it, or when this process ends in any way, SIGKILL included.
class RemoteFolders {
 public:
  // Waits until each host has its folder, a minute at most. A host without one is named on stderr.
  // Throws UsageError where the program that leads to a host cannot be started.
  RemoteFolders(const std::vector<RemoteRank>& ranks, const Console& console);
  ~RemoteFolders();
  RemoteFolders(const RemoteFolders&) = delete;
  RemoteFolders& operator=(const RemoteFolders&) = delete;
  // Children of this process that a job's end must not end.
  std::vector<pid_t> pids() const;
  // The folder on the host of a rank. Empty: there is none.
  std::string folder_of(const RemoteRank& rank) const;
  // The files of the folder on each host. A host that does not answer within a minute, or not
  // wholly, is named on stderr.
  std::vector<std::vector<std::byte>> collect(const Console& console);

 private:
  using Clock = std::chrono::steady_clock;
  struct RemoteShell {
    std::vector<std::string> words = {};
    std::string folder = {};
    pid_t pid = -1;
    UniqueFd input = {};
    UniqueFd out = {};
    UniqueFd err = {};
  };
  // Makes a folder, unless it is to print `folder`.
  static RemoteShell start(const std::vector<std::string>& words, const std::string& folder);
  static void await_folder(RemoteShell& shell, Clock::time_point deadline, const Console& console);
  struct Answer {
    std::vector<std::vector<std::byte>> files = {};
    bool whole = false;  // its end came
    bool ended = false;  // the program that leads there did, in time
    std::string last_error_line = {};
  };
  static Answer ask(RemoteShell& shell, Clock::time_point deadline);
  static Answer ask_again(const RemoteShell& shell, Clock::time_point deadline);
  static std::vector<std::vector<std::byte>> collect_from(RemoteShell& shell,
                                                          const Console& console);
  static void end(RemoteShell& shell);

  std::vector<RemoteShell> shells_;
};

// The files in what the other side printed, which may have said other things before.
std::vector<std::vector<std::byte>> files_in(const std::string& printed);

}  // namespace unisono::cli
