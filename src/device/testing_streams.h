// Streams, events and graphs of the test driver. Streams are threads. Captured work becomes a
// graph, whose branches run concurrently and wait for each other where the streams did. As on a
// GPU, a forbidden call during a capture ends the capture.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/testing_memory.h"

namespace unisono::device::fake {

inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotReady = 600;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureInvalidated = 901;
inline constexpr int kCaptureMerge = 902;
inline constexpr int kCaptureUnmatched = 903;
inline constexpr int kCaptureUnjoined = 904;
inline constexpr int kCaptureIsolation = 905;
inline constexpr int kCapturedEvent = 907;

using Work = std::function<void()>;

class Stream;

struct Graph {
  struct Piece {
    const Stream* branch = nullptr;
    Work work = nullptr;
    std::vector<std::size_t> after = {};
  };
  std::vector<Piece> pieces = {};

  void replay() const;
};

struct Capture {
  std::uint64_t id = 0;
  int mode = 0;
  std::thread::id thread = std::this_thread::get_id();
  bool failed = false;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::map<const Stream*, std::vector<std::size_t>> streams = {};  // predecessors of the next work
};

struct Event {
  const Context* context = nullptr;
  std::atomic<std::uint64_t> recorded = 0;
  std::atomic<std::uint64_t> done = 0;
  std::weak_ptr<Capture> capture = {};  // the last capture that recorded this event
  bool is_captured = false;
  std::vector<std::size_t> after = {};
};

// All captures of the process. Functions return the driver's error codes, 0 for none.
class Captures {
 public:
  int begin(const Stream& stream, int mode);
  int end(const Stream& stream, std::shared_ptr<Graph>* graph);
  // Adds work to the stream's capture. Returns false if the stream is not capturing.
  bool take(const Stream& stream, const Work& work);
  // Returns the id of the stream's capture, or 0.
  std::uint64_t id_of(const Stream& stream);
  // Return true if the event or the wait became part of a capture. Update the captures affected.
  bool record(const Stream& stream, Event& event);
  bool wait(const Stream& stream, const Event& event, int* error);
  int query(const Event& event);
  int query(const Stream& stream);
  // Checks a call that might block, or make others block; a thread may make it only in relaxed mode
  // during captures.
  int unsafe();

 private:
  std::shared_ptr<Capture> of(const Stream& stream) const;
  int unsafe_here();

  std::mutex mutex_ = {};  // guards all captures and their events
  std::vector<std::shared_ptr<Capture>> active_ = {};
  std::uint64_t latest_ = 0;
};

Captures& captures();
// The thread's mode (cuThreadExchangeStreamCaptureMode).
int& capture_mode();

// Runs work in submission order.
class Stream {
 public:
  explicit Stream(Context& context) : context_(context), thread_([this] { loop(); }) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  Context& context() const { return context_; }
  // Returns an id that is unique among all streams.
  std::uint64_t id() const { return id_; }
  void add(Work work);
  bool is_done();
  void wait();
  int record(const std::shared_ptr<Event>& event);
  int wait_for(const std::shared_ptr<Event>& event);

 private:
  void loop();

  static std::uint64_t next_id();

  Context& context_;
  const std::uint64_t id_ = next_id();
  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  std::deque<Work> queue_ = {};
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace unisono::device::fake
