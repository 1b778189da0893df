#include "experts.h"

#include <pybind11/stl.h>

#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "unisono/parallel/experts.hpp"

namespace unisono_python {
namespace {

using py::arg;
using unisono::ExpertLayout;
using unisono::Routing;
using unisono::RowCoding;
using Object = const py::object&;

template <typename Value>
Value one_of(const std::map<std::string, Value>& values, const std::string& name,
             const char* what) {
  const auto found = values.find(name);
  if (found == values.end()) {
    std::string known;
    for (const auto& [each, value] : values) {
      known += (known.empty() ? "'" : ", '") + each + "'";
    }
    throw py::value_error(std::string(what) + " is '" + name + "'; known are " + known);
  }
  return found->second;
}

RowCoding coding_of(const std::string& name) {
  return one_of<RowCoding>(
      {{"none", RowCoding::none}, {"i8", RowCoding::i8}, {"f8e4m3", RowCoding::f8e4m3}}, name,
      "coding");
}

std::span<const std::byte> bytes_of(const Memory& memory) {
  return {memory.data(), memory.bytes()};
}
std::span<std::byte> out_bytes_of(const Memory& memory) {
  return {memory.data(), memory.bytes()};
}

template <typename Element>
py::bytes as_bytes(std::span<const Element> elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size_bytes()};
}

// Keeps the objects whose memory a call uses alive until the call has ended.
class Memories {
 public:
  const Memory& read(Object object, const char* name,
                     const std::optional<Elements>& dtype = std::nullopt) {
    return all_.emplace_back(Memory::of(object, Memory::Use::read, name, dtype));
  }
  const Memory& write(Object object, const char* name) {
    return all_.emplace_back(Memory::of(object, Memory::Use::write, name, std::nullopt));
  }
  std::span<const float> floats(Object object, const char* name) {
    if (object.is_none()) {
      return {};
    }
    const Memory& memory = read(object, name);
    if (memory.elements().dtype != unisono::Dtype::f32) {
      throw py::type_error(std::string(name) + " must be float32");
    }
    return {reinterpret_cast<const float*>(memory.data()), memory.count()};
  }

 private:
  std::list<Memory> all_;
};

// Throws if the dtypes differ, because bytes would be misinterpreted.
void check_alike(const char* what, const Memory& memory, const char* other, const Memory& like) {
  if (memory.elements().dtype != like.elements().dtype) {
    throw py::type_error(std::string(what) + " has elements of " +
                         std::string(to_string(memory.elements().dtype)) + ", and " + other +
                         " of " + std::string(to_string(like.elements().dtype)) +
                         "; convert one of them");
  }
}

// A dispatch or combine that the exchange's thread makes, with the memory that it uses.
class ExpertRequest {
 public:
  ExpertRequest(std::unique_ptr<Memories> memories, unisono::Request request)
      : memories_(std::move(memories)), request_(std::move(request)) {}
  ExpertRequest(const ExpertRequest&) = delete;
  ExpertRequest& operator=(const ExpertRequest&) = delete;
  ~ExpertRequest() {
    const py::gil_scoped_release unlocked;
    request_ = {};
  }
  void wait(int timeout_ms) {
    const py::gil_scoped_release unlocked;
    const std::lock_guard lock(waiting_);
    outcome_.wait(request_, timeout_ms);
  }
  bool test() {
    const py::gil_scoped_release unlocked;
    const std::unique_lock lock(waiting_, std::try_to_lock);
    return lock.owns_lock() && (outcome_.has_ended() || request_.test());
  }

 private:
  std::unique_ptr<Memories> memories_;
  unisono::Request request_;
  std::mutex waiting_;  // guards the members below, and the right to wait
  Outcome outcome_;
};

// tokens, out, row_bytes, one_a_slot, coding
using GivenPayload = std::tuple<py::object, py::object, std::size_t, bool, std::string>;

class ExpertExchange {
  template <typename Call>
  auto alone(Call call) {
    return comm_->alone([&](unisono::Communicator&) {
      if (!exchange_) {
        throw unisono::Error(unisono::ErrorCode::usage, "the exchange is closed\nmake a new one");
      }
      return call(*exchange_);
    });
  }
  // Returns the request of an asynchronous call, or nullptr after a blocking call.
  template <typename Call>
  std::unique_ptr<ExpertRequest> begin(std::unique_ptr<Memories> memories, bool is_async,
                                       Call call) {
    unisono::Request request = alone(call);
    return is_async ? std::make_unique<ExpertRequest>(std::move(memories), std::move(request))
                    : nullptr;
  }

 public:
  ExpertExchange(std::shared_ptr<Comm> comm, const unisono::ExpertExchangeOptions& options)
      : comm_(std::move(comm)) {
    comm_->alone([&](unisono::Communicator& open) { exchange_.emplace(open, options); });
  }
  ~ExpertExchange() { close(); }

