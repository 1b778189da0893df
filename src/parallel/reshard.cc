// Runs a reshard: packs, sends, receives and unpacks messages in the order of their turns, and adds
// summands.
#include "unisono/parallel/reshard.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>

#include "base/hash.h"
#include "base/words.h"
#include "kernels/kernels.h"
#include "parallel/reshard_messages.h"
#include "parallel/reshard_order.h"
#include "parallel/shared_bytes.h"
#include "parallel/strided.h"
#include "reshard/elements.h"
#include "reshard/pieces.h"

namespace unisono::parallel {
namespace {

// The limit of messages that a rank has posted but not completed.
constexpr std::size_t kWindow = 16;

// This rank's part of a tensor, before or after the reshard; nullopt if the rank is outside the
// mesh.
using Held = std::optional<ElementRanges>;

Held held_at(const MeshLayout& layout, const ReshardTensor& tensor, int rank) {
  for (int position = 0; position < layout.mesh.ranks(); ++position) {
    if (layout.rank_at(position) == rank) {
      return elements_at(layout, tensor.shape, position);
    }
  }
  return std::nullopt;
}

Tensor line_of(std::byte* data, Dtype dtype, const std::vector<Range>& box) {
  std::vector<std::size_t> shape;
  for (const Range& range : box) {
    shape.push_back(range.count);
  }
  return Tensor::packed(data, dtype, std::move(shape));
}

// Calls body(line, box) for each box of the elements; the boxes are consecutive in memory from
// `data` on.
template <typename Body>
void for_each_line(const ElementRanges& elements, Dtype dtype, std::byte* data, const Body& body) {
  for_each_box(elements, [&](const std::vector<Range>& box) {
    const Tensor line = line_of(data, dtype, box);
    body(line, box);
    data += line.count() * size_of(dtype);
  });
}

bool is_one_box(const ElementRanges& elements) {
  return std::all_of(elements.begin(), elements.end(),
                     [](const auto& ranges) { return ranges.size() == 1; });
}

std::vector<Range> first_box(const ElementRanges& elements) {
  std::vector<Range> box;
  for (const auto& ranges : elements) {
    box.push_back(ranges.front());
  }
  return box;
}

std::string described(const ReshardTensor& tensor) {
  return in_quotes(tensor.name) + ", " +
         Tensor::packed(nullptr, tensor.dtype, tensor.shape).text() + " from " +
         tensor.from.text() + " to " + tensor.to.text();
}

// Throws mismatch if the tensors differ from those of rank 0.
void compare_tensors(Communicator& group, const std::vector<ReshardTensor>& tensors) {
  std::vector<std::uint64_t> mine;
  for (const ReshardTensor& tensor : tensors) {
    mine.push_back(Hash().add(tensor.name).add(described(tensor)).value());
  }
  const std::array<std::uint64_t, 1> count = {mine.size()};
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(group.size()));
  group.all_gather(count, counts);
  const auto refuse = [&](int peer, const std::string& what) {
    throw Error(ErrorCode::mismatch, "reshard: " + what + "\ngive all ranks the same tensors",
                {.rank = group.rank(), .peer = peer});
  };
  for (int rank = 0; rank < group.size(); ++rank) {
    if (counts[static_cast<std::size_t>(rank)] != counts[0]) {
      refuse(rank == group.rank() ? 0 : rank,
             "rank 0 has " + std::to_string(counts[0]) + " tensors, and rank " +
                 std::to_string(rank) + " " +
                 std::to_string(counts[static_cast<std::size_t>(rank)]));
    }
  }
  if (mine.empty()) {
    return;
  }
  std::vector<std::uint64_t> all(mine.size() * counts.size());
  group.all_gather(mine, all);
  for (int rank = 0; rank < group.size(); ++rank) {
    for (std::size_t t = 0; t < mine.size(); ++t) {
      if (all[static_cast<std::size_t>(rank) * mine.size() + t] != all[t]) {
        refuse(rank == group.rank() ? 0 : rank,
               "rank " + std::to_string(rank) + " has another tensor " + std::to_string(t) +
                   " than rank 0; here it is " + described(tensors[t]));
      }
    }
  }
}

kernels::ReduceFunction reduction_of(const ReshardTensor& tensor) {
  const kernels::ReduceFunction reduce =
      kernels::find_reduce(tensor.dtype, summation_of(tensor.from));
  if (reduce == nullptr) {
    throw Error(ErrorCode::usage, "reshard: tensor " + in_quotes(tensor.name) + ": partial of " +
                                      std::string(to_string(tensor.dtype)) +
                                      "\na partial is a sum, prod, min or max of numbers");
  }
  return reduce;
}

}  // namespace

