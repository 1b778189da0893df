#include "run_case.h"

#include <cstdint>
#include <cstring>

namespace unisono::testing {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kFill{0xa5};

std::uint64_t load(const std::byte* from, std::size_t element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, element);
  return bits;
}

template <typename T>
void add(void* inout, const void* in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a = 0;
    T b = 0;
    std::memcpy(&a, static_cast<std::byte*>(inout) + i * sizeof(T), sizeof(T));
    std::memcpy(&b, static_cast<const std::byte*>(in) + i * sizeof(T), sizeof(T));
    a = static_cast<T>(a + b);
    std::memcpy(static_cast<std::byte*>(inout) + i * sizeof(T), &a, sizeof(T));
  }
}

void add_elements(void* inout, const void* in, std::size_t count, void* element) {
  if (*static_cast<const std::size_t*>(element) == 4) {
    add<std::uint32_t>(inout, in, count);
  } else {
    add<std::uint64_t>(inout, in, count);
  }
}

bool merges_buffers(const Case& one, int rank) {
  return !has_root(one.collective) || rank == one.root;
}

}  // namespace

CaseRun::CaseRun(const Case& one, int rank, Communicator* communicator)
    : case_(one),
      rank_(rank),
      shape_(shape_of(one, rank_)),
      element_(size_of(one.dtype)),
      in_place_(one.in_place && merges_buffers(one, rank_)),
      user_element_(element_) {
  const std::size_t in_bytes = shape_.in * element_;
  const std::size_t out_bytes = shape_.out * element_;
  if (in_place_) {
    // The smaller buffer is a part of the larger one; all_to_all and the vectors start together.
    const std::size_t offset = shape_.own_offset * element_;
    const bool in_larger = one.collective == Collective::scatter ||
                           one.collective == Collective::scatter_v ||
                           one.collective == Collective::reduce_scatter ||
                           one.collective == Collective::reduce_scatter_v;
    allocate(communicator, first_, std::max({in_bytes, out_bytes, offset}));
    in_ = first_.data + (in_larger ? 0 : offset);
    out_ = first_.data + (in_larger ? offset : 0);
  } else {
    allocate(communicator, first_, in_bytes);
    allocate(communicator, second_, out_bytes);
    in_ = first_.data;
    out_ = second_.data;
  }
  fill();
  describe_call();
}

void CaseRun::allocate(Communicator* communicator, Memory& memory, std::size_t bytes) {
  const std::size_t whole = bytes + 2 * kGuard + case_.skew;
  memory.bytes = bytes;
  std::byte* base = nullptr;
  if (case_.memory == testing::Memory::allocated) {
    memory.region = communicator->allocate(whole);
    base = memory.region.bytes().data();
  } else {
    memory.own.resize(whole);
    base = memory.own.data();
  }
  std::memset(base, static_cast<int>(kFill), whole);
  if (case_.memory == testing::Memory::adopted) {
    memory.region = communicator->register_buffer(memory.own);
  }
  memory.data = base + kGuard + case_.skew;
}

void CaseRun::fill() {
  for (std::size_t i = 0; i < shape_.in; ++i) {
    const std::uint64_t bits = input_bits(case_, rank_, i);
    std::memcpy(in_ + i * element_, &bits, element_);
  }
}

void CaseRun::describe_call() {
  Reduction reduction = case_.op;
  if (case_.op == ReduceOp::premul_sum) {
    reduction = Reduction::premul_sum(premul_factor(case_.dtype));
  } else if (case_.op == ReduceOp::user) {
    reduction = Reduction::custom({.combine = add_elements, .context = &user_element_});
  }
  call_ = {.collective = case_.collective,
           .in = shape_.in == 0 && !in_place_ ? nullptr : in_,
           .out = shape_.out == 0 && !in_place_ ? nullptr : out_,
           .count = is_v(case_.collective) ? 0 : case_.count,
           .dtype = case_.dtype,
           .reduction = reduction,
           .root = case_.root,
           .counts = shape_.counts,
           .displs = shape_.displs,
           .recv_counts = shape_.recv_counts,
           .recv_displs = shape_.recv_displs,
           .algorithm = case_.algorithm};
}

std::string CaseRun::check_guards(const Memory& memory, const char* name) const {
  const std::byte* base = memory.data - kGuard;
  for (std::size_t i = 0; memory.data != nullptr && i < kGuard; ++i) {
    if (base[i] != kFill || memory.data[memory.bytes + i] != kFill) {
      return std::string("a byte beside `") + name + "` was written";
    }
  }
  return "";
}

// Inputs must not change; in place, elements that are not outputs must not change.
std::string CaseRun::check_input() const {
  for (std::size_t i = 0; i < shape_.in; ++i) {
    const std::byte* element = in_ + i * element_;
    const bool is_output = in_place_ && element >= out_ && element < out_ + shape_.out * element_;
    if (!is_output && load(element, element_) != input_bits(case_, rank_, i)) {
      return "input element " + std::to_string(i) + " was changed";
    }
  }
  return "";
}

std::string CaseRun::check_output() const {
  for (std::size_t i = 0; i < shape_.out; ++i) {
    const std::byte* element = out_ + i * element_;
    const Origin& origin = shape_.origins[i];
    std::string wrong;
    if (origin.kind == Origin::Kind::untouched) {
      const bool is_input = in_place_ && element >= in_ && element < in_ + shape_.in * element_;
      const std::byte fill[8] = {kFill, kFill, kFill, kFill, kFill, kFill, kFill, kFill};
      wrong = is_input || std::memcmp(element, fill, element_) == 0 ? "" : "a gap was written";
    } else {
      wrong = check_element(case_, origin, load(element, element_));
    }
    if (!wrong.empty()) {
      return "output element " + std::to_string(i) + " of " + std::to_string(shape_.out) + ": " +
             wrong;
    }
  }
  return "";
}

std::string CaseRun::check() const {
  std::string wrong = check_output();
  if (wrong.empty()) {
    wrong = check_input();
  }
  if (wrong.empty()) {
    wrong = check_guards(first_, in_place_ ? "in and out" : "in");
  }
  if (wrong.empty() && !in_place_) {
    wrong = check_guards(second_, "out");
  }
  return wrong;
}

void CaseRun::scribble() {
  for (const Memory* memory : {&first_, &second_}) {
    if (memory->bytes != 0) {
      std::memset(memory->data, 0x5a, memory->bytes);
    }
  }
}

void make_call(Communicator& communicator, const Call& call, Form form) {
  switch (form) {
    case Form::run:
      communicator.run(call);
      break;
    case Form::async:
      communicator.run_async(call).wait();
      break;
    case Form::plan:
      communicator.plan(call).start();
      break;
    case Form::plan_async: {
      Plan plan = communicator.plan(call);
      plan.start_async().wait();
      break;
    }
  }
}

std::string run_case(Communicator& communicator, const Case& one) {
  CaseRun run(communicator, one);
  make_call(communicator, run.call(), one.form);
  return run.check();
}

}  // namespace unisono::testing
