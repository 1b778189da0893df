#include "trace/recorder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/bytes_text.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/host_identity.h"
#include "base/own_file.h"
#include "base/unique_fd.h"
#include "unisono/error.hpp"

namespace unisono::trace {
namespace {

constexpr std::uint64_t kUsualEvents = 32768;
constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 24;
// Limits a file, because a program that connects again and again must not fill the memory; later
// worlds are not recorded.
constexpr off_t kMostBytes = off_t{64} << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error("cannot write to '" + path + "': " + why);
}

std::uint64_t events_from_env() {
  const std::string text = read_env("UNISONO_RECORD_EVENTS").value_or("");
  if (text.empty()) {
    return kUsualEvents;
  }
  std::uint64_t events = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), events);
  if (error != std::errc() || end != text.data() + text.size() || events < 1 ||
      events > kMostEvents) {
    throw Error(ErrorCode::config, "UNISONO_RECORD_EVENTS is '" + text +
                                       "'\nset it to how many events are kept, 1 to " +
                                       std::to_string(kMostEvents));
  }
  return events;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns true if the kernel itself uses the processor's counter as its clock.
bool counter_is_clock() {
  const std::string source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return source == "tsc" || source == "arch_sys_counter";
}

template <std::size_t kSize>
void copy_text(char (&to)[kSize], std::string_view text) {
  const std::size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

// A file that grows by one recording, and is restored if that fails.
struct GrowingFile {
  UniqueFd fd = UniqueFd();
  std::string path = {};
  bool is_in_folder = false;  // named by the process, in the user's folder
  off_t size = 0;             // size before the recording

  void allocate(off_t offset, off_t bytes);
  void restore() const {
    [[maybe_unused]] const int done = ::ftruncate(fd.get(), size);
    if (is_in_folder && size == 0) {
      ::unlink(path.c_str());
    }
  }
  [[noreturn]] void refuse_and_restore(const std::string& why) const {
    restore();
    refuse(path, why);
  }
};

// Allocates now, instead of failing when the memory is first touched.
void GrowingFile::allocate(off_t offset, off_t bytes) {
  const std::string room = "a recording takes " + format_bytes(static_cast<std::uint64_t>(bytes));
  rlimit limit = {};
  // Beyond this limit the kernel would end the program with SIGXFSZ.
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(offset + bytes) > limit.rlim_cur) {
    refuse_and_restore("files may have " + format_bytes(std::uint64_t{limit.rlim_cur}) +
                       " (ulimit -f), and " + room);
  }
  if (const int error = ::posix_fallocate(fd.get(), offset, bytes); error != 0) {
    refuse_and_restore(std::string(std::strerror(error)) + " (" + room + ")");
  }
}

GrowingFile open_file(const std::string& path) {
  struct stat status = {};
  const bool names_folder = path.ends_with('/');
  if (names_folder && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    refuse(path, std::strerror(errno));
  }
  std::string file = path;
  const bool is_folder =
      names_folder || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  if (is_folder) {
    std::array<char, 256> host = {};
    ::gethostname(host.data(), host.size() - 1);
    std::error_code ignored;  // the program may change its working directory later
    file = std::filesystem::absolute(path, ignored).string() + "/" + std::string(host.data()) +
           "-" + std::to_string(::getpid()) + ".events";
  }
  // A file that the user names may be a link, such as one of /proc. A name inside a folder is
  // chosen here.
  std::string why;
  UniqueFd fd = is_folder ? open_own_file(file, O_RDWR | O_CREAT, why)
                          : UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) {
    refuse(file, why.empty() ? std::strerror(errno) : why);
  }
  // Several ranks share the file if they are threads, or programs that run one after the other.
  if (::flock(fd.get(), LOCK_EX) != 0 || ::fstat(fd.get(), &status) != 0) {
    refuse(file, std::strerror(errno));
  }
  return {.fd = std::move(fd), .path = file, .is_in_folder = is_folder, .size = status.st_size};
}

}  // namespace

// Identifies one boot of one kernel, and one time namespace.
std::uint64_t recording_clock() {
  std::array<char, 64> name_space = {};
  const ssize_t size = ::readlink("/proc/self/ns/time", name_space.data(), name_space.size() - 1);
  return Hash().add(boot_id()).add(size > 0 ? name_space.data() : "").value();
}

RecordingSettings recording_settings() {
  std::string path = read_env("UNISONO_RECORD").value_or("");
  const std::uint64_t events = path.empty() ? 0 : events_from_env();
  return {.path = std::move(path), .events = events};
}

std::unique_ptr<Recorder> Recorder::open_for(int rank, const RecordingSettings& settings) {
  if (settings.path.empty()) {
    return nullptr;
  }
  try {
    return open(settings.path, settings.events);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "unisono: nothing of rank %d is recorded: %s\n", rank, error.what());
    return nullptr;
  }
}

std::unique_ptr<Recorder> Recorder::open(const std::string& path, std::uint64_t events) {
  const std::uint64_t blocks = (events + recording::kBlockEvents - 1) / recording::kBlockEvents;
  events = std::max<std::uint64_t>(2, blocks) * recording::kBlockEvents;
  const std::size_t ring = events * sizeof(recording::Event);
  const std::size_t bytes =
      recording::kRing + (ring + recording::kPage - 1) / recording::kPage * recording::kPage;
  GrowingFile file = open_file(path);
  const auto page = static_cast<off_t>(recording::kPage);
  const off_t offset = (file.size + page - 1) / page * page;
  if (offset > kMostBytes) {
    // A program that connects again and again has recorded enough. Reports this only once.
    static std::atomic_flag told;
    if (told.test_and_set()) {
      return nullptr;
    }
    refuse(file.path, "it has " + std::to_string(kMostBytes >> 20) +
                          " MiB of recordings of this process already");
  }
  file.allocate(offset, static_cast<off_t>(bytes));
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        file.fd.get(), offset);
  if (memory == MAP_FAILED) {
    file.refuse_and_restore(std::strerror(errno));
  }
  ::flock(file.fd.get(), LOCK_UN);  // the mapping would hold the lock
  auto* const base = static_cast<std::byte*>(memory);
  auto& header = *new (base) recording::RecordingHeader();
  header.bytes = bytes;
  header.events = events;
  header.pid = static_cast<std::int32_t>(::getpid());
  header.clock = recording_clock();
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  copy_text(header.host, host.data());
  const bool counter = counter_is_clock();
  recording::note_clock(header.first, counter);
  return std::unique_ptr<Recorder>(new Recorder(base, bytes, counter, std::move(file.path)));
}