struct Reshard::State {
  Communicator group;
  ReshardPlan plan;
  ReshardMessages work = {};
  std::vector<std::optional<ElementRanges>> in = {};
  std::vector<std::optional<ElementRanges>> out = {};
  std::vector<std::size_t> left = {};  // by tensor: bytes of `out` that have not arrived

  std::size_t bytes_of(std::size_t tensor) const {
    return out[tensor] ? count_of(*out[tensor]) * size_of(plan.tensors[tensor].dtype) : 0;
  }
};

namespace {

// One run of the plan.
class Run {
 public:
  Run(Communicator& group, const ReshardPlan& plan, const ReshardMessages& work,
      const std::vector<Held>& held_in, const std::vector<Held>& held_out,
      std::span<const Tensor> in, std::span<const Tensor> out, std::vector<std::size_t>& left,
      int timeout_ms)
      : group_(group),
        plan_(plan),
        work_(work),
        held_in_(held_in),
        held_out_(held_out),
        in_(in),
        out_(out),
        left_(left),
        timeout_ms_(timeout_ms) {
    for (std::size_t k = 0; k < work_.sums.size(); ++k) {
      for (std::size_t i = work_.sums[k].first; i <= work_.sums[k].last; ++i) {
        sum_of_.emplace(i, k);
      }
    }
    sums_.resize(work_.sums.size());
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  // After an error the remaining messages fail for the same reason.
  ~Run() {
    for (Posted& posted : posted_) {
      try {
        posted.request.wait();
      } catch (const Error&) {
        continue;
      }
    }
  }

  void run() {
    auto sum = work_.sums.begin();
    bool copied = false;
    const auto copy_once = [&] {
      if (!copied) {
        copy_own();
        copied = true;
      }
    };
    for (const ReshardMessage& message : work_.messages) {
      for (; sum != work_.sums.end() && sum->slot + kLead <= message.turn.slot; ++sum) {
        complete_before(sum->slot + 1);
        add_up(static_cast<std::size_t>(sum - work_.sums.begin()));
      }
      if (posted_.size() == kWindow) {
        copy_once();
        complete_first();
      }
      message.turn.from == group_.rank() ? send(message) : receive(message);
    }
    copy_once();
    complete_before(~std::size_t{0});
    for (; sum != work_.sums.end(); ++sum) {
      add_up(static_cast<std::size_t>(sum - work_.sums.begin()));
    }
  }

 private:
  struct Posted {
    const ReshardMessage* message = nullptr;
    std::vector<std::byte> memory = {};  // empty: the message goes directly from or into a tensor
    Request request = {};
  };
  struct Summands {
    std::vector<std::vector<std::byte>> arrived = {};
    std::vector<std::byte> sum = {};  // used if this rank only passes the sum on
  };

  const ReshardMove& move_of(const ReshardPart& part) const { return plan_.moves[part.move]; }
  Dtype dtype_of(const ReshardMove& move) const { return plan_.tensors[move.tensor].dtype; }

  // Returns the sum that a move passes on, if this rank has no tensor for it; otherwise nullptr.
  Summands* passed_on(const ReshardMove& move) {
    const auto sum = move.hop == 0 ? sum_of_.end() : sum_of_.find(move.after);
    return sum == sum_of_.end() || work_.sums[sum->second].into_out ? nullptr : &sums_[sum->second];
  }

  // Returns the address of a part in a tensor if it is contiguous there; otherwise nullptr.
  std::byte* address_in(const Tensor& tensor, const Held& held, const ReshardPart& part) const {
    if (!is_one_box(part.elements)) {
      return nullptr;
    }
    const Tensor view = view_of(tensor, *held, first_box(part.elements));
    return view.is_packed() ? static_cast<std::byte*>(view.data) : nullptr;
  }

  void send(const ReshardMessage& message) {
    if (message.turn.hop > 0) {
      complete_before(message.turn.slot - kLead + 1);
    }
    Posted& posted = posted_.emplace_back(&message);
    std::byte* data = nullptr;
    if (message.parts.size() == 1) {
      const ReshardPart& part = message.parts.front();
      const ReshardMove& move = move_of(part);
      if (Summands* sum = passed_on(move)) {
        data = sum->sum.data() + part.offset;
      } else if (move.hop == 0) {
        data = address_in(in_[move.tensor], held_in_[move.tensor], part);
      } else {
        data = address_in(out_[move.tensor], held_out_[move.tensor], part);
      }
    }
    if (data == nullptr) {
      posted.memory.resize(message.bytes);
      data = posted.memory.data();
      pack(message, data);
    }
    posted.request = group_.send_async(data, message.bytes, message.to, 0, timeout_ms_);
  }

  void pack(const ReshardMessage& message, std::byte* data) {
    for (const ReshardPart& part : message.parts) {
      const ReshardMove& move = move_of(part);
      if (Summands* sum = passed_on(move)) {
        std::memcpy(data, sum->sum.data() + part.offset, part.bytes);
      } else {
        const Tensor& tensor = (move.hop == 0 ? in_ : out_)[move.tensor];
        const Held& held = (move.hop == 0 ? held_in_ : held_out_)[move.tensor];
        for_each_line(part.elements, tensor.dtype, data, [&](const Tensor& line, const auto& box) {
          copy_elements(view_of(tensor, *held, box), line, kernels::Store::cached);
        });
      }
      data += part.bytes;
    }
  }

  void receive(const ReshardMessage& message) {
    Posted& posted = posted_.emplace_back(&message);
    const ReshardPart& first = message.parts.front();
    const ReshardMove& move = move_of(first);
    std::byte* data = nullptr;
    if (message.parts.size() == 1 && !move.summand) {
      data = address_in(out_[move.tensor], held_out_[move.tensor], first);
    }
    if (data == nullptr) {
      posted.memory.resize(message.bytes);
      data = posted.memory.data();
    }
    posted.request = unisono::detail::ExactReceives::recv_async(group_, data, message.bytes,
                                                                message.turn.from, 0, timeout_ms_);
  }

  void complete_first() {
    Posted& posted = posted_.front();
    posted.request.wait();
    if (posted.message->turn.from != group_.rank()) {
      unpack(*posted.message, posted.memory.empty() ? nullptr : posted.memory.data());
    }
    posted_.pop_front();
  }
  void complete_before(std::size_t slot) {
    while (!posted_.empty() && posted_.front().message->turn.slot < slot) {
      complete_first();
    }
  }

  void unpack(const ReshardMessage& message, std::byte* data) {
    for (const ReshardPart& part : message.parts) {
      const ReshardMove& move = move_of(part);
      if (move.summand) {
        std::vector<std::byte>& arrived = arrived_of(part.move);
        arrived.resize(move.bytes);
        std::memcpy(arrived.data() + part.offset, data, part.bytes);
      } else {
        if (data != nullptr) {
          for_each_line(
              part.elements, dtype_of(move), data, [&](const Tensor& line, const auto& box) {
                copy_elements(line, view_of(out_[move.tensor], *held_out_[move.tensor], box),
                              kernels::Store::cached);
              });
        }
        left_[move.tensor] -= part.bytes;
      }
      data = data == nullptr ? nullptr : data + part.bytes;
    }
  }

  std::vector<std::byte>& arrived_of(std::size_t move) {
    const std::size_t k = sum_of_.at(move);
    const ReshardSum& sum = work_.sums[k];
    sums_[k].arrived.resize(sum.last - sum.first + 1);
    return sums_[k].arrived[move - sum.first];
  }

  void add_up(std::size_t k) {
    const ReshardSum& sum = work_.sums[k];
    Summands& summands = sums_[k];
    const ReshardMove& first = plan_.moves[sum.first];
    const kernels::ReduceFunction reduce = reduction_of(plan_.tensors[first.tensor]);
    const kernels::Store store = kernels::Store::cached;
    if (!sum.into_out) {
      summands.sum.resize(first.bytes);
    }
    for (const ReshardPart& part : parts_of(plan_, sum.first)) {
      std::size_t at = part.offset;
      for_each_box(part.elements, [&](const std::vector<Range>& box) {
        std::vector<Tensor> sources;
        for (std::size_t i = sum.first; i <= sum.last; ++i) {
          sources.push_back(plan_.moves[i].from == group_.rank()
                                ? view_of(in_[first.tensor], *held_in_[first.tensor], box)
                                : line_of(arrived_of(i).data() + at, dtype_of(first), box));
        }
        const Tensor target = sum.into_out
                                  ? view_of(out_[first.tensor], *held_out_[first.tensor], box)
                                  : line_of(summands.sum.data() + at, dtype_of(first), box);
        reduce_elements(
            sources, target,
            [&](void* to, const void* const* from, std::size_t count) {
              reduce(&to, 1, from, static_cast<int>(sources.size()), count, store);
            },
            store);
        at += target.count() * size_of(target.dtype);
      });
    }
    summands.arrived.clear();
    left_[first.tensor] -= sum.into_out ? first.bytes : 0;
  }

  void copy_own() {
    for (const ReshardMove& move : plan_.moves) {
      if (move.from != group_.rank() || move.to != group_.rank() || move.hop > 0 || move.summand) {
        continue;
      }
      for_each_box(move.elements, [&](const std::vector<Range>& box) {
        copy_elements(view_of(in_[move.tensor], *held_in_[move.tensor], box),
                      view_of(out_[move.tensor], *held_out_[move.tensor], box),
                      kernels::Store::cached);
      });
      left_[move.tensor] -= move.bytes;
    }
  }

  Communicator& group_;
  const ReshardPlan& plan_;
  const ReshardMessages& work_;
  const std::vector<Held>& held_in_;
  const std::vector<Held>& held_out_;
  std::span<const Tensor> in_;
  std::span<const Tensor> out_;
  std::vector<std::size_t>& left_;
  int timeout_ms_;
  std::map<std::size_t, std::size_t> sum_of_;  // by move of a summand that this rank adds: index of
                                               // the sum
  std::vector<Summands> sums_;
  std::deque<Posted> posted_;
};

// Throws usage if this rank's memory does not fit its part of a tensor.
void check_memory(const char* name, std::span<const Tensor> given, const std::vector<Held>& held,
                  const ReshardPlan& plan, int rank) {
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::usage, "reshard: " + what + "\n" + next, {.rank = rank});
  };
  if (given.size() != held.size()) {
    refuse("`" + std::string(name) + "` has " + std::to_string(given.size()) +
               " tensors, and the plan " + std::to_string(held.size()),
           "pass one for each tensor of the plan, in its order");
  }
  for (std::size_t t = 0; t < held.size(); ++t) {
    if (!held[t]) {
      continue;
    }
    const Tensor wanted = Tensor::packed(nullptr, plan.tensors[t].dtype, shape_of(*held[t]));
    const std::string place = "`" + std::string(name) + "` of " + in_quotes(plan.tensors[t].name) +
                              " on rank " + std::to_string(rank);
    if (given[t].data == nullptr && wanted.count() > 0) {
      refuse(place + " is null", "pass memory for " + wanted.text());
    }
    if (given[t].shape != wanted.shape || given[t].dtype != wanted.dtype ||
        given[t].strides.size() != given[t].shape.size()) {
      refuse(place + " is " + given[t].text() + ", and its part is " + wanted.text(),
             "in_shape() and out_shape() return the shapes of the parts");
    }
  }
}

