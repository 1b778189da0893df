// The receiving half of a link. The payload of a frame is read to where its reader finds it; only
// what came in one piece with short messages is copied there.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/crc32c.h"
#include "transport/tcp/link.h"

namespace unisono::tcp {
namespace {

// A call of receive() reads a stream so often at most; it stops where the kernel has no more.
constexpr int kReads = 4;

const char* what_is_bad(BadFrame bad) noexcept {
  switch (bad) {
    case BadFrame::none:
      return "";
    case BadFrame::check:
      return "its check is wrong";
    case BadFrame::version:
      return "another version";
    case BadFrame::kind:
      return "an unknown kind";
    case BadFrame::length:
      return "too long";
  }
  return "";
}

}  // namespace

bool Link::receive(const Lane* patient, const Lane* eager) noexcept {
  bool advanced = false;
  eager_ = eager;
  own_ = patient != nullptr ? patient : eager;
  for (Stream& from : streams_) {
    const bool stays = from.parked && from.lane == patient;
    advanced |= !failure_ && !from.ended && !stays && receive(from);
  }
  note_unread();
  return advanced;
}

// What TLS has read ahead wakes nobody: whoever goes to sleep must ask.
void Link::note_unread() noexcept {
  if (!encrypted_) {
    return;
  }
  const bool unread =
      !gone() && std::any_of(streams_.begin(), streams_.end(), [](const Stream& from) {
        return !from.ended && from.channel.has_unread();
      });
  if (unread != unread_) {
    unread_ = unread;
    events_->unread.fetch_add(unread ? 1 : -1, std::memory_order_relaxed);
  }
}

// A part of the payload has come. It is summed while it is in the cache.
void Link::took(Stream& from, const std::byte* part, std::size_t bytes) noexcept {
  from.missing -= bytes;
  if (checksum_) {
    from.sum = kernels::crc32c({part, bytes}, from.sum);
  }
}

bool Link::receive(Stream& from) noexcept {
  if (from.parked) {
    if (!from.channel.is_readable()) {
      return false;  // it blocks nothing
    }
    if (!unpark(from)) {
      return false;
    }
  }
  bool advanced = false;
  for (int reads = 0; reads < kReads; ++reads) {
    // Behind a long message most likely comes another: its payload shall not be read ahead.
    const std::size_t ahead = from.end - from.begin;
    if (from.begin != 0) {
      std::memmove(from.staged.get(), from.staged.get() + from.begin, ahead);
      from.begin = 0;
      from.end = ahead;
    }
    const std::size_t room = from.long_ones ? kHeaderBytes - ahead : kStagedBytes - ahead;
    iovec parts[2] = {};
    std::size_t count = 0;
    std::size_t asked = room;
    if (from.missing != 0) {
      const bool drop = from.target == nullptr;
      const std::size_t part = drop ? std::min(from.missing, dropped_.size()) : from.missing;
      parts[count++] = {drop ? dropped_.data() : from.target, part};
      asked = part + (part == from.missing ? room : 0);
    }
    if (from.missing == 0 || asked > parts[0].iov_len) {
      parts[count++] = {from.staged.get() + from.end, room};
    }
    const ssize_t got = from.channel.receive({parts, count});
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_stream(from, got == 0 ? 0 : errno);
      }
      return advanced;
    }
    advanced = true;
    const auto bytes = static_cast<std::size_t>(got);
    heard_ += bytes;
    const std::size_t direct = std::min(from.missing, bytes);
    if (direct != 0) {
      took(from, static_cast<const std::byte*>(parts[0].iov_base), direct);
      from.target += from.target != nullptr ? direct : 0;
    }
    from.end += bytes - direct;
    if (!parse(from) || from.parked || (bytes < asked && !from.channel.has_unread())) {
      return advanced;
    }
  }
  return advanced;
}

// The first stream says whether the peer has left; the others may be closed before that is read.
void Link::end_stream(Stream& from, int error) noexcept {
  from.ended = true;
  error = error == 0 ? from.error : error;
  from.error = error;
  if (&from == streams_.data()) {
    fail(error == 0 || error == ECONNRESET || error == EPIPE ? Reason::closed
         : error == EPROTO && encrypted_                     ? Reason::tls
                                                             : Reason::reset,
         error);
  }
}

// Frames as far as they have come. False: nothing more comes on this stream.
bool Link::parse(Stream& from) noexcept {
  for (;;) {
    const std::size_t ahead = from.end - from.begin;
    if (from.reading) {
      const std::size_t bytes = std::min(from.missing, ahead);
      if (from.target != nullptr && bytes != 0) {
        std::memcpy(from.target, from.staged.get() + from.begin, bytes);
        from.target += bytes;
      }
      took(from, from.staged.get() + from.begin, bytes);
      from.begin += bytes;
      if (from.missing != 0) {
        return true;
      }
      end_frame(from);
      if (from.ended) {
        return false;
      }
      continue;
    }
    if (ahead < kHeaderBytes) {
      return true;
    }
    if (!begin_frame(from)) {
      return false;
    }
  }
}

