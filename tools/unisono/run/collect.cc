#include "run/collect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>

#include "base/unique_fd.h"
#include "cli/failure.h"
#include "run/spawn.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};
constexpr std::string_view kMark = "unisono-recording ";

constexpr std::string_view kEnd = "unisono-recordings-end\n";

// The mark before the folder's name.
constexpr std::string_view kFolder = "unisono-recording-folder ";

// The shell prints the name of its folder and waits for a word on its input. If the word arrives,
// the shell prints the files. In any case it removes them. If the launcher has died, the word does
// not arrive, and ranks may still create a file for one more second. The part that must outlive the
// shell has its own session: see hosts.cc. mktemp creates a new folder that no other user can
// enter; -O rejects a folder that another user has put in its place.
std::string shell_script(const std::string& folder) {
  return "{\n"
         "exec 3<&0\n"
         "group=\n"
         "if command -v setsid >/dev/null 2>&1; then group=setsid; fi\n"
         "$group sh -c '"
         "trap \"\" HUP INT TERM\n"
         "folder=$0\n"
         "if [ -z \"$folder\" ]; then\n"
         "folder=$(mktemp -d \"${TMPDIR:-/tmp}/unisono-XXXXXXXXXX\") || exit 1\n"
         "echo \"unisono-recording-folder $folder\"\n"
         "fi\n"
         "word=\n"
         "read -r word <&3\n"
         "if [ \"$word\" = collect ]; then\n"
         "for file in \"$folder\"/*.events; do\n"
         "[ -O \"$folder\" ] && [ -f \"$file\" ] && [ ! -L \"$file\" ] || continue\n"
         "echo \"unisono-recording $(wc -c < \"$file\")\"\n"
         "cat \"$file\"\n"
         "done\n"
         "echo unisono-recordings-end\n"
         "fi\n"
         "cd / && rm -rf \"$folder\"\n"
         "[ \"$word\" = collect ] && exit 0\n"
         "sleep 3\n"
         "rm -rf \"$folder\"' " +
         shell_quote(folder) +
         "\n"
         "exit 0\n"
         "}\n";
}

bool has_line_with(std::string_view printed, std::string_view mark) {
  const std::size_t at = printed.find(mark);
  return at != std::string_view::npos && printed.find('\n', at) != std::string_view::npos;
}

// Reads the program's output until it ends, until a line with the mark, or until the deadline.
// Returns false if it has not ended.
bool read_all(int fd, Clock::time_point deadline, std::string& printed,
              std::string_view mark = {}) {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      printed.append(buffer.data(), static_cast<std::size_t>(got));
      if (!mark.empty() && has_line_with(printed, mark)) {
        return false;
      }
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return true;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll = {.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) == 0) {
      return false;
    }
  }
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of("\r\n ") + 1);
  return text.substr(text.find_last_of("\r\n") + 1);
}

std::size_t bytes_of(const std::vector<std::vector<std::byte>>& files) {
  std::size_t bytes = 0;
  for (const std::vector<std::byte>& file : files) {
    bytes += file.size();
  }
  return bytes;
}

}  // namespace

std::vector<std::vector<std::byte>> files_in(const std::string& printed) {
  std::vector<std::vector<std::byte>> files;
  for (std::size_t at = printed.find(kMark); at != std::string::npos;
       at = printed.find(kMark, at)) {
    at += kMark.size();
    std::size_t bytes = 0;
    const char* const end = printed.data() + printed.size();
    const auto [stop, error] = std::from_chars(printed.data() + at, end, bytes);
    if (error != std::errc() || stop == end || *stop != '\n' ||
        bytes > static_cast<std::size_t>(end - stop - 1)) {
      continue;
    }
    const auto* const begin = reinterpret_cast<const std::byte*>(stop + 1);
    files.emplace_back(begin, begin + bytes);
    at = static_cast<std::size_t>(stop + 1 - printed.data()) + bytes;
  }
  return files;
}

RemoteFolders::RemoteFolders(const std::vector<RemoteRank>& ranks, const Console& console) {
  std::set<std::vector<std::string>> asked;
  for (const RemoteRank& rank : ranks) {
    if (asked.insert(rank.program).second) {
      shells_.push_back(start(rank.program, {}));
    }
  }
  const Clock::time_point deadline = Clock::now() + kPatience;
  for (RemoteShell& shell : shells_) {
    await_folder(shell, deadline, console);
  }
}

RemoteFolders::~RemoteFolders() {
  for (RemoteShell& shell : shells_) {
    end(shell);
  }
}

RemoteFolders::RemoteShell RemoteFolders::start(const std::vector<std::string>& words,
                                                const std::string& folder) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::resource,
                "cannot make a pipe\nraise the limit of open files (ulimit -n)");
  }
  const UniqueFd input(ends[0]);
  RemoteShell shell{.words = words, .folder = folder, .input = UniqueFd(ends[1])};
  tell_child(ends[1], shell_script(folder));
  const Spawned spawned = spawn(
      {.program = words, .environment = {}, .cpus = {}, .own_group = true, .input = input.get()});
  shell.pid = spawned.pid;
  shell.out = UniqueFd(spawned.out);
  shell.err = UniqueFd(spawned.err);
  return shell;
}

