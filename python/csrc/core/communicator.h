// unisono::Communicator for Python: serialises threads, and keeps buffers alive.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "job.h"

namespace unisono_python {

// Outcome of a request, for all waiters. REQUIRES: the owner holds its lock.
class Outcome {
 public:
  bool has_ended() const { return has_ended_; }
  // Waits for the request. Every call throws the request's exception.
  void wait(unisono::Request& request, int timeout_ms) {
    if (!std::exchange(has_ended_, true)) {
      try {
        request.wait(timeout_ms);
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  bool has_ended_ = false;
  std::exception_ptr failure_;
};

// An operation in progress, with everything that it uses.
class Request {
 public:
  Request(std::shared_ptr<Job> job, unisono::Request request)
      : job_(std::move(job)), request_(std::move(request)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();
  // Returns the outcome; may be called again.
  py::object wait(int timeout_ms);
  bool test();
  int source() const { return request_.source(); }
  std::size_t received() const { return request_.received(); }

 private:
  std::shared_ptr<Job> job_;  // shared with its plan, or with group()
  unisono::Request request_;
  std::mutex waiting_;  // guards the members below, and the right to wait
  Outcome outcome_;
};

class Comm;

class Plan {
 public:
  Plan(std::shared_ptr<Comm> comm, std::shared_ptr<Job> job, unisono::Plan plan)
      : comm_(std::move(comm)), job_(std::move(job)), plan_(std::move(plan)) {}
  py::object start();
  std::unique_ptr<Request> start_async();
  std::string algorithm() const { return std::string(plan_.algorithm()); }

 private:
  std::shared_ptr<Comm> comm_;
  std::shared_ptr<Job> job_;
  unisono::Plan plan_;
};

// Runs calls of several threads one after the other.
class Comm : public std::enable_shared_from_this<Comm> {
 public:
  // A mesh shares ownership of its communicators.
  explicit Comm(std::shared_ptr<unisono::Communicator> communicator)
      : communicator_(std::move(communicator)) {}
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm() { close(); }

  int rank() const { return open().rank(); }
  int size() const { return open().size(); }
  int hosts() const { return open().hosts(); }
  int local_rank() const { return open().local_rank(); }
  int local_size() const { return open().local_size(); }
  unisono::Communicator& open() const;
  // Returns the communicator for objects that keep a reference. The rank leaves after these objects
  // are destroyed too.
  std::shared_ptr<unisono::Communicator> shared() const;
  bool is_closed() const { return communicator_ == nullptr; }
  void close();
  void abort(const std::string& reason);
  void label(const std::string& text);
  py::object failure();
  std::vector<int> late_ranks();
  py::dict statistics();

  std::shared_ptr<Job> job(const Common& common) const;
  py::object run(std::shared_ptr<Job> job);
  std::unique_ptr<Request> start(std::shared_ptr<Job> job);
  // Calls `begin` without the GIL and with exclusive use of the communicator.
  std::unique_ptr<Request> begin(std::shared_ptr<Job> job,
                                 const std::function<unisono::Request()>& begin);
  std::unique_ptr<Plan> plan(std::shared_ptr<Job> job);
  void group(const py::function& body);

  // Calls `call` without the GIL and with exclusive use of the communicator.
  template <typename Call>
  auto alone(Call call) {
    return locked([&] { return call(open()); });
  }
  // Does the same, but allows a closed communicator.
  template <typename Call>
  auto locked(Call call) {
    const py::gil_scoped_release unlocked;
    const std::lock_guard lock(using_);
    return call();
  }

 private:
  std::shared_ptr<unisono::Communicator> communicator_;
  std::mutex looking_;  // guards the communicator against close() while another thread is in a call
                        // that waits for none: abort(), failure()
  std::recursive_mutex using_;  // guards the communicator and the members below
  bool grouping_ = false;
  std::vector<std::shared_ptr<Job>> grouped_;
};

// Returns the corresponding exception of unisono._errors.
py::object to_python(const unisono::Error& error);

// Returns Python's handle, which closes the communicator at the end of the process.
std::shared_ptr<Comm> adopt(unisono::Communicator communicator);
std::shared_ptr<Comm> adopt(std::shared_ptr<unisono::Communicator> communicator);

void define_communicator(py::module_& module);
void define_connecting(py::module_& module);
void define_region(py::module_& module);
void define_messages(py::class_<Comm, std::shared_ptr<Comm>>& comm);
void define_groups(py::class_<Comm, std::shared_ptr<Comm>>& comm);
void define_collectives(py::class_<Comm, std::shared_ptr<Comm>>& comm);

}  // namespace unisono_python
