#include "run/hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "cli/failure.h"
#include "run/job.h"

namespace unisono::cli {
namespace {

// A shell that reads its commands in blocks (dash) also reads input behind the script, which is
// then lost. So this many blanks follow the script.
constexpr std::size_t kReadAhead = 8192;

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what, "write --hosts a:4,b:4, or --hosts @FILE with one line per host",
                   "unisono help run");
}

bool is_ipv6(const std::string& text) {
  in6_addr address = {};
  const std::size_t zone = text.find('%');  // the zone of a link-local address
  return zone + 1 != text.size() && text.find_first_of("[]") == std::string::npos &&
         ::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &address) == 1;
}

std::optional<int> count_of(std::string_view text) {
  int count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool right = error == std::errc() && stop == text.data() + text.size();
  return right && count >= 1 && count <= kMostJobRanks ? std::optional(count) : std::nullopt;
}

// Returns the position of the count after "node1", "[fd00::1]" or "fd00::1"; npos: there is none.
std::size_t find_count(const std::string& text) {
  const std::size_t bracket = text.find(']');
  if (bracket != std::string::npos) {
    return text.find(':', bracket);
  }
  const std::size_t last = text.rfind(':');
  if (!is_ipv6(text)) {
    return text.find(':');
  }
  if (is_ipv6(text.substr(0, last)) && count_of(text.substr(last + 1))) {
    refuse(fmt::format("'{0}' can be an address, or {1} with {2} ranks: write [{0}] or [{1}]:{2}",
                       text, text.substr(0, last), text.substr(last + 1)));
  }
  return std::string::npos;
}

// Removes the brackets of an IPv6 address, because ssh accepts it only without brackets.
std::string bare_host(const std::string& text) {
  const std::size_t open = text.find('[');
  if (open == std::string::npos && text.find(']') == std::string::npos) {
    return text;
  }
  const bool closed = open != std::string::npos && text.back() == ']';
  const std::string address = closed ? text.substr(open + 1, text.size() - open - 2) : "";
  if (!is_ipv6(address) || (open > 0 && text[open - 1] != '@')) {
    const bool is_list = open != std::string::npos && open > 0 && text[open - 1] != '@';
    refuse(fmt::format(
        "'{}' is not an IPv6 address in brackets{}", text,
        is_list ? ", and lists are not expanded (scontrol show hostnames does so)" : ""));
  }
  return text.substr(0, open) + address;
}

