#include "transport/tcp/inbox.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "kernels/crc32c.h"

namespace unisono::tcp {
namespace {

// Maximum number of reads per stream and call of receive(), which stops earlier if the kernel has
// no more data.
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

Inbox::Inbox(std::span<LinkStream> streams, std::uint32_t slots, LaneTable* lanes,
             LinkHealth* health)
    : slots_per_lane_(slots), lanes_(lanes), health_(health) {
  for (LinkStream& stream : streams) {
    encrypted_ = encrypted_ || stream.channel.encrypted();
    checksum_ = checksum_ || stream.channel.checksum();
    streams_.emplace_back(&stream);
  }
}

bool Inbox::receive(const Lane* patient, const Lane* eager) noexcept {
  bool advanced = false;
  eager_ = eager;
  own_ = patient != nullptr ? patient : eager;
  for (In& from : streams_) {
    const bool stays = from.parked && from.lane == patient;
    advanced |= !health_->failure() && !from.stream->ended && !stays && receive(from);
  }
  note_unread();
  return advanced;
}

// Publishes that TLS has read data ahead. Such data wakes no thread, so threads check this flag
// before they sleep.
void Inbox::note_unread() noexcept {
  if (encrypted_) {
    health_->set_unread(std::any_of(streams_.begin(), streams_.end(), [](const In& from) {
      return !from.stream->ended && from.stream->channel.has_unread();
    }));
  }
}

// Notes that a part of the payload has arrived, and computes its checksum while it is in the cache.
void Inbox::took(In& from, const std::byte* part, std::size_t bytes) const noexcept {
  from.missing -= bytes;
  if (checksum_) {
    from.sum = kernels::crc32c({part, bytes}, from.sum);
  }
}

bool Inbox::receive(In& from) noexcept {
  if (from.parked) {
    if (!from.stream->channel.is_readable()) {
      return false;  // it blocks nothing
    }
    if (!unpark(from)) {
      return false;
    }
  }
  bool advanced = false;
  for (int reads = 0; reads < kReads; ++reads) {
    // A long message is usually followed by another long message, whose payload must not be read
    // ahead.
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
    const ssize_t got = from.stream->channel.receive({parts, count});
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_stream(from, got == 0 ? 0 : errno);
      }
      return advanced;
    }
    advanced = true;
    const auto bytes = static_cast<std::size_t>(got);
    bytes_read_ += bytes;
    const std::size_t direct = std::min(from.missing, bytes);
    if (direct != 0) {
      took(from, static_cast<const std::byte*>(parts[0].iov_base), direct);
      from.target += from.target != nullptr ? direct : 0;
    }
    from.end += bytes - direct;
    if (!parse(from) || from.parked || (bytes < asked && !from.stream->channel.has_unread())) {
      return advanced;
    }
  }
  return advanced;
}

// Ends a stream. The first stream reports whether the peer has left; the other streams may close
// before this report is read.
void Inbox::end_stream(In& from, int error) noexcept {
  from.stream->ended = true;
  error = error == 0 ? from.stream->error : error;
  from.stream->error = error;
  if (&from == streams_.data()) {
    health_->fail(error == 0 || error == ECONNRESET || error == EPIPE ? Reason::closed
                  : error == EPROTO && encrypted_                     ? Reason::tls
                                                                      : Reason::reset,
                  error);
  }
}

