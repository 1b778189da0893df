// A machine with a stack, a memo and the opcodes of plain data. Values are numbered and refer to
// each other by number, so a value that a pickle uses twice is stored once. A sink receives such a
// value each time. Limits: at most kMostValuesPerByte values and kMostTextPerByte bytes of text per
// byte of the pickle, and a nesting depth of at most kDeepest.
#include "imports/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace unisono::cli {
namespace {

using nlohmann::json;

// A dump of the flight recorder refers to a stack frame, which has 7 values and about 150 bytes of
// text, by five bytes.
constexpr std::size_t kMostValuesPerByte = 8;
constexpr std::size_t kMostTextPerByte = 64;
constexpr int kDeepest = 100;

struct Refusal {
  std::string message;
};

using Index = std::uint32_t;  // files have at most kMostOfRecording bytes, and values one at least
struct Value {
  enum class Kind { none, boolean, integer, real, text, list, tuple, dict } kind = Kind::none;
  std::int64_t integer = 0;  // also of a boolean
  double real = 0;
  std::string_view text = {};
  std::pmr::vector<Index> items = {};  // for a dict: keys and values alternately
};

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::size_t position() const { return at_; }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) {
      throw Refusal{"it is truncated"};
    }
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  // Reads a little-endian number.
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    std::size_t shift = 0;
    for (const char byte : take(count)) {
      value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
      shift += 8;
    }
    return value;
  }
  std::int64_t long_number(std::size_t count) {
    if (count > 8) {
      throw Refusal{"a number of more than 64 bits"};
    }
    const std::uint64_t value = number(count);
    const std::size_t unused = 64 - 8 * count;
    return count == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused;
  }
  double real() {
    std::uint64_t value = 0;
    for (const char byte : take(8)) {  // big-endian
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    return std::bit_cast<double>(value);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// The remaining size limits of what a sink receives.
struct Budget {
  explicit Budget(std::size_t bytes)
      : values(kMostValuesPerByte * bytes), text(kMostTextPerByte * bytes) {}
  void spend_value() {
    if (values == 0) {
      throw Refusal{"it has too many values"};
    }
    --values;
  }
  void spend_text(std::size_t bytes) {
    if (bytes > text) {
      throw Refusal{"it has too much text"};
    }
    text -= bytes;
  }

  std::size_t values;
  std::size_t text;  // in bytes
};

// Sends a value to a sink.
class Sender {
 public:
  Sender(const std::vector<Value>& values, std::size_t bytes, ValueSink& sink)
      : values_(values), budget_(bytes), sink_(sink) {}

  // Returns false if the sink ends it.
  bool send(Index index, int depth = 0) {
    const Value& value = values_[index];
    if (depth > kDeepest) {
      throw Refusal{"its values are nested too deep"};
    }
    budget_.spend_value();
    switch (value.kind) {
      case Value::Kind::none:
        return sink_.null();
      case Value::Kind::boolean:
        return sink_.boolean(value.integer != 0);
      case Value::Kind::integer:
        return sink_.number(static_cast<double>(value.integer));
      case Value::Kind::real:
        return sink_.number(value.real);
      case Value::Kind::text:
        budget_.spend_text(value.text.size());
        return sink_.text(value.text);
      case Value::Kind::dict:
        return send_dict(value.items, depth);
      default:
        return send_list(value.items, depth);
    }
  }

 private:
  bool send_list(const std::pmr::vector<Index>& items, int depth) {
    bool goes_on = sink_.start_array();
    for (std::size_t i = 0; goes_on && i < items.size() && !sink_.skips_next(); ++i) {
      goes_on = send(items[i], depth + 1);
    }
    return goes_on && sink_.end_array();
  }

  bool send_dict(const std::pmr::vector<Index>& items, int depth) {
    bool goes_on = sink_.start_object();
    for (std::size_t i = 0; goes_on && i < items.size(); i += 2) {
      goes_on =
          send_key(values_[items[i]]) && (sink_.skips_next() || send(items[i + 1], depth + 1));
    }
    return goes_on && sink_.end_object();
  }
  bool send_key(const Value& key) {
    if (key.kind > Value::Kind::text) {
      throw Refusal{"a dict has a list, a tuple or a dict among its keys"};
    }
    budget_.spend_value();
    if (key.kind == Value::Kind::text) {
      budget_.spend_text(key.text.size());
      return sink_.key(key.text);
    }
    const std::string text = key.kind == Value::Kind::none ? "null"
                             : key.kind == Value::Kind::boolean
                                 ? fmt::format("{}", key.integer != 0)
                             : key.kind == Value::Kind::integer ? fmt::format("{}", key.integer)
                                                                : fmt::format("{}", key.real);
    budget_.spend_text(text.size());
    return sink_.key(text);
  }

  const std::vector<Value>& values_;
  Budget budget_;
  ValueSink& sink_;
};

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {
    // A value of a dump takes eight bytes or more.
    values_.reserve(std::min(bytes.size() / 8, std::size_t{1} << 20U));
  }
  std::size_t position() const { return bytes_.position(); }

  void run(ValueSink& sink) {
    while (step()) {
    }
    if (stack_.size() != 1) {
      throw Refusal{"it does not end with exactly one value"};
    }
    Sender(values_, bytes_.position(), sink).send(stack_.back());
  }

 private:
  void push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<Index>(values_.size() - 1));
  }
  void push_integer(std::int64_t integer) {
    push({.kind = Value::Kind::integer, .integer = integer});
  }
  // Bytes that are not UTF-8 are replaced.
  void push_text(std::size_t count) {
    std::string_view text = bytes_.take(count);
    if (!std::ranges::all_of(text, [](char sign) { return static_cast<signed char>(sign) >= 0; })) {
      text = decoded_.emplace_back(
          json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)));
    }
    push({.kind = Value::Kind::text, .text = text});
  }
  // The part of the stack that opcodes may use begins here.
  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  Index top() const {
    if (stack_.size() <= bottom()) {
      throw Refusal{"it pops from an empty stack"};
    }
    return stack_.back();
  }
  using Items = std::span<const Index>;
  // Returns the top values of the stack.
  Items top(std::size_t count) const {
    if (count > stack_.size() - bottom()) {
      throw Refusal{"it pops from an empty stack"};
    }
    return Items(stack_).last(count);
  }
  Items top_to_mark() {
    if (marks_.empty()) {
      throw Refusal{"it pops to a mark that it has not set"};
    }
    const Items items = Items(stack_).subspan(marks_.back());
    marks_.pop_back();
    return items;
  }
  void pop(Items items) { stack_.resize(stack_.size() - items.size()); }
  // Moves the top values of the stack into the list or dict below them.
  void add(Value::Kind kind, Items items) {
    if (stack_.size() - items.size() <= bottom()) {
      throw Refusal{"it pops from an empty stack"};
    }
    Value& whole = values_[stack_[stack_.size() - items.size() - 1]];
    if (whole.kind != kind || (kind == Value::Kind::dict && items.size() % 2 != 0)) {
      throw Refusal{"it adds to a value that is neither a list nor a dict"};
    }
    whole.items.insert(whole.items.end(), items.begin(), items.end());
    pop(items);
  }
  void push_container(Value::Kind kind, Items items) {
    Value container{.kind = kind, .items = {items.begin(), items.end(), &memory_}};
    pop(items);
    push(std::move(container));
  }
  // Every program numbers the entries of its memo in order.
  void remember(std::uint64_t place) {
    if (place > memo_.size()) {
      throw Refusal{"it stores a memo entry out of order"};
    }
    if (place == memo_.size()) {
      memo_.push_back(top());
    } else {
      memo_[place] = top();
    }
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size()) {
      throw Refusal{"it reads a memo entry that it has not stored"};
    }
    stack_.push_back(memo_[place]);
  }

  bool step();
  bool step_scalar(unsigned char code);
  bool step_whole(unsigned char code);

  Bytes bytes_;
  std::pmr::monotonic_buffer_resource memory_;  // of the items of containers: freed all at once
  std::vector<Value> values_;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack at each mark
  std::vector<Index> memo_;
  std::deque<std::string> decoded_;  // texts that are not ASCII
};

