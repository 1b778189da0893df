// A machine with a stack, a memo and the opcodes of plain data. Values are numbered and refer to
// each other by number, so a value that a pickle uses twice is stored once. A sink receives it each
// time: at most kMostValuesPerByte values and kMostTextPerByte bytes of text per byte of the
// pickle, and a nesting depth of at most kDeepest.
#include "imports/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
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

using Index = std::size_t;
struct Value {
  json scalar = {};               // the value if it is neither a list nor a dict
  std::vector<Index> items = {};  // for a dict: keys and values alternately
  enum class Kind { scalar, list, tuple, dict } kind = Kind::scalar;
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
  // Bytes that are not UTF-8 are replaced.
  std::string text(std::size_t count) {
    std::string text(take(count));
    if (std::ranges::all_of(text, [](char sign) { return static_cast<signed char>(sign) >= 0; })) {
      return text;
    }
    return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
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

bool send_scalar(const json& scalar, std::string& text, ValueSink& sink) {
  switch (scalar.type()) {
    case json::value_t::boolean:
      return sink.boolean(scalar.get<bool>());
    case json::value_t::number_integer:
      return sink.number_integer(scalar.get<json::number_integer_t>());
    case json::value_t::number_unsigned:
      return sink.number_unsigned(scalar.get<json::number_unsigned_t>());
    case json::value_t::number_float:
      return sink.number_float(scalar.get<json::number_float_t>(), {});
    case json::value_t::string:
      text = scalar.get_ref<const std::string&>();
      return sink.string(text);
    default:
      return sink.null();
  }
}

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
      case Value::Kind::scalar:
        if (value.scalar.is_string()) {
          budget_.spend_text(value.scalar.get_ref<const std::string&>().size());
        }
        return send_scalar(value.scalar, text_, sink_);
      case Value::Kind::dict:
        return send_dict(value.items, depth);
      default:
        return send_list(value.items, depth);
    }
  }

 private:
  bool send_list(const std::vector<Index>& items, int depth) {
    bool goes_on = sink_.start_array(items.size());
    for (std::size_t i = 0; goes_on && i < items.size() && !sink_.skips_next(); ++i) {
      goes_on = send(items[i], depth + 1);
    }
    return goes_on && sink_.end_array();
  }

  bool send_dict(const std::vector<Index>& items, int depth) {
    bool goes_on = sink_.start_object(items.size() / 2);
    for (std::size_t i = 0; goes_on && i < items.size(); i += 2) {
      goes_on =
          send_key(values_[items[i]]) && (sink_.skips_next() || send(items[i + 1], depth + 1));
    }
    return goes_on && sink_.end_object();
  }
  bool send_key(const Value& key) {
    if (key.kind != Value::Kind::scalar) {
      throw Refusal{"a dict has a list, a tuple or a dict among its keys"};
    }
    text_ = key.scalar.is_string() ? key.scalar.get_ref<const std::string&>() : key.scalar.dump();
    budget_.spend_value();
    budget_.spend_text(text_.size());
    return sink_.key(text_);
  }

  const std::vector<Value>& values_;
  Budget budget_;
  ValueSink& sink_;
  std::string text_;
};

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}
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
    stack_.push_back(values_.size() - 1);
  }
  void push_text(std::size_t count) { push({.scalar = bytes_.text(count)}); }
  Index top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      throw Refusal{"it pops from an empty stack"};
    }
    return stack_.back();
  }
  std::vector<Index> pop(std::size_t count) {
    if (count > stack_.size() - (marks_.empty() ? 0 : marks_.back())) {
      throw Refusal{"it pops from an empty stack"};
    }
    std::vector<Index> taken(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return taken;
  }
  std::vector<Index> pop_to_mark() {
    if (marks_.empty()) {
      throw Refusal{"it pops to a mark that it has not set"};
    }
    std::vector<Index> taken = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return taken;
  }
  void add(Value::Kind kind, const std::vector<Index>& items) {
    Value& whole = values_[top()];
    if (whole.kind != kind || (kind == Value::Kind::dict && items.size() % 2 != 0)) {
      throw Refusal{"it adds to a value that is neither a list nor a dict"};
    }
    whole.items.insert(whole.items.end(), items.begin(), items.end());
  }
  void push_tuple(std::vector<Index> items) {
    push({.items = std::move(items), .kind = Value::Kind::tuple});
  }
  void remember(std::uint64_t place) { memo_[place] = top(); }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) {
      throw Refusal{"it reads a memo entry that it has not stored"};
    }
    stack_.push_back(found->second);
  }

  bool step();
  bool step_scalar(unsigned char code);
  bool step_whole(unsigned char code);

  Bytes bytes_;
  std::vector<Value> values_;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack at each mark
  std::map<std::uint64_t, Index> memo_;
};

// The opcodes' names are those of Python's pickletools.
bool Machine::step_scalar(unsigned char code) {
  switch (code) {
    case 'N':  // NONE
      push({});
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push({.scalar = code == 0x88});
      return true;
    case 'K':  // BININT1
      push({.scalar = bytes_.number(1)});
      return true;
    case 'M':  // BININT2
      push({.scalar = bytes_.number(2)});
      return true;
    case 'J':  // BININT
      push({.scalar = static_cast<std::int32_t>(bytes_.number(4))});
      return true;
    case 0x8a:  // LONG1
      push({.scalar = bytes_.long_number(bytes_.number(1))});
      return true;
    case 'G':  // BINFLOAT
      push({.scalar = bytes_.real()});
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
      push({.kind = Value::Kind::list});
      return true;
    case ')':  // EMPTY_TUPLE
      push_tuple({});
      return true;
    case '}':  // EMPTY_DICT
      push({.kind = Value::Kind::dict});
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_tuple(pop(code - 0x84U));
      return true;
    case 't':  // TUPLE
      push_tuple(pop_to_mark());
      return true;
    case 'a':  // APPEND
      add(Value::Kind::list, pop(1));
      return true;
    case 'e':  // APPENDS
      add(Value::Kind::list, pop_to_mark());
      return true;
    case 's':  // SETITEM
      add(Value::Kind::dict, pop(2));
      return true;
    case 'u':  // SETITEMS
      add(Value::Kind::dict, pop_to_mark());
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
      pop(1);
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
