#include "meeting.h"

#include <c10/util/Exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "common/signals.h"
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

constexpr std::chrono::microseconds kLongestPause{50'000};  // between two looks into the store
constexpr char kRefusal = '!';  // begins the line of a rank that cannot take part, and says why

struct Line {
  std::string host;
  std::string name;  // of the machine, for messages
  std::string secret;
  bool has_token = false;             // of its own, which did not come over the store
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

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

bool has_world() {
  const std::lock_guard lock(known_mutex);
  return std::any_of(known_worlds().begin(), known_worlds().end(), [](const auto& entry) {
    return !entry.second.world.expired() && entry.second.pid == getpid();
  });
}

// Once for each world, before others wait for this rank. Empty: all is well.
std::string refusal(int rank) {
  if (has_world()) {
    return {};
  }
  try {
    for (const std::string& warning : unisono::check_environment()) {
      if (rank == 0) {
        std::fprintf(stderr, "unisono: %s\n", warning.c_str());
      }
    }
  } catch (const unisono::Error& error) {
    return error.what();
  }
  return {};
}

std::string write_line(int rank) {
  if (const std::string why = refusal(rank); !why.empty()) {
    return kRefusal + why;
  }
  std::ostringstream line;
  line << host_identity();
  if (variable("UNISONO_TRANSPORT") == "tcp") {
    line << "/rank-" << rank;
  }
  line << ' ' << machine_name() << ' ' << random_hex() << ' '
       << (variable("UNISONO_TOKEN").empty() ? 0 : 1);
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
  in >> line.host >> line.name >> line.secret >> line.has_token;
  std::string id;
  int rank = -1;
  while (in >> id >> rank) {
    line.worlds[id] = rank;
  }
  TORCH_CHECK(line.secret.size() == 32, "unisono: the store has something else where a rank says ",
              "where it is: \"", text, "\"; is the store used by two groups of one name?");
  return line;
}

// Asks again and again, because wait() of the store cannot be interrupted.
void wait_for(c10d::Store& store, const std::vector<std::string>& keys,
              std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::chrono::microseconds pause{100};
  std::vector<bool> has_come(keys.size());
  for (;;) {
    const bool is_over = std::chrono::steady_clock::now() >= end;
    std::string missing;
    try {
      for (std::size_t rank = 0; rank < keys.size(); ++rank) {
        has_come[rank] = has_come[rank] || store.check({keys[rank]});
        if (!has_come[rank]) {
          missing += (missing.empty() ? "rank " : ", ") + std::to_string(rank);
          if (!is_over) {
            break;  // the others are asked for when it has come, or in the end
          }
        }
      }
    } catch (const std::exception& error) {
      throw c10::DistBackendError(
          std::string("unisono: the store cannot be asked who has come to this process group; has "
                      "the rank ended that keeps it?\n") +
          error.what());
    }
    if (missing.empty()) {
      return;
    }
    if (is_over) {
      throw c10::DistBackendError(
          "unisono: " + missing + " did not come to this process group within " +
          std::to_string(timeout.count()) +
          " ms; does every rank make it, with the same world size and the same store?");
    }
    unisono_signals::throw_if_interrupted();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

// What all ranks say on one subject, by rank.
std::vector<std::string> tell_all(c10d::Store& store, const std::string& subject, int rank,
                                  int size, const std::string& mine,
                                  std::chrono::milliseconds timeout) {
  store.set(subject + std::to_string(rank), mine);
  std::vector<std::string> keys;
  for (int other = 0; other < size; ++other) {
    keys.push_back(subject + std::to_string(other));
  }
  wait_for(store, keys, timeout);
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const std::string& key : keys) {
    texts.push_back(store.get_to_str(key));
  }
  return texts;
}

bool on_several_hosts(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const Line& line) { return line.host != lines.front().host; });
}

// What would only be noticed while the ranks of several hosts connect, and worded less well.
void check_across_hosts(const std::vector<Line>& lines) {
  const auto refuse = [](const std::string& what) {
    throw c10::DistBackendError("unisono: " + what);
  };
  for (std::size_t rank = 1; rank < lines.size(); ++rank) {
    const std::string other = "rank " + std::to_string(rank);
    if (lines[rank].has_token != lines[0].has_token) {
      refuse("UNISONO_TOKEN is set on " + (lines[0].has_token ? "rank 0" : other) + " but not on " +
             (lines[0].has_token ? other : "rank 0") +
             "\nset the same secret on all ranks, or on none: then one goes over the store");
    }
    if (lines[rank].host != lines[0].host && variable("UNISONO_TRANSPORT") == "shm") {
      refuse("UNISONO_TRANSPORT=shm connects ranks of one host, but rank 0 is on " + lines[0].name +
             " and " + other + " on " + lines[rank].name +
             "\nunset UNISONO_TRANSPORT, or make this group within a host");
    }
  }
  const std::string tls = variable("UNISONO_TLS");
  if (!lines[0].has_token && !tls.empty() && tls != "0") {
    refuse(
        "UNISONO_TLS=1 needs UNISONO_TOKEN: a secret that goes over PyTorch's store, which is not "
        "encrypted, hides nothing\nset UNISONO_TOKEN to the same secret on all ranks, for example "
        "from: openssl rand -hex 16");
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

// Where the store is, which all hosts reach; empty: it does not say.
std::string address_of(const c10::intrusive_ptr<c10d::Store>& store) {
  auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store.get());
  const auto inner = prefixed == nullptr ? store : prefixed->getUnderlyingNonPrefixStore();
  const auto* tcp = dynamic_cast<c10d::TCPStore*>(inner.get());
  if (tcp == nullptr) {
    return {};
  }
  const std::string& host = tcp->getHost();
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(tcp->getPort());
}

std::shared_ptr<World> connect(const c10::intrusive_ptr<c10d::Store>& store,
                               const std::vector<Line>& lines, int rank, int size,
                               std::chrono::milliseconds timeout) {
  const auto timeout_ms = static_cast<int>(std::min<std::int64_t>(timeout.count(), INT32_MAX));
  const std::string& secret = lines.front().secret;
  unisono::ConnectOptions options;
  options.rank = rank;
  options.size = size;
  options.job = "pytorch-" + secret.substr(0, 16);
  options.token = secret;
  options.connect_timeout_ms = timeout_ms;
  options.timeout_ms = timeout_ms;
  options.interrupted = unisono_signals::is_interrupted;
  if (on_several_hosts(lines)) {
    check_across_hosts(lines);
    options.token = lines.front().has_token ? "" : secret;  // "": UNISONO_TOKEN
    options.address = address_of(store);
    options.exchange = [&](const std::string& mine) {
      return tell_all(*store, "unisono/card/", rank, size, mine, timeout);
    };
  } else {
    options.transport = "shm";  // whatever UNISONO_ADDRESS says to other programs
  }
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
  std::string identity = (boot.empty() ? machine_name() : boot) + "/" +
                         std::to_string(network.st_ino) + "/" + std::to_string(geteuid());
  if (const std::string name = variable("UNISONO_HOST"); !name.empty()) {
    identity += "/" + name;
  }
  // It is one word of a line.
  std::replace_if(
      identity.begin(), identity.end(), [](unsigned char c) { return std::isspace(c) != 0; }, '_');
  return identity;
}

Place meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
           std::chrono::milliseconds timeout) {
  std::vector<Line> lines;
  const std::string mine = write_line(rank);
  if (mine.starts_with(kRefusal)) {
    store->set("unisono/" + std::to_string(rank), mine);
    throw c10::ValueError("unisono: " + mine.substr(1));
  }
  const auto texts = tell_all(*store, "unisono/", rank, size, mine, timeout);
  for (std::size_t other = 0; other < texts.size(); ++other) {
    if (texts[other].starts_with(kRefusal)) {
      throw c10::DistBackendError("unisono: rank " + std::to_string(other) +
                                  " cannot take part: " + texts[other].substr(1));
    }
    lines.push_back(read_line(texts[other]));
  }
  try {
    const std::string id = shared_world(lines);
    if (id.empty()) {
      return {.world = connect(store, lines, rank, size, timeout), .part = {}};
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
    if (error.code() == unisono::ErrorCode::aborted) {
      unisono_signals::throw_if_interrupted();
    }
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