// The opcodes' names are those of Python's pickletools.
bool Machine::step_scalar(unsigned char code) {
  switch (code) {
    case 'N':  // NONE
      push({});
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push({.kind = Value::Kind::boolean, .integer = code == 0x88});
      return true;
    case 'K':  // BININT1
      push_integer(static_cast<std::int64_t>(bytes_.number(1)));
      return true;
    case 'M':  // BININT2
      push_integer(static_cast<std::int64_t>(bytes_.number(2)));
      return true;
    case 'J':  // BININT
      push_integer(static_cast<std::int32_t>(bytes_.number(4)));
      return true;
    case 0x8a:  // LONG1
      push_integer(bytes_.long_number(bytes_.number(1)));
      return true;
    case 'G':  // BINFLOAT
      push({.kind = Value::Kind::real, .real = bytes_.real()});
      return true;
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
      push_text(bytes_.number(1));
      return true;
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
      push_text(bytes_.number(4));
      return true;
    case 0x8d:  // BINUNICODE8
      push_text(bytes_.number(8));
      return true;
    default:
      return false;
  }
}

bool Machine::step_whole(unsigned char code) {
  switch (code) {
    case ']':  // EMPTY_LIST
      push_container(Value::Kind::list, {});
      return true;
    case ')':  // EMPTY_TUPLE
      push_container(Value::Kind::tuple, {});
      return true;
    case '}':  // EMPTY_DICT
      push_container(Value::Kind::dict, {});
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_container(Value::Kind::tuple, top(code - 0x84U));
      return true;
    case 't':  // TUPLE
      push_container(Value::Kind::tuple, top_to_mark());
      return true;
    case 'a':  // APPEND
      add(Value::Kind::list, top(1));
      return true;
    case 'e':  // APPENDS
      add(Value::Kind::list, top_to_mark());
      return true;
    case 's':  // SETITEM
      add(Value::Kind::dict, top(2));
      return true;
    case 'u':  // SETITEMS
      add(Value::Kind::dict, top_to_mark());
      return true;
    default:
      return false;
  }
}

