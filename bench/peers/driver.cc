// Benchmark program for one library: a group of ranks that runs one row at a time on command.
//
//   bench_peer_NAME --directory DIR [--rank R --size N]
//
// DIR contains the pipes and the control block (channel.h, control.h). Rank 0 reads rows and
// answers; the other ranks sleep between rows.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>
#include <stdexcept>

#include "peers/channel.h"
#include "peers/check.h"
#include "peers/control.h"
#include "peers/peer.h"
#include "peers/timing.h"

namespace unisono::bench {

Buffer Peer::allocate(std::size_t bytes, Memory /*memory*/) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("out of memory");
  }
  return {memory, [bytes](void* data) { munmap(data, bytes); }};
}

namespace {

constexpr const char* kQuit = "quit";
// Allocates at least a page, so that even the smallest row has memory.
constexpr std::size_t kPageBytes = 4096;

const std::map<std::string, Kind> kKinds = {{"all_reduce", Kind::all_reduce},
                                            {"all_gather", Kind::all_gather},
                                            {"reduce_scatter", Kind::reduce_scatter},
                                            {"all_to_all", Kind::all_to_all},
                                            {"barrier", Kind::barrier},
                                            {"exchange", Kind::exchange},
                                            {"window", Kind::window},
                                            {"broadcast", Kind::broadcast},
                                            {"reduce", Kind::reduce},
                                            {"gather", Kind::gather},
                                            {"scatter", Kind::scatter}};
const std::map<std::string, Memory> kMemories = {{"ordinary", Memory::ordinary},
                                                 {"registered", Memory::registered},
                                                 {"persistent", Memory::persistent}};

struct Row {
  Operation operation;
  Timing timing;
};

Row parse_row(const std::string& line) {
  const Request request = parse_request(line);
  const auto kind = kKinds.find(request.name);
  const auto memory = kMemories.find(request.text("memory", "ordinary"));
  const auto dtype = parse_dtype(request.text("dtype", "f32"));
  if (kind == kKinds.end() || memory == kMemories.end() || !dtype) {
    throw std::runtime_error("not a row: " + line);
  }
  Row row;
  row.operation.kind = kind->second;
  row.operation.memory = memory->second;
  row.operation.dtype = *dtype;
  row.operation.count = static_cast<std::size_t>(request.number("bytes", 8)) / size_of(*dtype);
  row.timing.fresh = request.number("fresh", 1) != 0;
  row.timing.budget_ms = static_cast<double>(request.number("budget_ms", 60));
  return row;
}

// Rewrites the whole input and reads the whole output, as an application does between calls.
void rewrite_and_read(std::uint32_t* in, std::size_t in_words, const std::uint32_t* out,
                      std::size_t out_words, bool same) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < out_words; ++i) {
    sum += out[i];
  }
  const volatile std::uint32_t sink = sum;
  // Writes bits that are small finite numbers in every dtype. In place, this also overwrites the
  // previous sums.
  const std::uint32_t bits = 0x34343434U + ((sink & 1U) | (same ? 2U : 0U));
  for (std::size_t i = 0; i < in_words; ++i) {
    in[i] = bits;
  }
}

std::string answer(const Peer& peer, Samples& samples, std::uint64_t wrong) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      R"({"implementation":"%s","version":"%s","ranks":%d,"median_us":%.4f,)"
      R"("mean_us":%.4f,"min_us":%.4f,"p90_us":%.4f,"samples":%zu,"calls_per_sample":%u,"wrong":%llu})",
      peer.name().c_str(), peer.version().c_str(), peer.size(), quantile(samples.call_us, 0.5),
      std::accumulate(samples.call_us.begin(), samples.call_us.end(), 0.0) /
          static_cast<double>(samples.call_us.size()),
      quantile(samples.call_us, 0.0), quantile(samples.call_us, 0.9), samples.call_us.size(),
      samples.calls_per_batch, static_cast<unsigned long long>(wrong));
  return text;
}

// Runs one row on every rank. Rank 0 returns the answer.
std::string run_row(Peer& peer, Control& control, Row row) {
  const int rank = peer.rank();
  const int size = peer.size();
  Operation& operation = row.operation;
  const std::size_t in_bytes = input_elements(operation, size) * size_of(operation.dtype);
  const std::size_t out_bytes = output_elements(operation, size) * size_of(operation.dtype);
  const bool in_place = operation.kind == Kind::broadcast;
  const Buffer in = peer.allocate(in_bytes + kPageBytes, operation.memory);
  const Buffer out = in_place ? in : peer.allocate(out_bytes + kPageBytes, operation.memory);
  operation.in = in.get();
  operation.out = out.get();
  std::memset(out.get(), 0xff, out_bytes + kPageBytes);
  fill_input(operation, rank, size);
  const std::function<void()> call = peer.bind(operation);
  if (!call) {
    return R"({"unsupported":true})";
  }
  call();
  std::uint64_t& my_wrong = control.block().ranks[rank].wrong;
  my_wrong = count_wrong(operation, rank, size);
  const auto refresh = [&] {
    rewrite_and_read(static_cast<std::uint32_t*>(in.get()), in_bytes / sizeof(std::uint32_t),
                     static_cast<const std::uint32_t*>(out.get()),
                     out_bytes / sizeof(std::uint32_t), in_place);
  };
  Samples samples = time_calls(control, rank, size, row.timing, call, refresh);
  // Checks the result once more, after all timed calls.
  fill_input(operation, rank, size);
  call();
  my_wrong += count_wrong(operation, rank, size);
  control.barrier();
  if (rank != 0) {
    return {};
  }
  std::uint64_t wrong = 0;
  for (int i = 0; i < size; ++i) {
    wrong += control.block().ranks[i].wrong;
  }
  return answer(peer, samples, wrong);
}

void serve(Peer& peer, const LaunchOptions& options) {
  Control control(options.directory, peer.rank(), peer.size());
  if (peer.rank() != 0) {
    for (;;) {
      const std::string line = control.await();
      if (line == kQuit) {
        return;
      }
      run_row(peer, control, parse_row(line));
      control.barrier();
    }
  }
  Channel channel(options.directory);
  channel.write_line(R"({"ready":true})");
  for (;;) {
    const std::string line = channel.read_line().value_or(kQuit);
    control.publish(line);
    control.await();
    if (line == kQuit) {
      return;
    }
    const std::string json = run_row(peer, control, parse_row(line));
    control.barrier();
    channel.write_line(json);
  }
}

LaunchOptions parse_arguments(int argc, char** argv) {
  LaunchOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--directory") {
      options.directory = value;
    } else if (name == "--rank") {
      options.rank = std::stoi(value);
    } else if (name == "--size") {
      options.size = std::stoi(value);
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  if (options.directory.empty()) {
    throw std::runtime_error("--directory is missing");
  }
  return options;
}

}  // namespace
}  // namespace unisono::bench

int main(int argc, char** argv) {
  try {
    const auto options = unisono::bench::parse_arguments(argc, argv);
    const auto peer = unisono::bench::make_peer(options);
    // Pins the rank after the library has started, so that the library's helper threads are not
    // pinned.
    unisono::bench::pin_rank(peer->rank(), peer->size());
    unisono::bench::serve(*peer, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
