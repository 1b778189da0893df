#include "meeting.h"

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/hash.h"
#include "base/host_identity.h"
#include "base/secret.h"
#include "common/signals.h"
#include "convert.h"
#include "meeting_store.h"

namespace unisono_torch {
namespace {

// Worlds of this process. A forked child has none.
struct Known {
  std::weak_ptr<World> world;
  pid_t pid = 0;
  bool open = true;
};
std::mutex known_mutex;  // guards the worlds
std::map<std::string, Known>& known_worlds() {
  static auto* known = new std::map<std::string, Known>;
  return *known;
}

struct Line {
  std::string host;
  std::string name;  // machine name, for messages
  std::string secret;
  int size = 0;                       // group size according to this rank
  bool has_token = false;             // it has a token that did not come through the store
  std::map<std::string, int> worlds;  // id -> rank there
};

std::string machine_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name[0] == '\0' ? "-" : name;
}

std::string variable(const char* name) {
  return unisono::read_env(name).value_or("");
}

bool has_world() {
  const std::lock_guard lock(known_mutex);
  return std::any_of(known_worlds().begin(), known_worlds().end(), [](const auto& entry) {
    return !entry.second.world.expired() && entry.second.pid == getpid();
  });
}

// Checks the environment once per world, before other ranks wait for this rank.
void check_environment_once(int rank) {
  if (has_world()) {
    return;
  }
  for (const std::string& warning : unisono::check_environment()) {
    if (rank == 0) {
      std::fprintf(stderr, "unisono: %s\n", warning.c_str());
    }
  }
}

std::string write_line(int rank, int size) {
  std::ostringstream line;
  line << host_identity();
  if (variable("UNISONO_TRANSPORT") == "tcp") {
    line << "/rank-" << rank;
  }
  line << ' ' << machine_name() << ' ' << unisono::random_hex(16) << ' ' << size << ' '
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
  in >> line.host >> line.name >> line.secret >> line.size >> line.has_token;
  std::string id;
  int rank = -1;
  while (in >> id >> rank) {
    line.worlds[id] = rank;
  }
  TORCH_CHECK(line.secret.size() == 32, "unisono: the store has invalid data instead of a rank's ",
              "address: \"", text, "\"; check that no two groups of one name use the store");
  return line;
}

// Checks that all ranks agree on the group's size. Otherwise some would wait for missing ranks, or
// not wait for all.
void check_sizes(const std::vector<Line>& lines) {
  for (std::size_t rank = 1; rank < lines.size(); ++rank) {
    if (lines[rank].size != lines[0].size) {
      throw c10::DistBackendError("unisono: rank 0 makes this process group with world size " +
                                  std::to_string(lines[0].size) + ", rank " + std::to_string(rank) +
                                  " with " + std::to_string(lines[rank].size) +
                                  "\ngive all ranks the same WORLD_SIZE, or list of ranks");
    }
  }
}

bool on_several_hosts(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const Line& line) { return line.host != lines.front().host; });
}

// Describes the hosts of two ranks that are on different hosts.
std::string apart(const Line& one, const std::string& other_rank, const Line& other) {
  if (one.name != other.name) {
    return "rank 0 is on " + one.name + " and " + other_rank + " on " + other.name;
  }
  return "rank 0 and " + other_rank + ", both on " + one.name + ", have different " +
         unisono::difference_of_hosts(one.host, other.host);
}