// Returns the tensors of which this rank has a part, and nothing for the others.
std::vector<Tensor> only_held(std::span<const Tensor> given, const std::vector<Held>& held) {
  std::vector<Tensor> tensors(held.size());
  for (std::size_t t = 0; t < held.size(); ++t) {
    tensors[t] = held[t] ? given[t] : Tensor{};
  }
  return tensors;
}

// Throws usage if `in` and `out` share memory.
void check_apart(std::span<const Tensor> in, std::span<const Tensor> out, const ReshardPlan& plan,
                 int rank) {
  if (const auto shared = find_shared_bytes(in, out)) {
    throw Error(ErrorCode::usage,
                "reshard: `in` of " + in_quotes(plan.tensors[shared->first].name) +
                    " and `out` of " + in_quotes(plan.tensors[shared->second].name) +
                    " share memory on rank " + std::to_string(rank) +
                    "\ngive `out` memory of its own, because other ranks read `in` until the end",
                {.rank = rank});
  }
}

}  // namespace

Reshard::Reshard(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reshard::Reshard(Reshard&&) noexcept = default;
Reshard& Reshard::operator=(Reshard&&) noexcept = default;
Reshard::~Reshard() = default;

Reshard Reshard::create(Communicator& communicator, std::vector<ReshardTensor> tensors) {
  Communicator group = communicator.split(0, communicator.rank());
  compare_tensors(group, tensors);
  std::vector<int> hosts;
  for (int rank = 0; rank < group.size(); ++rank) {
    hosts.push_back(group.host(rank));
  }
  ReshardPlan plan = plan_reshard(std::move(tensors), std::move(hosts));
  for (const ReshardMove& move : plan.moves) {
    if (move.summand) {
      static_cast<void>(reduction_of(plan.tensors[move.tensor]));
    }
  }
  const int rank = group.rank();
  auto state =
      std::unique_ptr<State>(new State{.group = std::move(group), .plan = std::move(plan)});
  state->work = messages_of(state->plan, rank);
  for (const ReshardTensor& tensor : state->plan.tensors) {
    state->in.push_back(held_at(tensor.from, tensor, rank));
    state->out.push_back(held_at(tensor.to, tensor, rank));
    state->left.push_back(state->bytes_of(state->left.size()));
  }
  return Reshard(std::move(state));
}

void Reshard::run(std::span<const Tensor> in, std::span<const Tensor> out, int timeout_ms) {
  State& state = *state_;
  std::array<std::int32_t, 1> wrong = {-1};
  std::optional<Error> mine;
  try {
    check_memory("in", in, state.in, state.plan, state.group.rank());
    check_memory("out", out, state.out, state.plan, state.group.rank());
    check_apart(only_held(in, state.in), only_held(out, state.out), state.plan, state.group.rank());
  } catch (const Error& error) {
    wrong[0] = state.group.rank();
    mine = error;
  }
  state.group.run({.collective = Collective::all_reduce,
                   .in = wrong.data(),
                   .out = wrong.data(),
                   .count = 1,
                   .dtype = Dtype::i32,
                   .reduction = max,
                   .timeout_ms = timeout_ms});  // the other ranks wait for this one
  if (mine) {
    throw Error(*mine);
  }
  if (wrong[0] >= 0) {
    throw Error(
        ErrorCode::mismatch,
        "reshard: rank " + std::to_string(wrong[0]) + " cannot take part\nits own error says why",
        {.rank = state.group.rank(), .peer = wrong[0]});
  }
  for (std::size_t t = 0; t < state.left.size(); ++t) {
    state.left[t] = state.bytes_of(t);
  }
  Run(state.group, state.plan, state.work, state.in, state.out, in, out, state.left, timeout_ms)
      .run();
}

std::optional<std::vector<std::size_t>> Reshard::in_shape(std::size_t tensor) const {
  const Held& held = state_->in.at(tensor);
  return held ? std::optional(shape_of(*held)) : std::nullopt;
}
std::optional<std::vector<std::size_t>> Reshard::out_shape(std::size_t tensor) const {
  const Held& held = state_->out.at(tensor);
  return held ? std::optional(shape_of(*held)) : std::nullopt;
}
bool Reshard::complete(std::size_t tensor) const {
  return state_->left.at(tensor) == 0;
}
const ReshardPlan& Reshard::plan() const {
  return state_->plan;
}

}  // namespace unisono::parallel
