#include "meeting.h"

#include <c10/util/Exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "convert.h"

namespace unisono_torch {
namespace {

// The worlds of this process. A forked child has none.
struct Known {
  std::weak_ptr<World> world;
  pid_t pid = 0;
  bool open = true;
};
std::mutex known_mutex;  // guards the next
std::map<std::string, Known>& known_worlds() {
  static auto* known = new std::map<std::string, Known>;
  return *known;
}

struct Line {
  std::string host;
  std::string name;  // of the machine, for messages
  std::string secret;
  std::map<std::string, int> worlds;  // id -> rank there
};

std::string random_hex() {
  std::random_device entropy;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    char word[9];
    std::snprintf(word, sizeof(word), "%08x", entropy());
    text += word;
  }
  return text;
}

std::string machine_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name[0] == '\0' ? "-" : name;
}

std::string write_line() {
  std::ostringstream line;
  line << host_identity() << ' ' << machine_name() << ' ' << random_hex();
  const std::lock_guard lock(known_mutex);
  for (const auto& [id, known] : known_worlds()) {
    if (const auto world = known.world.lock();
        world != nullptr && known.open && known.pid == getpid()) {
      line << ' ' << id << ' ' << world->all.rank();
    }
  }
  return line.str();
}

Line read_line(const std::string& text) {
  std::istringstream in(text);
  Line line;
  in >> line.host >> line.name >> line.secret;
  std::string id;
  int rank = -1;
  while (in >> id >> rank) {
    line.worlds[id] = rank;
  }
  TORCH_CHECK(line.secret.size() == 32, "unisono: the store has something else where a rank says ",
              "where it is: \"", text, "\"; is the store used by two groups of one name?");
  return line;
}

// Says which ranks have not written their line.
std::string who_is_missing(c10d::Store& store, const std::vector<std::string>& keys,
                           std::chrono::milliseconds timeout) {
  std::string missing;
  try {
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      if (!store.check({keys[rank]})) {
        missing += (missing.empty() ? "rank " : ", ") + std::to_string(rank);
      }
    }
  } catch (const std::exception&) {
    missing = "";  // the store is gone as well
  }
  return "unisono: " + (missing.empty() ? std::string("not all ranks") : missing) +
         " did not come to this process group within " + std::to_string(timeout.count()) +
         " ms; does every rank make it, with the same world size and the same store?";
}

std::vector<Line> exchange(c10d::Store& store, int rank, int size,
                           std::chrono::milliseconds timeout) {
  store.set("unisono/" + std::to_string(rank), write_line());
  std::vector<std::string> keys;
  for (int other = 0; other < size; ++other) {
    keys.push_back("unisono/" + std::to_string(other));
  }
  try {
    store.wait(keys, timeout);
  } catch (const std::exception& error) {
    throw c10::DistBackendError(who_is_missing(store, keys, timeout) + "\n" + error.what());
  }
  std::vector<Line> lines;
  for (const std::string& key : keys) {
    lines.push_back(read_line(store.get_to_str(key)));
  }
  return lines;
}

void check_hosts(const std::vector<Line>& lines, int rank) {
  std::string elsewhere;
  for (std::size_t other = 0; other < lines.size(); ++other) {
    const Line& mine = lines[static_cast<std::size_t>(rank)];
    if (lines[other].host != mine.host) {
      elsewhere +=
          (elsewhere.empty() ? "" : ", ") + std::to_string(other) + " (" + lines[other].name +
          (lines[other].name == mine.name ? ", another container or network namespace)" : ")");
    }
  }
  if (!elsewhere.empty()) {
    throw c10::DistBackendError(
        "unisono: rank " + std::to_string(rank) + " is on " + machine_name() +
        " and cannot share memory with rank " + elsewhere +
        ".\nunisono connects ranks of one host only as yet (PyTorch over several hosts is not "
        "there yet); "
        "use backend=\"gloo\" for this group, and unisono for groups within a host");
  }
}

std::string shared_world(const std::vector<Line>& lines) {
  for (const auto& [id, rank] : lines.front().worlds) {
    if (std::all_of(lines.begin(), lines.end(),
                    [&](const Line& line) { return line.worlds.contains(id); })) {
      return id;
    }
  }
  return {};
}

std::shared_ptr<World> connect(const Line& first, int rank, int size, int timeout_ms) {
  unisono::ConnectOptions options;
  options.rank = rank;
  options.size = size;
  options.job = "pytorch-" + first.secret.substr(0, 16);
  options.token = first.secret;
  options.connect_timeout_ms = timeout_ms;
  options.timeout_ms = timeout_ms;
  auto world = std::make_shared<World>(
      World{.id = options.job, .all = unisono::Communicator::connect(options)});
  const std::lock_guard lock(known_mutex);
  std::erase_if(known_worlds(), [](const auto& entry) { return entry.second.world.expired(); });
  known_worlds()[world->id] = {.world = world, .pid = getpid()};
  return world;
}

}  // namespace

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  // Ranks find each other at an abstract socket, which belongs to a network namespace.
  struct stat network = {};
  stat("/proc/self/ns/net", &network);
  return (boot.empty() ? machine_name() : boot) + "/" + std::to_string(network.st_ino);
}

Place meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
           std::chrono::milliseconds timeout) {
  const std::vector<Line> lines = exchange(*store, rank, size, timeout);
  check_hosts(lines, rank);
  try {
    const std::string id = shared_world(lines);
    if (id.empty()) {
      const auto limit = std::min<std::int64_t>(timeout.count(), INT32_MAX);
      return {.world = connect(lines.front(), rank, size, static_cast<int>(limit)), .part = {}};
    }
    std::shared_ptr<World> world;
    {
      const std::lock_guard lock(known_mutex);
      world = known_worlds()[id].world.lock();
    }
    TORCH_CHECK(world != nullptr, "unisono: a group was destroyed while another was made from it");
    std::vector<int> members;
    for (const Line& line : lines) {
      members.push_back(line.worlds.at(id));
    }
    const std::uint64_t number = std::stoull(lines.front().secret.substr(0, 16), nullptr, 16);
    auto part = std::make_unique<unisono::Communicator>(world->all.subgroup(members, number));
    return {.world = std::move(world), .part = std::move(part)};
  } catch (const unisono::Error& error) {
    std::rethrow_exception(to_torch(error));
  }
}

void close_world(const World& world) {
  const std::lock_guard lock(known_mutex);
  if (const auto found = known_worlds().find(world.id); found != known_worlds().end()) {
    found->second.open = false;
  }
}

}  // namespace unisono_torch