// Checks settings whose mismatch would otherwise cause less clear errors while the hosts connect.
void check_across_hosts(const std::vector<Line>& lines) {
  const auto refuse = [](const std::string& what) {
    throw c10::DistBackendError("unisono: " + what);
  };
  for (std::size_t rank = 1; rank < lines.size(); ++rank) {
    const std::string other = "rank " + std::to_string(rank);
    if (lines[rank].has_token != lines[0].has_token) {
      refuse("UNISONO_TOKEN is set on " + (lines[0].has_token ? "rank 0" : other) + " but not on " +
             (lines[0].has_token ? other : "rank 0") +
             "\nset the same secret on all ranks, or on none, to exchange one over the store");
    }
    if (lines[rank].host != lines[0].host && variable("UNISONO_TRANSPORT") == "shm") {
      refuse("UNISONO_TRANSPORT=shm connects ranks of one host, but " +
             apart(lines[0], other, lines[rank]) +
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

// Returns the address of the store, which all hosts can reach, or "" if unknown.
std::string address_of(c10d::Store& store) {
  auto* prefixed = dynamic_cast<c10d::PrefixStore*>(&store);
  const auto inner = prefixed == nullptr ? nullptr : prefixed->getUnderlyingNonPrefixStore();
  const auto* tcp = dynamic_cast<c10d::TCPStore*>(inner == nullptr ? &store : inner.get());
  if (tcp == nullptr) {
    return {};
  }
  const std::string& host = tcp->getHost();
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(tcp->getPort());
}

// Watches the worlds that were open when the creation of a group began, because a member that has
// died in one of them will not join. Does not watch worlds whose end an operation has already
// reported: a program that continues after the report knows the survivors.
class Watch {
 public:
  explicit Watch(const Meeting& meeting)
      : members_(meeting.members), size_(meeting.size), apart_(meeting.apart) {
    const std::lock_guard lock(known_mutex);
    for (const auto& [id, known] : known_worlds()) {
      const auto world = known.world.lock();
      if (world != nullptr && known.open && known.pid == getpid() && !*world->has_failed) {
        worlds_.push_back(world);
      }
    }
  }
  // Throws unisono::Error if a world ended some time ago, so that living ranks have had time to
  // join.
  void look() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) {
      return;
    }
    next_ = now + kPause;
    for (const auto& one : worlds_) {
      const auto world = one.lock();
      const auto failure = world == nullptr ? std::nullopt : world->all.failure();
      if (!failure || !is_awaited(*world, failure->context().peer)) {
        continue;
      }
      if (apart_ && failure->code() == unisono::ErrorCode::aborted) {
        continue;  // aborted by a rank that shrinks a group, and that will join
      }
      if (now >= failed_.value_or(now) + kGrace) {
        throw_failure(*failure);
      }
      failed_ = failed_.value_or(now);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kPause{100};
  static constexpr std::chrono::milliseconds kGrace{500};

  // Returns true if a rank of the world belongs to the new group.
  bool is_awaited(const World& world, int rank) const {
    if (rank < 0) {
      return false;  // no rank died
    }
    const auto at = static_cast<std::size_t>(rank);
    const int in_job = at < world.members.size() ? world.members[at] : rank;
    // If the members are unknown, a group smaller than the world may exclude that rank.
    return members_.empty() ? size_ >= world.all.size()
                            : std::find(members_.begin(), members_.end(), in_job) != members_.end();
  }

  [[noreturn]] static void throw_failure(const unisono::Error& failure) {
    throw unisono::Error(failure.code(),
                         std::string(failure.summary()) +
                             "; this failure is in an earlier process group, so the new group no "
                             "longer waits for missing ranks\nlook at the last output of that "
                             "rank; destroy the earlier group before you continue without it",
                         failure.context());
  }

  const std::vector<int>& members_;
  int size_;
  bool apart_;
  std::vector<std::weak_ptr<World>> worlds_;
  std::chrono::steady_clock::time_point next_;
  std::optional<std::chrono::steady_clock::time_point> failed_;  // when the failure was first seen
};

std::shared_ptr<World> connect(const c10::intrusive_ptr<c10d::Store>& store,
                               const std::vector<Line>& lines, int rank, int size,
                               std::chrono::milliseconds timeout, const std::vector<int>& members,
                               const std::function<void()>& look) {
  const auto timeout_ms = static_cast<int>(std::min<std::int64_t>(timeout.count(), INT32_MAX));
  const std::string& secret = lines.front().secret;
  unisono::ConnectOptions options;
  options.rank = rank;
  options.size = size;
  options.job = "pytorch-" + secret.substr(0, 16);
  options.token = secret;
  options.connect_timeout_ms = timeout_ms;
  options.timeout_ms = timeout_ms;
  // Watches only during the rendezvous: afterwards the world itself reports lost ranks, and the
  // store may end. nullptr if ranks meet without a store.
  const auto watch = store == nullptr ? nullptr : std::make_shared<RefusalWatch>(store, rank);
  options.interrupted = [meeting = std::weak_ptr(watch)] {
    if (unisono_signals::is_interrupted()) {
      return true;
    }
    const auto watching = meeting.lock();
    return watching != nullptr && watching->has_refused();
  };
  if (on_several_hosts(lines)) {
    check_across_hosts(lines);
    options.token = lines.front().has_token ? "" : secret;  // "": UNISONO_TOKEN
    options.address = address_of(*store);
    options.bootstrap = [&](const std::string& mine) {
      return tell_all(*store, "unisono/card/", rank, size, mine, timeout, look);
    };
  } else {
    options.transport = unisono::TransportKind::shm;  // UNISONO_ADDRESS is for other programs
  }
  auto world = std::make_shared<World>(
      World{.id = options.job, .all = unisono::Communicator::connect(options), .members = members});
  const std::lock_guard lock(known_mutex);
  std::erase_if(known_worlds(), [](const auto& entry) { return entry.second.world.expired(); });
  known_worlds()[world->id] = {.world = world, .pid = getpid()};
  return world;
}

}  // namespace

std::string host_identity() {
  const std::string boot = unisono::boot_id();
  std::string identity = unisono::host_identity(boot.empty() ? machine_name() : boot);
  if (const std::string name = variable("UNISONO_HOST"); !name.empty()) {
    identity += "/" + name;
  }
  // The identity must be one word of a line.
  std::replace_if(
      identity.begin(), identity.end(), [](unsigned char c) { return std::isspace(c) != 0; }, '_');
  return identity;
}

namespace {

Place meet_others(const c10::intrusive_ptr<c10d::Store>& store, const Meeting& meeting) {
  const int rank = meeting.rank;
  const int size = meeting.size;
  const auto timeout = meeting.timeout;
  const std::vector<int>& members = meeting.members;
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "unisono: rank ", rank,
                    " is not a rank of a world of ", size, "; ranks are 0 to ", size - 1);
  check_environment_once(rank);
  Watch watch(meeting);
  const auto look = [&watch] { watch.look(); };
  std::vector<Line> lines;
  for (const std::string& text :
       tell_all(*store, "unisono/", rank, size, write_line(rank, size), timeout, look)) {
    lines.push_back(read_line(text));
  }
  check_sizes(lines);
  const std::string id = meeting.apart ? "" : shared_world(lines);
  if (id.empty()) {
    return {.world = connect(store, lines, rank, size, timeout, members, look), .part = {}};
  }
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(known_mutex);
    world = known_worlds()[id].world.lock();
  }
  TORCH_CHECK(world != nullptr, "unisono: a group was destroyed while another was made from it");
  std::vector<int> there;
  for (const Line& line : lines) {
    there.push_back(line.worlds.at(id));
  }
  const std::uint64_t number = std::stoull(lines.front().secret.substr(0, 16), nullptr, 16);
  auto part = std::make_unique<unisono::Communicator>(world->all.subgroup(there, number));
  return {.world = std::move(world), .part = std::move(part)};
}

// Returns true if the error is about another rank or about all ranks, not about this rank.
bool is_of_others(unisono::ErrorCode code) {
  if (code == unisono::ErrorCode::aborted) {
    return !unisono_signals::is_interrupted();
  }
  return code == unisono::ErrorCode::peer_lost || code == unisono::ErrorCode::connection ||
         code == unisono::ErrorCode::timeout || code == unisono::ErrorCode::mismatch;
}

std::string without_name(const std::string& text) {
  constexpr std::string_view kOurs = "unisono: ";
  return text.starts_with(kOurs) ? text.substr(kOurs.size()) : text;
}

// A store may outlive the groups that used it, as torchrun's does, and PyTorch reuses the names of
// groups. Each rank therefore counts its rendezvous in the store, so that it never reads keys of an
// earlier one.
c10::intrusive_ptr<c10d::Store> of_this_meeting(const c10::intrusive_ptr<c10d::Store>& store,
                                                int rank) {
  try {
    const std::int64_t number = store->add("unisono/meetings/" + std::to_string(rank), 1);
    return c10::make_intrusive<c10d::PrefixStore>("unisono/" + std::to_string(number), store);
  } catch (const std::exception& error) {
    throw c10::DistBackendError(std::string("unisono: the store does not answer; check whether the "
                                            "rank that hosts it has ended\n") +
                                error.what());
  }
}

}  // namespace

Place meet(const c10::intrusive_ptr<c10d::Store>& whole_store, const Meeting& meeting) {
  const int rank = meeting.rank;
  const auto store = of_this_meeting(whole_store, rank);
  try {
    return meet_others(store, meeting);
  } catch (const RefusedByAnother&) {
    throw;
  } catch (const unisono::Error& error) {
    if (error.code() != unisono::ErrorCode::config) {
      throw_if_refused(*store, rank);  // another rank's refusal may explain the cause better
    }
    if (is_of_others(error.code())) {
      tell_finding(*store, rank, error.what());
    } else {
      tell_refusal(*store, rank, error.what());
    }
    if (error.code() == unisono::ErrorCode::aborted) {
      unisono_signals::throw_if_interrupted();
    }
    std::rethrow_exception(to_torch(error));
  } catch (const c10::DistBackendError& error) {  // differing sizes, missing ranks
    tell_finding(*store, rank, without_name(error.what_without_backtrace()));
    throw;
  } catch (const c10::Error& error) {
    tell_refusal(*store, rank, without_name(error.what_without_backtrace()));
    throw;
  } catch (const pybind11::error_already_set&) {
    tell_refusal(*store, rank, "it was interrupted");
    throw;
  } catch (const std::exception& error) {
    tell_refusal(*store, rank, error.what());
    throw;
  }
}

namespace {

constexpr char kBetween = '|';  // separates the fields of a handle
constexpr std::string_view kHandle = "unisono";

// Returns the first rank's store, which all ranks can reach.
c10::intrusive_ptr<c10d::Store> common_store(const c10::intrusive_ptr<c10d::Store>& own,
                                             const Handle& first,
                                             std::chrono::milliseconds timeout) {
  if (first.store.empty()) {
    throw c10::DistBackendError(
        "unisono: these ranks are on several hosts, so they need the TCPStore of the first handle, "
        "but its group was made with another kind of store\nmake the groups with TCPStores");
  }
  if (own != nullptr && address_of(*own) == first.store) {
    return own;
  }
  const std::size_t colon = first.store.rfind(':');
  std::string host = first.store.substr(0, colon);
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(first.store.substr(colon + 1)));
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace

Handle new_handle(c10d::Store& store) {
  return {.secret = unisono::random_hex(16),
          .host = host_identity(),
          .name = machine_name(),
          .has_token = !variable("UNISONO_TOKEN").empty(),
          .store = address_of(store)};
}

std::string write_handle(const Handle& handle) {
  std::ostringstream text;
  text << kHandle << kBetween << handle.rank << kBetween << handle.made_with << kBetween
       << handle.secret << kBetween << handle.host << kBetween << handle.name << kBetween
       << (handle.has_token ? 1 : 0) << kBetween << handle.store;
  return text.str();
}

Handle read_handle(const std::string& text) {
  std::vector<std::string> fields(1);
  for (const char c : text) {
    c == kBetween ? fields.emplace_back() : fields.back() += c;
  }
  TORCH_CHECK_VALUE(fields.size() == 8 && fields[0] == kHandle && fields[3].size() == 32,
                    "unisono:reconfigure: \"", text,
                    "\" is no handle of a unisono group; get them ",
                    "by get_reconfigure_handle() of each rank");
  try {
    return {.rank = std::stoi(fields[1]),
            .made_with = std::stoll(fields[2]),
            .secret = fields[3],
            .host = fields[4],
            .name = fields[5],
            .has_token = fields[6] == "1",
            .store = fields[7]};
  } catch (const std::exception&) {
    refuse("reconfigure", "\"" + text + "\" is a damaged handle");
  }
}

Place meet_by_handles(const c10::intrusive_ptr<c10d::Store>& store,
                      const std::vector<std::string>& handles, int rank, std::int64_t number,
                      std::chrono::milliseconds timeout) {
  check_environment_once(rank);
  // Ranks with different members or numbers must not meet.
  unisono::Hash name;
  name.add(static_cast<std::uint64_t>(number));
  std::vector<Line> lines;
  for (const std::string& text : handles) {
    name.add(text);
    const Handle handle = read_handle(text);
    lines.push_back({.host = handle.host,
                     .name = handle.name,
                     .secret = handle.secret,
                     .size = static_cast<int>(handles.size()),
                     .has_token = handle.has_token,
                     .worlds = {}});
  }
  std::ostringstream hex;
  hex << std::hex << std::setw(16) << std::setfill('0') << name.value();
  lines.front().secret = hex.str() + lines.front().secret.substr(16);
  try {
    c10::intrusive_ptr<c10d::Store> common;
    if (on_several_hosts(lines)) {
      common = c10::make_intrusive<c10d::PrefixStore>(
          "unisono/reconfigure/" + hex.str(),
          common_store(store, read_handle(handles.front()), timeout));
    }
    return {
        .world = connect(common, lines, rank, static_cast<int>(handles.size()), timeout, {}, [] {}),
        .part = {}};
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
