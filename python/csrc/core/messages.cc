// Messages, groups, registered memory.
#include <pybind11/stl.h>

#include <optional>
#include <utility>
#include <vector>

#include "communicator.h"

namespace unisono_python {
namespace {

using unisono::detail::ExactReceives;

struct RegionHandle {
  unisono::Region region;
  std::shared_ptr<Memory> memory;  // the user's memory, if not allocated here
};

}  // namespace

void define_region(py::module_& module) {
  py::class_<RegionHandle, std::shared_ptr<RegionHandle>>(
      module, "Region", py::buffer_protocol(),
      "Memory that the peers access directly. Supports the buffer protocol (writable bytes): "
      "numpy.frombuffer(region, dtype=...). It is unregistered when nothing refers to it; then no "
      "operation on it may be in progress.")
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
      "Sends the bytes of `data` to rank `to`; may return before they are received if they fit "
      "into the lane's buffers (256 KiB within a host, about 2 MiB between hosts). Messages with "
      "one tag between two ranks arrive in order.");
  comm.def(
      "recv",
      [](Comm& self, const py::object& data, int from, int tag, int timeout_ms) {
        const Memory memory = Memory::bytes_of(data, Memory::Use::write, "data");
        self.alone([&](unisono::Communicator& open) {
          ExactReceives::recv(open, memory.data(), memory.bytes(), from, tag, timeout_ms);
        });
        return data;
      },
      arg("data"), arg("from_"), arg("tag") = 0, py::kw_only(), arg("timeout_ms") = -1,
      "Receives a message of the size of `data` from rank `from_` or from ANY_SOURCE. A message of "
      "another size raises MismatchError on all ranks.");
  comm.def(
      "send_recv",
      [](Comm& self, const py::object& data, int to, const py::object& out, int from, int tag,
         int timeout_ms) {
        const Memory sent = Memory::bytes_of(data, Memory::Use::read, "data");
        const Memory received = Memory::bytes_of(out, Memory::Use::write, "out");
        self.alone([&](unisono::Communicator& open) {
          ExactReceives::send_recv(open, sent.data(), sent.bytes(), to, received.data(),
                                   received.bytes(), from, tag, timeout_ms);
        });
        return out;
      },
      arg("data"), arg("to"), arg("out"), arg("from_"), arg("tag") = 0, py::kw_only(),
      arg("timeout_ms") = -1,
      "Sends to one rank and receives from the same or another rank at once.");
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
      "Like send(), but returns a Request; `data` must not change before it ends.");
  comm.def(
      "recv_async",
      [](Comm& self, const py::object& data, int from, int tag, bool exact, int timeout_ms) {
        auto job = self.job({});
        const Memory& memory = job->raw(data, Memory::Use::write);
        return self.begin(std::move(job), [&] {
          return exact
                     ? ExactReceives::recv_async(self.open(), memory.data(), memory.bytes(), from,
                                                 tag, timeout_ms)
                     : self.open().recv_async(memory.data(), memory.bytes(), from, tag, timeout_ms);
        });
      },
      arg("data"), arg("from_"), arg("tag") = 0, py::kw_only(), arg("exact") = true,
      arg("timeout_ms") = -1,
      "Like recv(), but returns a Request, whose source() is the rank that the message came from. "
      "With exact=False the message may be shorter than `data`; received() is its length.");
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
      "Splits the group: ranks with the same color form a new group, ordered by key, then rank. "
      "With color < 0 a rank is in no group, and None is returned. Collective.");
  comm.def(
      "subgroup",
      [](Comm& self, const std::vector<int>& members, std::uint64_t id) {
        std::optional<unisono::Communicator> part;
        self.alone([&](unisono::Communicator& open) { part = open.subgroup(members, id); });
        return adopt(std::move(*part));
      },
      arg("members"), arg("id"),
      "Makes a group of some ranks. Only these ranks call it; each must be its own process. `id` "
      "must be the same on all members. Groups that share a member need different ids while both "
      "live.");
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
      "Makes a communicator of the ranks that are left after an error that has ended the world, in "
      "their old order. All of them call it, on the communicator of the whole world. timeout_ms: "
      "how long to wait for ranks that may be alive; -1: as long as connect(). quorum: make at "
      "most "
      "one world of this one. Raises EvictedError.");
  comm.def(
      "grow",
      [](Comm& self, int size, const std::string& address) {
        std::optional<unisono::Communicator> more;
        self.alone([&](unisono::Communicator& open) { more = open.grow(size, address); });
        return adopt(std::move(*more));
      },
      arg("size"), py::kw_only(), arg("address") = "",
      "Makes a communicator of `size` ranks: the current ranks, with their numbers, and new "
      "processes that connect as ranks of a world of `size` with the first world's job name. "
      "Collective.");
  comm.def_property_readonly(
      "previous_ranks",
      [](Comm& self) {
        return self.alone([](unisono::Communicator& open) { return open.previous_ranks(); });
      },
      "By rank: its number in the world before shrink(); empty if this world was not shrunk.");
  comm.def("group", &Comm::group, arg("body"),
           "Calls body(), starts its asynchronous calls on this communicator together, and waits "
           "for all of them: their requests need no wait(), which raises UsageError. If body() "
           "raises, nothing is started.");
  comm.def(
      "allocate",
      [](Comm& self, std::size_t bytes) {
        auto region = self.alone([&](unisono::Communicator& open) { return open.allocate(bytes); });
        return std::make_shared<RegionHandle>(RegionHandle{std::move(region), nullptr});
      },
      arg("nbytes"), "Allocates zeroed, page-aligned memory that the peers access directly.");
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
      "Moves the whole pages of `data` to memory that the peers access directly, at the same "
      "address (about 1 ms per MiB). The Region keeps `data` alive.");
}

}  // namespace unisono_python