Recorder::Recorder(std::byte* memory, std::size_t bytes, bool counter, std::string file)
    : file_(std::move(file)),
      memory_(memory),
      bytes_(bytes),
      view_{.header = reinterpret_cast<recording::RecordingHeader*>(memory),
            .ring = reinterpret_cast<recording::Event*>(memory + recording::kRing),
            .counter = counter} {}

Recorder::~Recorder() {
  if (::getpid() == header().pid) {  // not in the child of a fork
    recording::note_clock(header().latest, view_.counter);
    header().left = 1;
    say_if_removed();
  }
  ::munmap(memory_, bytes_);
}

void Recorder::say_if_removed() const {
  if (!file_.empty() && ::access(file_.c_str(), F_OK) != 0) {
    std::fprintf(stderr, "unisono: the recording of rank %d is lost: '%s' was removed\n",
                 view_.header->rank, file_.c_str());
  }
}

void Recorder::introduce(int rank, int size, std::string_view job, std::span<const int> first_ranks,
                         int world) {
  world_size_ = size;
  header().rank = rank;
  header().size = size;
  header().world = world;
  copy_text(header().job, job);
  if (!first_ranks.empty()) {
    const std::lock_guard lock(tables_);
    header().first_ranks = add_members(first_ranks);
  }
  recording::note_clock(header().latest, view_.counter);
  header().magic.store(recording::kMagic, std::memory_order_release);
}

void Recorder::note_abort(ErrorCode code, int culprit, int reporter,
                          std::string_view text) noexcept {
  recording::Abort& abort = header().abort;
  std::int32_t none = 0;
  if (!abort.state.compare_exchange_strong(none, 1, std::memory_order_relaxed)) {
    return;
  }
  abort.code = static_cast<std::int32_t>(code);
  abort.rank = culprit;
  abort.reporter = reporter;
  abort.ticks = recording::ticks(view_.counter);
  copy_text(abort.text, text);
  abort.state.store(2, std::memory_order_release);
}

TraceWriter Recorder::writer(std::uint64_t group, std::span<const int> members) {
  const int number = group_number(group, members);
  if (number < 0) {
    header().unnamed.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  return {view_, number};
}

int Recorder::group_number(std::uint64_t id, std::span<const int> members) {
  const std::lock_guard lock(tables_);
  const int size = static_cast<int>(members.size());
  const bool is_world = id == 0 && size == world_size_;
  const int number = header().groups.load(std::memory_order_relaxed);
  for (int i = 0; i < number; ++i) {  // a group also has a writer for its transfers
    if (header().group[i].id == id && header().group[i].size == size) {
      return i;
    }
  }
  const int begin = is_world || number == recording::kGroups ? -1 : add_members(members);
  if (number == recording::kGroups || (!is_world && begin < 0)) {
    return -1;
  }
  recording::GroupRecord& group = header().group[number];
  group.id = id;
  group.size = size;
  group.members = begin;
  header().groups.store(number + 1, std::memory_order_release);
  return number;
}

int Recorder::add_members(std::span<const int> members) {
  const int begin = header().members.load(std::memory_order_relaxed);
  const int size = static_cast<int>(members.size());
  if (begin + size > recording::kMembers) {
    return -1;
  }
  std::copy(members.begin(), members.end(), &header().member[begin]);
  header().members.store(begin + size, std::memory_order_relaxed);
  return begin;
}

int Recorder::name(Collective collective, std::string_view algorithm) {
  recording::Name wanted;
  copy_text(wanted.collective, to_string(collective));
  copy_text(wanted.algorithm, algorithm);
  return number_of(wanted);
}

int Recorder::label_number(std::string_view text) {
  if (text.empty()) {
    return recording::kNoLabel;
  }
  recording::Name wanted;
  copy_text(wanted.algorithm, text);
  return number_of(wanted);
}

void Recorder::label(std::string_view text) {
  header().label.store(label_number(text), std::memory_order_relaxed);
}

void Recorder::label_group(std::uint64_t group, std::span<const int> members,
                           std::string_view text) {
  const int number = group_number(group, members);
  if (number >= 0) {
    header().group[number].label.store(label_number(text), std::memory_order_relaxed);
  }
}

// The last name stands for all names that do not fit.
int Recorder::number_of(const recording::Name& wanted) {
  const std::lock_guard lock(tables_);
  const int count = header().names.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    const recording::Name& name = header().name[i];
    if (std::strcmp(name.collective, wanted.collective) == 0 &&
        std::strcmp(name.algorithm, wanted.algorithm) == 0) {
      return i;
    }
  }
  if (count == recording::kNames) {
    return recording::kNames - 1;
  }
  header().name[count] = count == recording::kNames - 1
                             ? recording::Name{.collective = "other", .algorithm = "other"}
                             : wanted;
  header().names.store(count + 1, std::memory_order_release);
  return count;
}

}  // namespace unisono::trace