  std::unique_ptr<Routing> route(Object chosen) {
    const Memory memory = Memory::of(chosen, Memory::Use::read, "chosen", std::nullopt);
    return alone([&](unisono::ExpertExchange& open) {
      switch (memory.elements().dtype) {
        case unisono::Dtype::i32:
          return std::make_unique<Routing>(open.route(
              std::span(reinterpret_cast<const std::int32_t*>(memory.data()), memory.count())));
        case unisono::Dtype::i64:
          return std::make_unique<Routing>(open.route(
              std::span(reinterpret_cast<const std::int64_t*>(memory.data()), memory.count())));
        default:
          throw unisono::Error(unisono::ErrorCode::usage,
                               "route(): chosen must be int32 or int64\nconvert it");
      }
    });
  }

  std::unique_ptr<ExpertRequest> dispatch(const Routing& routing,
                                          const std::vector<GivenPayload>& given, bool is_async) {
    auto memories = std::make_unique<Memories>();
    std::vector<unisono::Payload> payloads;
    for (const auto& [tokens, out, row_bytes, one_a_slot, coding] : given) {
      const Memory& in = memories->read(tokens, "tokens");
      const Memory& to = memories->write(out, "out");
      check_alike("out", to, "tokens", in);
      payloads.push_back({.in = bytes_of(in),
                          .out = out_bytes_of(to),
                          .row_bytes = row_bytes,
                          .one_a_slot = one_a_slot,
                          .coding = coding_of(coding),
                          .dtype = in.elements().dtype});
    }
    return begin(std::move(memories), is_async, [&](unisono::ExpertExchange& open) {
      if (is_async) {
        return open.dispatch_async(routing, payloads);
      }
      open.dispatch(routing, payloads);
      return unisono::Request();
    });
  }

  // Returns the addresses of the rows as 64-bit numbers.
  py::bytes gather_list(const Routing& routing, Object tokens, std::size_t row_bytes) {
    const Memory in = Memory::of(tokens, Memory::Use::read, "tokens", std::nullopt);
    const std::vector<const std::byte*> rows = alone([&](unisono::ExpertExchange& open) {
      return open.gather_list(routing, bytes_of(in), row_bytes);
    });
    return as_bytes<const std::byte*>(rows);
  }
  void end_gather() {
    alone([](unisono::ExpertExchange& open) { open.end_gather(); });
  }

  std::unique_ptr<ExpertRequest> combine(const Routing& routing, Object rows, Object out,
                                         std::size_t hidden, Object weights, Object residual,
                                         const std::string& coding, bool is_async) {
    auto memories = std::make_unique<Memories>();
    const Memory& in = memories->read(rows, "rows");
    const Memory& to = memories->write(out, "out");
    check_alike("out", to, "rows", in);
    unisono::CombineRows combine{.rows = bytes_of(in),
                                 .out = out_bytes_of(to),
                                 .dtype = in.elements().dtype,
                                 .hidden = hidden,
                                 .weights = memories->floats(weights, "weights"),
                                 .coding = coding_of(coding)};
    if (!residual.is_none()) {
      const Memory& first = memories->read(residual, "residual");
      check_alike("residual", first, "rows", in);
      combine.residual = bytes_of(first);
    }
    return begin(std::move(memories), is_async, [&](unisono::ExpertExchange& open) {
      if (is_async) {
        return open.combine_async(routing, combine);
      }
      open.combine(routing, combine);
      return unisono::Request();
    });
  }

  void combine_backward(const Routing& routing, Object gradient, Object rows_gradient,
                        std::size_t hidden, Object weights, Object rows, Object weights_gradient) {
    Memories memories;
    const Memory& in = memories.read(gradient, "out_gradient");
    const Memory& to = memories.write(rows_gradient, "rows_gradient");
    check_alike("rows_gradient", to, "out_gradient", in);
    unisono::CombineGradient all{.out_gradient = bytes_of(in),
                                 .rows_gradient = out_bytes_of(to),
                                 .dtype = in.elements().dtype,
                                 .hidden = hidden,
                                 .weights = memories.floats(weights, "weights")};
    if (!rows.is_none()) {
      const Memory& outputs = memories.read(rows, "rows");
      check_alike("rows", outputs, "out_gradient", in);
      all.rows = bytes_of(outputs);
    }
    if (!weights_gradient.is_none()) {
      const Memory& memory = memories.write(weights_gradient, "weights_gradient");
      if (memory.elements().dtype != unisono::Dtype::f32) {
        throw py::type_error("weights_gradient must be float32");
      }
      all.weights_gradient = {reinterpret_cast<float*>(memory.data()), memory.count()};
    }
    alone([&](unisono::ExpertExchange& open) { open.combine_backward(routing, all); });
  }

  std::vector<int> mask(const std::vector<int>& ranks, std::optional<std::int64_t> routes) {
    return alone([&](unisono::ExpertExchange& open) {
      return open.mask(ranks, routes.value_or(unisono::kUntilNextMask));
    });
  }
  std::vector<int> masked() {
    return alone([](unisono::ExpertExchange& open) { return open.masked(); });
  }
  std::size_t max_tokens() {
    return alone([](unisono::ExpertExchange& open) { return open.max_tokens(); });
  }
  std::size_t max_rows() {
    return alone([](unisono::ExpertExchange& open) { return open.max_rows(); });
  }