// Parses the available frames. Returns false if no more data will come on this stream.
bool Inbox::parse(In& from) noexcept {
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
      if (from.stream->ended) {
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

bool Inbox::begin_frame(In& from) noexcept {
  const std::span<const std::byte, kHeaderBytes> bytes(from.staged.get() + from.begin,
                                                       kHeaderBytes);
  const BadFrame bad = decode(bytes, from.header);
  if (bad != BadFrame::none) {
    health_->fail(Reason::bad_frame, 0, what_is_bad(bad));
    return false;
  }
  from.begin += kHeaderBytes;
  from.reading = true;
  from.missing = from.header.bytes;
  from.sum = 0;
  from.target = nullptr;
  from.lane = nullptr;
  switch (from.header.kind) {
    case FrameKind::message:
    case FrameKind::credit:
      from.lane = lane_of(from.header);
      if (from.lane == nullptr) {
        return !health_->failure();
      }
      if (!take_credit(*from.lane, from.header.released)) {
        health_->fail(Reason::protocol, 0, "it releases bytes that were never sent");
        return false;
      }
      return from.header.kind == FrameKind::credit || begin_message(from);
    case FrameKind::abort:
    case FrameKind::leave:
      from.target = reinterpret_cast<std::byte*>(words_.data());
      return true;
  }
  return true;
}

// Returns the lane that the header names; nullptr if the frame must be dropped, or the link has
// failed.
Lane* Inbox::lane_of(const FrameHeader& header) noexcept {
  const transport::LaneKey key{.group = header.group, .epoch = header.epoch};
  Lane* lane = nullptr;
  switch (lanes_->find(key, lane, [&key] { return make_lane(key); })) {
    case LaneTable::Outcome::found:
    case LaneTable::Outcome::stale:
      break;
    case LaneTable::Outcome::too_many:
      health_->fail(Reason::protocol, 0, "messages of too many unknown groups");
      break;
    case LaneTable::Outcome::no_memory:
      health_->fail(Reason::memory);
      break;
  }
  return lane;
}

bool Inbox::begin_message(In& from) noexcept {
  Lane& lane = *from.lane;
  const FrameHeader& header = from.header;
  const std::size_t bytes = header.bytes;
  Lane::In& message = lane.incoming(header.number);
  if (header.number - lane.next >= transport::kMessages || message.known ||
      !lane.held.holds(bytes, slots_per_lane_)) {
    health_->fail(Reason::protocol, 0, "a message beyond the window of its lane");
    return false;
  }
  if (streams_.size() == 1 && header.number != lane.come) {
    health_->fail(Reason::protocol, 0, "an earlier message of its lane is missing");
    return false;
  }
  ++lane.come;
  from.parked = !transport::is_short(bytes) && from.begin == from.end && &lane != eager_;
  from.withheld = 0;
  message.data = transport::is_short(bytes) ? lane.in_ring.place(bytes)
                 : from.parked              ? nullptr
                                            : slots_.take();
  if (message.data == nullptr && !from.parked) {
    health_->fail(transport::is_short(bytes) ? Reason::protocol : Reason::memory, 0,
                  "short messages out of order");
    return false;
  }
  lane.held.add(bytes);
  message.bytes = header.bytes;
  message.signature = header.signature;
  message.known = true;
  from.target = message.data;
  from.long_ones = !transport::is_short(bytes);
  return true;
}

bool Inbox::is_as_sent(const In& from) noexcept {
  if (!checksum_ || from.header.sum == from.sum) {
    return true;
  }
  health_->fail(Reason::damaged);
  return false;
}

void Inbox::end_frame(In& from) noexcept {
  from.reading = false;
  const bool is_of_lane =
      from.header.kind == FrameKind::message || from.header.kind == FrameKind::credit;
  frames_ += is_of_lane && from.header.group != transport::kReportGroup ? 1U : 0U;
  switch (from.header.kind) {
    case FrameKind::message:
      if (from.lane != nullptr) {
        Lane::In& message = from.lane->incoming(from.header.number);
        message.complete = is_as_sent(from);
        if (from.lane != own_) {
          health_->note_arrival();
        }
      }
      break;
    case FrameKind::leave:
      // This is the last frame on each stream. The link reads the data on the other streams first.
      from.stream->ended = true;
      if (from.header.bytes != 0 && is_as_sent(from)) {
        health_->note_farewell(std::string_view(words_.data(), from.header.bytes));
      }
      if (std::all_of(streams_.begin(), streams_.end(),
                      [](const In& one) { return one.stream->ended; })) {
        health_->note_leave();
      }
      break;
    case FrameKind::abort:
      if (is_as_sent(from)) {
        health_->note_abort(std::string_view(words_.data(), from.header.bytes));
      }
      break;
    case FrameKind::credit:
      break;
  }
}

bool Inbox::take_credit(Lane& lane, std::uint32_t released) noexcept {
  const std::uint32_t before = lane.released;
  if (!lane.take_credit(released)) {
    return false;
  }
  if (lane.released != before && &lane != own_) {
    health_->note_arrival();
  }
  return true;
}

bool Inbox::peek(Lane& lane, transport::Incoming& message) noexcept {
  const Lane::In& next = lane.incoming(lane.next);
  if (!next.complete) {
    receive(nullptr, &lane);
    if (!next.complete) {
      return false;
    }
  }
  message = {.data = next.data, .bytes = next.bytes, .signature = next.signature};
  return true;
}

bool Inbox::release(Lane& lane) noexcept {
  Lane::In& message = lane.incoming(lane.next);
  if (transport::is_short(message.bytes)) {
    lane.in_ring.release(message.data, message.bytes);
  } else if (message.data != nullptr) {
    slots_.give_back(message.data);
  }
  lane.held.remove(message.bytes);
  lane.unreported.add(message.bytes);
  message = {};
  ++lane.next;
  return lane.unreported.is_worth_a_frame(slots_per_lane_);
}

void Inbox::close(Lane& lane) noexcept {
  for (In& from : streams_) {
    if (from.reading && from.lane == &lane) {
      from.parked = false;
      from.lane = nullptr;
      from.target = nullptr;
    }
  }
  for (Lane::In& message : lane.in) {
    if (message.data != nullptr && !transport::is_short(message.bytes)) {
      slots_.give_back(message.data);
    }
  }
}

}  // namespace unisono::tcp
