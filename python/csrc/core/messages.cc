// Messages, groups, registered memory.
#include <pybind11/stl.h>

#include <optional>
#include <utility>
#include <vector>

#include "communicator.h"

namespace unisono_python {
namespace {

struct RegionHandle {
  unisono::Region region;
  std::shared_ptr<Memory> memory;  // of the user, where it was not allocated here
};

}  // namespace

void define_region(py::module_& module) {
  py::class_<RegionHandle, std::shared_ptr<RegionHandle>>(
      module, "Region", py::buffer_protocol(),
      "Memory that the peers read and write where it is. Has the buffer protocol (writable "
      "bytes): numpy.frombuffer(region, dtype=...). Unregistered when nothing refers to it; no "
      "operation may be under way on it then.")
      .def_buffer([](RegionHandle& self) {
        const auto bytes = self.region.bytes();
        return py::buffer_info(bytes.data(), 1, "B", static_cast<py::ssize_t>(bytes.size()));
      })
      .def_property_readonly("nbytes",
                             [](const RegionHandle& self) { return self.region.bytes().size(); });
}

void define_messages(py::class_<Comm, std::shared_ptr<Comm>>& comm) {
  using py::arg;
  comm.def(
      "send",
      [](Comm& self, const py::object& data, int to, int tag, int timeout_ms) {
        const Memory memory = Memory::bytes_of(data, Memory::Use::read, "data");
        self.alone([&](unisono::Communicator& open) {
          open.send(memory.data(), memory.bytes(), to, tag, timeout_ms);
        });
      },
      arg("data"), arg("to"), arg("tag") = 0, py::kw_only(), arg("timeout_ms") = -1,
      "Sends the bytes of `data` to rank `to`; may return before they are received if they are "
      "few (16 KiB). Messages with one tag between two ranks arrive in order.");
  comm.def(
      "recv",
      [](Comm& self, const py::object& data, int from, int tag, int timeout_ms) {
        const Memory memory = Memory::bytes_of(data, Memory::Use::write, "data");
        self.alone([&](unisono::Communicator& open) {
          open.recv(memory.data(), memory.bytes(), from, tag, timeout_ms);
        });
        return data;
      },
      arg("data"), arg("from_"), arg("tag") = 0, py::kw_only(), arg("timeout_ms") = -1,
      "Receives as many bytes as `data` has, from rank `from_` or from ANY_SOURCE. A message of "
      "another size is a Mismatch on both sides.");
  comm.def(
      "exchange",
      [](Comm& self, const py::object& data, int to, const py::object& out, int from, int tag,
         int timeout_ms) {
        const Memory sent = Memory::bytes_of(data, Memory::Use::read, "data");
        const Memory received = Memory::bytes_of(out, Memory::Use::write, "out");
        self.alone([&](unisono::Communicator& open) {
          open.exchange(sent.data(), sent.bytes(), to, received.data(), received.bytes(), from, tag,
                        timeout_ms);
        });
        return out;
      },
      arg("data"), arg("to"), arg("out"), arg("from_"), arg("tag") = 0, py::kw_only(),
      arg("timeout_ms") = -1, "Sends to one rank and receives from another, or the same, at once.");
  comm.def(
      "send_async",
      [](Comm& self, const py::object& data, int to, int tag, int timeout_ms) {
        auto job = self.job({});
        const Memory& memory = job->raw(data, Memory::Use::read);
        return self.begin(std::move(job), [&] {
          return self.open().send_async(memory.data(), memory.bytes(), to, tag, timeout_ms);
        });
      },
      arg("data"), arg("to"), arg("tag") = 0, py::kw_only(), arg("timeout_ms") = -1,
      "As send(); `data` must not change before the request has ended.");
  comm.def(
      "recv_async",
      [](Comm& self, const py::object& data, int from, int tag, int timeout_ms) {
        auto job = self.job({});
        const Memory& memory = job->raw(data, Memory::Use::write);
        return self.begin(std::move(job), [&] {
          return self.open().recv_async(memory.data(), memory.bytes(), from, tag, timeout_ms);
        });
      },
      arg("data"), arg("from_"), arg("tag") = 0, py::kw_only(), arg("timeout_ms") = -1,
      "As recv(); request.source() then says which rank it came from.");
}

void define_groups(py::class_<Comm, std::shared_ptr<Comm>>& comm) {
  using py::arg;
  comm.def(
      "split",
      [](Comm& self, int color, int key) -> std::shared_ptr<Comm> {
        std::optional<unisono::Communicator> part;
        self.alone([&](unisono::Communicator& open) { part = open.split(color, key); });
        return part->size() == 0 ? nullptr : adopt(std::move(*part));
      },
      arg("color"), arg("key") = 0,
      "Ranks with the same color form a group, ordered by key, then rank. color < 0: in no group, "
      "and None is returned. All ranks must call it.");
  comm.def(
      "subgroup",
      [](Comm& self, const std::vector<int>& members, std::uint64_t id) {
        std::optional<unisono::Communicator> part;
        self.alone([&](unisono::Communicator& open) { part = open.subgroup(members, id); });
        return adopt(std::move(*part));
      },
      arg("members"), arg("id"),
      "A group of some ranks, which only they call; each of them a process of its own. `id` names "
      "it, the same on all members, and other than that of any other group that one of them is "
      "in.");
  comm.def(
      "shrink",
      [](Comm& self, int timeout_ms, bool quorum) {
        std::optional<unisono::Communicator> left;
        self.alone([&](unisono::Communicator& open) {
          left = open.shrink({.timeout_ms = timeout_ms, .quorum = quorum});
        });
        return adopt(std::move(*left));
      },
      py::kw_only(), arg("timeout_ms") = -1, arg("quorum") = true,
      "After PeerLost or Timeout: a communicator of the ranks that are still there, in their old "
      "order. All of them call it, on the communicator of the whole world. timeout_ms: how long to "
      "wait for ranks that may live; -1 as long as to connect. quorum: at most one world comes of "
      "this one. Raises Evicted.");
  comm.def(
      "grow",
      [](Comm& self, int size, const std::string& address) {
        std::optional<unisono::Communicator> more;
        self.alone([&](unisono::Communicator& open) { more = open.grow(size, address); });
        return adopt(std::move(*more));
      },
      arg("size"), py::kw_only(), arg("address") = "",
      "A communicator of `size` ranks: these, with the same numbers, and new processes that "
      "connect as ranks of a world of `size`, with the first world's job name. All ranks call it.");
  comm.def_property_readonly(
      "previous_ranks",
      [](Comm& self) {
        return self.alone([](unisono::Communicator& open) { return open.previous_ranks(); });
      },
      "By rank: what it was in the world that this one was shrunk from; empty if it was not.");
  comm.def("group", &Comm::group, arg("body"),
           "Calls body(), whose asynchronous calls on this communicator are started as one, and "
           "waits for all of them. If body() raises, nothing is started.");
  comm.def(
      "allocate",
      [](Comm& self, std::size_t bytes) {
        auto region = self.alone([&](unisono::Communicator& open) { return open.allocate(bytes); });
        return std::make_shared<RegionHandle>(RegionHandle{std::move(region), nullptr});
      },
      arg("nbytes"), "New, zeroed, page-aligned memory that the peers reach directly.");
  comm.def(
      "register_buffer",
      [](Comm& self, const py::object& data) {
        auto memory =
            std::make_shared<Memory>(Memory::of(data, Memory::Use::write, "data", std::nullopt));
        auto region = self.alone([&](unisono::Communicator& open) {
          return open.register_buffer({memory->data(), memory->bytes()});
        });
        return std::make_shared<RegionHandle>(RegionHandle{std::move(region), std::move(memory)});
      },
      arg("data"),
      "Moves the whole pages of `data` onto memory that the peers reach directly, at the same "
      "address (about 1 ms per MiB). The Region keeps `data` alive.");
}

}  // namespace unisono_python