void RemoteFolders::await_folder(RemoteShell& shell, Clock::time_point deadline,
                                 const Console& console) {
  std::string printed;  // a login may print other text before
  const bool ended = read_all(shell.out.get(), deadline, printed, kFolder);
  if (has_line_with(printed, kFolder)) {
    const std::size_t begin = printed.find(kFolder) + kFolder.size();
    shell.folder = printed.substr(begin, printed.find('\n', begin) - begin);
    return;
  }
  std::string errors;
  read_all(shell.err.get(), Clock::now(), errors);  // what is there
  const std::string why = last_line(std::move(errors));
  console.note(fmt::format("nothing is recorded on this host: {}\n  {}{}{}",
                           fmt::join(shell.words, " "),
                           ended ? "it ended without a folder for the recording"
                                 : fmt::format("it named no folder within {} s", kPatience.count()),
                           why.empty() ? "" : ": ", why));
}

std::string RemoteFolders::folder_of(const RemoteRank& rank) const {
  const auto shell = std::find_if(shells_.begin(), shells_.end(), [&](const RemoteShell& one) {
    return one.words == rank.program;
  });
  return shell == shells_.end() ? "" : shell->folder;
}

// The end of its input has the same effect as the word.
void RemoteFolders::end(RemoteShell& shell) {
  shell.input.reset();
  if (shell.pid > 0) {
    ::kill(-shell.pid, SIGKILL);
    ::waitpid(shell.pid, nullptr, 0);
    shell.pid = -1;
  }
}

RemoteFolders::Answer RemoteFolders::ask(RemoteShell& shell, Clock::time_point deadline) {
  Answer answer;
  std::string printed;
  tell_child(shell.input.get(), "collect\n");
  answer.ended = read_all(shell.out.get(), deadline, printed);
  answer.whole = printed.ends_with(kEnd);
  answer.files = files_in(printed);
  std::string errors;
  read_all(shell.err.get(), Clock::now(), errors);  // what is there
  answer.last_error_line = last_line(std::move(errors));
  end(shell);
  return answer;
}

// Reports it if no other shell can be started.
RemoteFolders::Answer RemoteFolders::ask_again(const RemoteShell& shell,
                                               Clock::time_point deadline) {
  try {
    RemoteShell again = start(shell.words, shell.folder);
    return ask(again, deadline);
  } catch (const UsageError& error) {
    return {.ended = true, .last_error_line = error.what()};
  } catch (const Error& error) {
    return {.ended = true, .last_error_line = std::string(error.summary())};
  }
}

// Asks again through a new connection, because a connection that was idle for a long time may be
// broken. But if the first shell received the word, or the end of its input, it has removed the
// folder. So an absent folder does not mean that nothing was recorded.
std::vector<std::vector<std::byte>> RemoteFolders::collect_from(RemoteShell& shell,
                                                                const Console& console) {
  if (shell.folder.empty()) {
    return {};  // await_folder() has reported why
  }
  const Clock::time_point deadline = Clock::now() + kPatience;
  Answer answer = ask(shell, deadline);
  if (answer.whole) {
    return std::move(answer.files);
  }
  if (answer.ended) {
    Answer second = ask_again(shell, deadline);
    if (second.whole && !second.files.empty() && bytes_of(second.files) >= bytes_of(answer.files)) {
      return std::move(second.files);
    }
    if (bytes_of(second.files) > bytes_of(answer.files)) {
      answer.files = std::move(second.files);
    }
    if (!second.whole) {
      answer.ended = second.ended;
      answer.last_error_line =
          second.last_error_line.empty() ? answer.last_error_line : second.last_error_line;
    }
  }
  console.note(fmt::format(
      "{} arrived: {}\n  {}{}{}",
      answer.files.empty() ? "no recording" : "perhaps not every recording",
      fmt::join(shell.words, " "),
      answer.ended ? "it ended too early" : fmt::format("no end within {} s", kPatience.count()),
      answer.last_error_line.empty() ? "" : ": ", answer.last_error_line));
  return std::move(answer.files);
}

std::vector<pid_t> RemoteFolders::pids() const {
  std::vector<pid_t> pids;
  for (const RemoteShell& shell : shells_) {
    pids.push_back(shell.pid);
  }
  return pids;
}

std::vector<std::vector<std::byte>> RemoteFolders::collect(const Console& console) {
  std::vector<std::vector<std::byte>> files;
  for (RemoteShell& shell : shells_) {
    auto more = collect_from(shell, console);
    std::move(more.begin(), more.end(), std::back_inserter(files));
  }
  return files;
}

}  // namespace unisono::cli