HostRanks parse_host(const std::string& text) {
  HostRanks host;
  const std::size_t colon = find_count(text);
  if (colon != std::string::npos) {
    const auto count = count_of(std::string_view(text).substr(colon + 1));
    if (!count) {
      refuse(fmt::format("'{}' has no number of ranks", text));
    }
    host.ranks = *count;
  }
  host.host = bare_host(text.substr(0, colon));
  const bool is_word = host.host.find_first_of(" \t\r\n") == std::string::npos;
  if (host.host.empty() || host.host.front() == '-' || host.host.ends_with('@') || !is_word) {
    refuse(fmt::format("'{}' is not a host", text));
  }
  return host;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

std::vector<HostRanks> read_hosts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    refuse(fmt::format("cannot read {}", path));
  }
  std::vector<HostRanks> hosts;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, hosts.empty() && line.starts_with("\xef\xbb\xbf") ? 3 : 0);  // a byte order mark
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) {
      continue;
    }
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (!words[i].starts_with("max_slots=") && !words[i].starts_with("max-slots=")) {
        refuse(fmt::format("'{}' must not follow the number of ranks of '{}'", words[i], words[0]));
      }
    }
    std::string count = words.size() > 1 ? words[1] : "";
    count.erase(0, count.starts_with("slots=") ? 6 : 0);
    const std::string host = is_ipv6(words[0]) ? "[" + words[0] + "]" : words[0];
    hosts.push_back(parse_host(count.empty() ? words[0] : host + ":" + count));
  }
  return hosts;
}

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::vector<std::string> launcher_command(const std::string& launcher, const std::string& host) {
  std::vector<std::string> words = words_of(launcher);
  if (words.empty()) {
    words = variable("SLURM_JOB_ID").empty()
                ? std::vector<std::string>{"ssh", "-o", "BatchMode=yes", "{host}"}
                : std::vector<std::string>{"srun", "--nodes=1", "--ntasks=1", "--overlap",
                                           "--nodelist={host}"};
  }
  for (std::string& word : words) {
    if (const std::size_t at = word.find("{host}"); at != std::string::npos) {
      word.replace(at, 6, host);
    }
  }
  words.emplace_back("/bin/sh");
  return words;
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// Returns the script of a rank's shell: it sets the variables and starts the program. Each line of
// the shell's input names a signal, and the shell sends this signal to the program. When the input
// ends, for example because the launcher has died, the shell ends the program. Lines of the
// launcher's log go to a file without a name (bootstrap/job_log.h).
std::string script_of(const std::vector<std::string>& program,
                      const std::vector<std::string>& environment, const std::string& folder) {
  // One compound command, which a shell reads completely before it runs any part of it. So a later
  // `read` does not read the script.
  std::string script = "{\n";
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (!is_variable_name(name)) {
      throw UsageError(fmt::format("'{}' is not a valid name of a shell variable", name),
                       "use letters, digits and _", "unisono help run");
    }
    script += equals == std::string::npos
                  ? "unset " + name + "\n"
                  : "export " + name + "=" + shell_quote(entry.substr(equals + 1)) + "\n";
  }
  // The part that must outlive this shell gets its own session before the rank starts, because this
  // shell's group is killed with the launcher if the launcher is a program on this host (docker
  // exec).
  script += "cd " + shell_quote(folder) +
            " || exit 126\n"
            "exec 3<&0\n"
            "group=\n"
            "if command -v setsid >/dev/null 2>&1; then group=setsid; fi\n"
            "$group sh -c '"
            "log=$(mktemp 2>/dev/null) && exec 4>>\"$log\" && rm \"$log\" &&\n"
            "echo \"job $UNISONO_JOB $WORLD_SIZE\" >&4 && export UNISONO_LAUNCHER=/proc/$$/fd/4\n"
            "$0 \"$@\" </dev/null 3<&- 4>&- &\n"
            "rank=$!\n"
            "{ while read -r word rest <&3; do case $word in\n"
            "\"\") ;;\n"
            "end|reason|advice) printf \"%s\\n\" \"$word $rest\" >&4 ;;\n"
            "*) kill -$word -$rank || kill -$word $rank ;;\n"
            "esac; done\n"
            "kill -TERM -$rank || kill -TERM $rank; sleep 1\n"
            "kill -KILL -$rank || kill -KILL $rank; } >/dev/null 2>&1 &\n"
            "watch=$!\n"
            "wait $rank; code=$?\n"
            "kill $watch 2>/dev/null\n"
            "kill -KILL -$rank 2>/dev/null\n"
            "[ -n \"$log\" ] && sed \"s|^|" +
            log_mark("$UNISONO_JOB") +
            "|\" /proc/$$/fd/4 >&2\n"
            "exit $code' \"$group\"";
  for (const std::string& word : program) {
    script += " " + shell_quote(word);
  }
  script +=
      "\n"
      "exit $?\n"
      "}\n";
  return script + std::string(kReadAhead - 1, ' ') + "\n";
}

std::string working_folder() {
  char folder[PATH_MAX];
  return ::getcwd(folder, sizeof(folder)) == nullptr ? "/" : folder;
}

}  // namespace

std::string shell_quote(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::vector<HostRanks> parse_hosts(const std::string& text) {
  std::vector<HostRanks> hosts;
  if (text.starts_with("@")) {
    hosts = read_hosts(text.substr(1));
  } else {
    std::istringstream list(text);
    for (std::string one; std::getline(list, one, ',');) {
      hosts.push_back(parse_host(one));
    }
  }
  if (hosts.empty()) {
    refuse(fmt::format("'{}' names no host", text));
  }
  return hosts;
}

std::string log_mark(const std::string& job) {
  return "unisono-job-log " + job + " ";
}

std::string address_of(const HostRanks& host) {
  const std::string name = host.host.substr(host.host.find('@') + 1);
  return is_ipv6(name) ? "[" + name + "]" : name;
}

std::vector<RemoteRank> place_ranks(const std::vector<HostRanks>& hosts,
                                    const std::string& launcher,
                                    const std::vector<std::string>& program,
                                    const std::vector<std::string>& environment) {
  const std::string folder = working_folder();
  std::vector<RemoteRank> ranks;
  for (const HostRanks& host : hosts) {
    for (int local = 0; local < host.ranks; ++local) {
      std::vector<std::string> own = environment;
      own.insert(own.begin(),
                 {fmt::format("RANK={}", ranks.size()), fmt::format("LOCAL_RANK={}", local),
                  fmt::format("LOCAL_WORLD_SIZE={}", host.ranks)});
      ranks.push_back({.host = address_of(host),
                       .program = launcher_command(launcher, host.host),
                       .script = script_of(program, own, folder)});
    }
  }
  return ranks;
}

}  // namespace unisono::cli
