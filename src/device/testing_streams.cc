#include "device/testing_streams.h"

#include <algorithm>
#include <utility>

namespace unisono::device::fake {
namespace {

// CU_STREAM_CAPTURE_MODE_...
constexpr int kGlobal = 0;
constexpr int kRelaxed = 2;

void join(std::vector<std::size_t>& after, const std::vector<std::size_t>& others) {
  after.insert(after.end(), others.begin(), others.end());
}

// Returns true if all work in a capture precedes the end of its first stream.
bool is_joined(const Capture& capture, const Stream& first) {
  const auto& pieces = capture.graph->pieces;
  std::vector<bool> before(pieces.size());
  std::vector<std::size_t> next = capture.streams.at(&first);
  while (!next.empty()) {
    const std::size_t piece = next.back();
    next.pop_back();
    if (!before[piece]) {
      before[piece] = true;
      join(next, pieces[piece].after);
    }
  }
  return std::all_of(before.begin(), before.end(), [](bool is_before) { return is_before; });
}

}  // namespace

Captures& captures() {
  static auto* const one = new Captures;  // streams of an exiting process may still run
  return *one;
}

int& capture_mode() {
  thread_local int mode = kGlobal;
  return mode;
}

void Graph::replay() const {
  std::vector<std::atomic<bool>> done(pieces.size());
  std::map<const Stream*, std::vector<std::size_t>> branches;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    branches[pieces[i].branch].push_back(i);
  }
  std::vector<std::thread> threads;
  for (const auto& branch : branches) {
    threads.emplace_back([this, &done, &order = branch.second] {
      for (const std::size_t i : order) {
        for (const std::size_t before : pieces[i].after) {
          while (!done[before]) {
            std::this_thread::yield();
          }
        }
        pieces[i].work();
        done[i] = true;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::shared_ptr<Capture> Captures::of(const Stream& stream) const {
  const auto found = std::find_if(active_.begin(), active_.end(), [&](const auto& capture) {
    return capture->streams.contains(&stream);
  });
  return found == active_.end() ? nullptr : *found;
}

int Captures::begin(const Stream& stream, int mode) {
  const std::lock_guard lock(mutex_);
  if (of(stream) != nullptr) {
    return kInvalidValue;
  }
  const auto capture = std::make_shared<Capture>();
  capture->id = ++latest_;
  capture->mode = mode;
  capture->streams[&stream] = {};
  active_.push_back(capture);
  return 0;
}

int Captures::end(const Stream& stream, std::shared_ptr<Graph>* graph) {
  const std::lock_guard lock(mutex_);
  const auto capture = of(stream);
  if (capture == nullptr) {
    return kCaptureUnmatched;
  }
  std::erase(active_, capture);
  if (capture->failed) {
    return kCaptureInvalidated;
  }
  if (!is_joined(*capture, stream)) {
    return kCaptureUnjoined;
  }
  *graph = capture->graph;
  return 0;
}

bool Captures::take(const Stream& stream, const Work& work) {
  const std::lock_guard lock(mutex_);
  const auto capture = of(stream);
  if (capture == nullptr) {
    return false;
  }
  auto& after = capture->streams[&stream];
  auto& pieces = capture->graph->pieces;
  pieces.push_back({.branch = &stream, .work = work, .after = after});
  after = {pieces.size() - 1};
  return true;
}

std::uint64_t Captures::id_of(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto capture = of(stream);
  return capture == nullptr ? 0 : capture->id;
}

bool Captures::record(const Stream& stream, Event& event) {
  const std::lock_guard lock(mutex_);
  const auto capture = of(stream);
  event.capture = capture;
  event.is_captured = capture != nullptr;
  event.after = event.is_captured ? capture->streams[&stream] : std::vector<std::size_t>();
  return event.is_captured;
}

bool Captures::wait(const Stream& stream, const Event& event, int* error) {
  const std::lock_guard lock(mutex_);
  const auto capture = of(stream);
  const auto its = event.capture.lock();
  if (!event.is_captured) {
    if (capture == nullptr) {
      return false;
    }
    if (event.recorded != 0) {
      capture->failed = true;
      *error = kCaptureIsolation;
    }
    return true;
  }
  if (std::find(active_.begin(), active_.end(), its) == active_.end()) {
    *error = kCapturedEvent;
  } else if (capture != nullptr && capture != its) {
    capture->failed = its->failed = true;
    *error = kCaptureMerge;
  } else {
    join(its->streams[&stream], event.after);
  }
  return true;
}

int Captures::query(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (event.is_captured) {
    if (const auto its = event.capture.lock()) {
      its->failed = true;
    }
    return kCapturedEvent;
  }
  return unsafe_here();
}

int Captures::query(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (const auto capture = of(stream)) {
    capture->failed = true;
    return kCaptureUnsupported;
  }
  return unsafe_here();
}

int Captures::unsafe() {
  const std::lock_guard lock(mutex_);
  return unsafe_here();
}

// REQUIRES: mutex_.
int Captures::unsafe_here() {
  int error = 0;
  for (const auto& capture : active_) {
    const bool mine = capture->thread == std::this_thread::get_id() && capture->mode != kRelaxed;
    if (capture_mode() != kRelaxed && (mine || capture->mode == kGlobal)) {
      capture->failed = true;
      error = kCaptureUnsupported;
    }
  }
  return error;
}

std::uint64_t Stream::next_id() {
  static std::atomic<std::uint64_t> latest = 0;
  return ++latest;
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::add(Work work) {
  if (captures().take(*this, work)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  memory().work_begins();
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

bool Stream::is_done() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void Stream::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
}

int Stream::record(const std::shared_ptr<Event>& event) {
  if (event->context != &context_) {
    return kInvalidHandle;
  }
  if (!captures().record(*this, *event)) {
    const std::uint64_t ticket = ++event->recorded;
    add([event, ticket] { event->done = ticket; });
  }
  return 0;
}

int Stream::wait_for(const std::shared_ptr<Event>& event) {
  int error = 0;
  if (!captures().wait(*this, *event, &error)) {
    const std::uint64_t ticket = event->recorded;
    add([event, ticket] {
      while (event->done < ticket) {
        std::this_thread::yield();
      }
    });
  }
  return error;
}

void Stream::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    const Work work = queue_.front();
    lock.unlock();
    work();
    memory().work_ends();
    lock.lock();
    queue_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace unisono::device::fake