  void close() {
    if (exchange_) {
      const py::gil_scoped_release unlocked;
      exchange_.reset();
    }
  }

 private:
  std::shared_ptr<Comm> comm_;  // shared with Python
  std::optional<unisono::ExpertExchange> exchange_;
};

std::unique_ptr<ExpertExchange> make_exchange(std::shared_ptr<Comm> comm, int experts, int k,
                                              const std::string& layout, int alignment,
                                              std::int64_t capacity,
                                              const std::vector<std::vector<int>>& experts_of_rank,
                                              std::size_t max_tokens, std::size_t row_bytes) {
  const auto lie = one_of<ExpertLayout>({{"expert_major", ExpertLayout::expert_major},
                                         {"rank_major", ExpertLayout::rank_major},
                                         {"flat", ExpertLayout::flat}},
                                        layout, "layout");
  return std::make_unique<ExpertExchange>(
      std::move(comm), unisono::ExpertExchangeOptions{.experts = experts,
                                                      .k = k,
                                                      .layout = lie,
                                                      .alignment = alignment,
                                                      .capacity = capacity,
                                                      .experts_of_rank = experts_of_rank,
                                                      .max_tokens = max_tokens,
                                                      .row_bytes = row_bytes});
}

py::bytes sources_of(const Routing& routing) {
  std::vector<std::int64_t> numbers;
  for (const unisono::RowSource& source : routing.sources()) {
    numbers.insert(numbers.end(), {source.rank, source.token, source.slot});
  }
  return as_bytes<std::int64_t>(numbers);
}

void define_routing(py::module_& module) {
  py::class_<Routing>(
      module, "ExpertRouting",
      "The routing of tokens to ranks: route() makes it; it can be used any number of times.")
      .def_property_readonly("tokens", &Routing::tokens, "The number of tokens of this rank.")
      .def_property_readonly("rows", &Routing::rows,
                             "The number of rows that a dispatch writes here, with padding.")
      .def("first_row", &Routing::first_row, arg("local"))
      .def("rows_of", &Routing::rows_of, arg("local"))
      .def_property_readonly("experts_here",
                             [](const Routing& self) {
                               return std::vector<int>(self.experts_here().begin(),
                                                       self.experts_here().end());
                             })
      .def_property_readonly(
          "chosen",
          [](const Routing& self) {
            return std::vector<std::int64_t>(self.chosen().begin(), self.chosen().end());
          },
          "By expert: how many tokens on all ranks chose it.")
      .def_property_readonly("dropped", &Routing::dropped)
      .def_property_readonly(
          "rows_of_ranks",
          [](const Routing& self) {
            return std::vector<std::int64_t>(self.rows_of_ranks().begin(),
                                             self.rows_of_ranks().end());
          },
          "By rank: how many rows a dispatch brings there, without padding.")
      .def("_sources", &sources_of)
      .def("_experts", [](const Routing& self) { return as_bytes(self.experts()); });
}

}  // namespace

void define_experts(py::module_& module) {
  define_routing(module);
  py::class_<ExpertRequest>(module, "ExpertRequest", "See unisono.expert.Pending.")
      .def("wait", &ExpertRequest::wait, arg("timeout_ms"))
      .def("test", &ExpertRequest::test);
  py::class_<ExpertExchange>(module, "ExpertExchange", "See unisono.expert.ExpertExchange.")
      .def(py::init(&make_exchange), arg("comm"), arg("experts"), arg("k"), arg("layout"),
           arg("alignment"), arg("capacity"), arg("experts_of_rank"), arg("max_tokens"),
           arg("row_bytes"))
      .def("route", &ExpertExchange::route, arg("chosen"))
      .def("dispatch", &ExpertExchange::dispatch, arg("routing"), arg("payloads"), arg("is_async"))
      .def("gather_list", &ExpertExchange::gather_list, arg("routing"), arg("tokens"),
           arg("row_bytes"))
      .def("end_gather", &ExpertExchange::end_gather)
      .def("combine", &ExpertExchange::combine, arg("routing"), arg("rows"), arg("out"),
           arg("hidden"), arg("weights"), arg("residual"), arg("coding"), arg("is_async"))
      .def("combine_backward", &ExpertExchange::combine_backward, arg("routing"), arg("gradient"),
           arg("rows_gradient"), arg("hidden"), arg("weights"), arg("rows"),
           arg("weights_gradient"))
      .def("mask", &ExpertExchange::mask, arg("ranks"), arg("routes"))
      .def("masked", &ExpertExchange::masked)
      .def("max_tokens", &ExpertExchange::max_tokens)
      .def("max_rows", &ExpertExchange::max_rows)
      .def("close", &ExpertExchange::close);
}

}  // namespace unisono_python