bool Link::begin_frame(Stream& from) noexcept {
  const std::span<const std::byte, kHeaderBytes> bytes(from.staged.get() + from.begin,
                                                       kHeaderBytes);
  const BadFrame bad = decode(bytes, from.header);
  if (bad != BadFrame::none) {
    fail(Reason::bad_frame, 0, what_is_bad(bad));
    return false;
  }
  from.begin += kHeaderBytes;
  from.reading = true;
  from.missing = from.header.bytes;
  from.sum = 0;
  from.target = nullptr;
  from.lane = nullptr;
  switch (from.header.kind) {
    case Kind::message:
    case Kind::credit:
      from.lane = lane_of(from.header);
      if (from.lane == nullptr) {
        return !failure_;
      }
      if (!take_credit(*from.lane, from.header.released)) {
        fail(Reason::protocol, 0, "it releases what was never sent");
        return false;
      }
      return from.header.kind == Kind::credit || begin_message(from);
    case Kind::abort:
      from.target = reason_bytes_.data();
      return true;
    case Kind::leave:
      return true;
  }
  return true;
}

// nullptr: the frame is to be dropped, or the link has failed.
Lane* Link::lane_of(const Header& header) noexcept {
  const LaneKey key{.group = header.group, .epoch = header.epoch};
  if (latest_ != nullptr && latest_->key == key) {
    return latest_;
  }
  if (const auto found = lanes_.find(key); found != lanes_.end()) {
    return latest_ = found->second.get();
  }
  const auto known =
      closed_.begin() + static_cast<std::ptrdiff_t>(std::min(closed_count_, kClosedLanes));
  if (header.epoch < epoch_ || std::find(closed_.begin(), known, key) != known) {
    ++stale_frames_;
    return nullptr;
  }
  const auto is_early = [](const Lane* lane) { return !lane->open; };
  if (static_cast<std::size_t>(std::count_if(in_turn_.begin(), in_turn_.end(), is_early)) >=
      kMostEarlyLanes) {
    fail(Reason::protocol, 0, "too many groups that this rank does not know");
    return nullptr;
  }
  Lane* lane = add_lane(key);
  if (lane == nullptr) {
    fail(Reason::memory);
  }
  return lane;
}

bool Link::begin_message(Stream& from) noexcept {
  Lane& lane = *from.lane;
  const Header& header = from.header;
  const std::size_t bytes = header.bytes;
  Lane::In& message = lane.incoming(header.number);
  if (header.number - lane.next >= kMessages || message.known ||
      !lane.held.holds(bytes, slots_per_lane_)) {
    fail(Reason::protocol, 0, "a message beyond the window of its lane");
    return false;
  }
  if (streams_.size() == 1 && header.number != lane.come) {
    fail(Reason::protocol, 0, "a message of its lane is missing");
    return false;
  }
  ++lane.come;
  from.parked = !is_short(bytes) && from.begin == from.end && &lane != eager_;
  from.withheld = 0;
  message.data = is_short(bytes) ? lane.in_ring.place(bytes)
                 : from.parked   ? nullptr
                                 : in_slots_.take();
  if (message.data == nullptr && !from.parked) {
    fail(is_short(bytes) ? Reason::protocol : Reason::memory, 0, "short messages out of order");
    return false;
  }
  lane.held.add(bytes);
  message.bytes = header.bytes;
  message.signature = header.signature;
  message.known = true;
  from.target = message.data;
  from.long_ones = !is_short(bytes);
  return true;
}

bool Link::is_as_sent(const Stream& from) noexcept {
  if (!checksum_ || from.header.sum == from.sum) {
    return true;
  }
  fail(Reason::damaged);
  return false;
}

void Link::end_frame(Stream& from) noexcept {
  from.reading = false;
  switch (from.header.kind) {
    case Kind::message:
      if (from.lane != nullptr) {
        Lane::In& message = from.lane->incoming(from.header.number);
        message.complete = is_as_sent(from);
        if (from.lane != own_) {
          events_->arrived();
        }
      }
      break;
    case Kind::leave:
      // On each stream, as the last word: what came on the others must be read before.
      from.ended = true;
      if (!left_ && std::all_of(streams_.begin(), streams_.end(),
                                [](const Stream& one) { return one.ended; })) {
        left_ = true;
        events_->failed();
        note_waiting();
      }
      break;
    case Kind::abort:
      if (!aborted_ && is_as_sent(from)) {
        aborted_ = true;
        events_->failed();
        try {
          abort_reason_.assign(reinterpret_cast<const char*>(reason_bytes_.data()),
                               from.header.bytes);
        } catch (...) {
          abort_reason_.clear();
        }
      }
      break;
    case Kind::credit:
      break;
  }
}

bool Link::take_credit(Lane& lane, std::uint32_t released) noexcept {
  // With several streams an older count may come after a newer one, however late.
  if (static_cast<std::int32_t>(released - lane.released) <= 0) {
    return true;
  }
  if (released - lane.released > lane.drained - lane.released) {
    return false;
  }
  for (; lane.released != released; ++lane.released) {
    lane.unreleased.remove(lane.outgoing(lane.released).bytes);
  }
  if (&lane != own_) {
    events_->arrived();
  }
  return true;
}

// The peer hears what was released: with the next header on the lane, or now.
void Link::tell(Lane& lane) noexcept {
  if (!lane.credit_due) {
    lane.credit_due = true;
    ++credits_due_;
  }
  flush();
}

}  // namespace unisono::tcp