// Returns false if the pickle has ended.
bool Machine::step() {
  const auto code = static_cast<unsigned char>(bytes_.take(1).front());
  if (step_scalar(code) || step_whole(code)) {
    return true;
  }
  switch (code) {
    case 0x80:  // PROTO
      bytes_.take(1);
      return true;
    case 0x95:  // FRAME
      bytes_.take(8);
      return true;
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case 'q':  // BINPUT
      remember(bytes_.number(1));
      return true;
    case 'r':  // LONG_BINPUT
      remember(bytes_.number(4));
      return true;
    case 0x94:  // MEMOIZE
      remember(memo_.size());
      return true;
    case 'h':  // BINGET
      recall(bytes_.number(1));
      return true;
    case 'j':  // LONG_BINGET
      recall(bytes_.number(4));
      return true;
    case '0':  // POP
      pop(top(1));
      return true;
    case '.':  // STOP
      return false;
    case 'c':   // GLOBAL
    case 0x93:  // STACK_GLOBAL
    case 'R':   // REDUCE
    case 'b':   // BUILD
    case 'i':   // INST
    case 'o':   // OBJ
    case 0x81:  // NEWOBJ
    case 0x92:  // NEWOBJ_EX
      throw Refusal{"it would create program objects, but only plain data is read"};
    default:
      throw Refusal{fmt::format("opcode 0x{:02x}, which plain data does not need", code)};
  }
}

}  // namespace

bool is_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::string read_pickle(std::string_view bytes, ValueSink& sink) {
  Machine machine(bytes);
  try {
    machine.run(sink);
    return {};
  } catch (const Refusal& refusal) {
    return fmt::format("byte {}: {}", machine.position(), refusal.message);
  }
}

}  // namespace unisono::cli
