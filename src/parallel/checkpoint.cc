// Saves and loads checkpoints: maps a part of a tensor to bytes of files.
#include "unisono/parallel/checkpoint.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "parallel/safetensors.h"
#include "parallel/strided.h"
#include "reshard/elements.h"
#include "reshard/pieces.h"
#include "unisono/error.hpp"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void fail(ErrorCode code, const std::string& what, const std::string& next) {
  throw Error(code, "checkpoint: " + what + "\n" + next);
}

[[noreturn]] void fail_file(const std::string& what, const std::string& path) {
  fail(ErrorCode::resource, "cannot " + what + " " + path + ": " + std::strerror(errno),
       "check the folder, its permissions and the free disk space");
}

[[noreturn]] void fail_absent(const std::string& name, const std::string& folder) {
  fail(ErrorCode::usage, "\"" + name + "\" is not in " + folder,
       "call list_checkpoint() for its tensors");
}

std::string file_name(int number, int files) {
  char text[64];
  std::snprintf(text, sizeof(text), "model-%05d-of-%05d.safetensors", number + 1, files);
  return text;
}

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL;

UniqueFd open_file(const std::string& path, int flags) {
  UniqueFd file(open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    fail_file(flags == O_RDONLY ? "open" : "write", path);
  }
  return file;
}

void write_all(int file, const void* data, std::size_t bytes, std::uint64_t at,
               const std::string& path) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes != 0) {
    const ssize_t wrote = pwrite(file, from, bytes, static_cast<off_t>(at));
    if (wrote <= 0) {
      fail_file("write", path);
    }
    from += wrote;
    at += static_cast<std::uint64_t>(wrote);
    bytes -= static_cast<std::size_t>(wrote);
  }
}

void read_all(int file, void* data, std::size_t bytes, std::uint64_t at, const std::string& path) {
  auto* to = static_cast<std::byte*>(data);
  while (bytes != 0) {
    const ssize_t got = pread(file, to, bytes, static_cast<off_t>(at));
    if (got < 0) {
      fail_file("read", path);
    }
    if (got == 0) {
      fail(ErrorCode::corrupt, path + " ends too early", "save it again");
    }
    to += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

void sync(const std::string& path, int flags) {
  const UniqueFd file = open_file(path, flags);
  if (fsync(file.get()) != 0) {
    fail_file("write", path);
  }
}

void check_part(const Saved& saved) {
  const Tensor& part = saved.part;
  bool fits = part.dims() == saved.shape.size() &&
              (saved.first.empty() || saved.first.size() == part.dims());
  for (std::size_t dim = 0; fits && dim < part.dims(); ++dim) {
    const std::size_t first = saved.first.empty() ? 0 : saved.first[dim];
    fits = first <= saved.shape[dim] && part.shape[dim] <= saved.shape[dim] - first;
  }
  if (!fits) {
    fail(ErrorCode::usage,
         "\"" + saved.name + "\": " + part.text() + " is not a part of " +
             Tensor::packed(nullptr, part.dtype, saved.shape).text() +
             (saved.first.empty() ? "" : " from its beginning"),
         "give a part inside the tensor");
  }
}

// Calls body(offset in the tensor, element in the part, elements) for each run of elements of the
// part that is contiguous in the tensor. The part is packed.
void for_each_run(const Saved& saved,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& body) {
  const Tensor& part = saved.part;
  // From this dimension on the part has whole rows of the tensor.
  std::size_t dim = part.dims();
  std::size_t run = 1;
  while (dim > 0) {
    --dim;
    run *= part.shape[dim];
    if (part.shape[dim] != saved.shape[dim]) {
      break;
    }
  }
  std::vector<std::size_t> at(dim, 0);
  for (std::size_t done = 0; done < part.count(); done += run) {
    std::size_t offset = 0;
    for (std::size_t k = 0; k < part.dims(); ++k) {
      offset = offset * saved.shape[k] + (saved.first.empty() ? 0 : saved.first[k]) +
               (k < dim ? at[k] : 0);
    }
    body(offset, done, run);
    for (std::size_t k = dim; k-- > 0;) {
      if (++at[k] < part.shape[k]) {
        break;
      }
      at[k] = 0;
    }
  }
}

// Returns packed memory that holds, or has room for, the elements of a part.
std::vector<std::byte> packed_memory(const Tensor& part) {
  return std::vector<std::byte>(part.count() * size_of(part.dtype));
}

void write_part(const Saved& saved, const FileTensor& where, int file, const std::string& path) {
  const std::size_t bytes = size_of(saved.part.dtype);
  std::vector<std::byte> memory;
  const auto* data = static_cast<const std::byte*>(saved.part.data);
  if (!saved.part.is_packed()) {
    memory = packed_memory(saved.part);
    copy(saved.part, Tensor::packed(memory.data(), saved.part.dtype, saved.part.shape));
    data = memory.data();
  }
  for_each_run(saved, [&](std::size_t offset, std::size_t element, std::size_t count) {
    write_all(file, data + element * bytes, count * bytes, where.begin + offset * bytes, path);
  });
}

struct WorkFailure {
  ErrorCode code;
  std::string text;
};

// Runs a rank's own work. Returns its failure, if any.
template <typename Work>
std::optional<WorkFailure> try_to(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage || error.code() == ErrorCode::resource) {
      return WorkFailure{.code = error.code(), .text = std::string(error.message())};
    }
    return WorkFailure{.code = ErrorCode::resource, .text = error.what()};
  } catch (const std::exception& error) {
    return WorkFailure{.code = ErrorCode::resource, .text = error.what()};
  }
}

// Makes all ranks continue, or none. A rank with a failure throws its own reason. `others`: the
// text on the other ranks, after the rank's number.
void agree(
    Communicator& communicator, const std::optional<WorkFailure>& wrong,
    const char* others = "could not save\nsee its own error; the old checkpoint is unchanged") {
  std::vector<std::int32_t> first = {wrong ? communicator.rank() : communicator.size()};
  communicator.all_reduce(first, min);
  if (wrong) {
    throw Error(wrong->code, wrong->text, {.rank = communicator.rank()});
  }
  if (first[0] != communicator.size()) {
    throw Error(ErrorCode::resource, "checkpoint: rank " + std::to_string(first[0]) + " " + others,
                {.rank = communicator.rank(), .peer = first[0]});
  }
}

// Replaces the old folder by the new one in one step.
void put_in_place(const std::string& saving, const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string parent =
      fs::path(folder).has_parent_path() ? fs::path(folder).parent_path().string() : ".";
  if (fs::exists(folder)) {
    if (renameat2(AT_FDCWD, saving.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
      fail_file("renamed", folder);
    }
    sync(parent, O_RDONLY | O_DIRECTORY);
    fs::remove_all(saving);
  } else {
    if (rename(saving.c_str(), folder.c_str()) != 0) {
      fail_file("renamed", folder);
    }
    sync(parent, O_RDONLY | O_DIRECTORY);
  }
}

std::string read_text(const std::string& path) {
  const UniqueFd file = open_file(path, O_RDONLY);
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) {
    fail_file("read", path);
  }
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  read_all(file.get(), text.data(), text.size(), 0, path);
  return text;
}

FileContents open_contents(const std::string& path, UniqueFd& file) {
  file = open_file(path, O_RDONLY);
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) {
    fail_file("read", path);
  }
  const auto file_bytes = static_cast<std::uint64_t>(about.st_size);
  std::uint64_t length = 0;
  if (file_bytes >= sizeof(length)) {
    read_all(file.get(), &length, sizeof(length), 0, path);
  }
  if (file_bytes < sizeof(length) || length > kMostHeaderBytes ||
      length > file_bytes - sizeof(length)) {
    fail(ErrorCode::corrupt, path + " is not a safetensors file", "save it again");
  }
  std::string header(length, '\0');
  read_all(file.get(), header.data(), header.size(), sizeof(length), path);
  Parsed<FileContents> contents = read_header(header, file_bytes);
  if (!contents) {
    fail(ErrorCode::corrupt, path + ": " + contents.message + " (" + contents.position + ")",
         "save it again");
  }
  return std::move(*contents.value);
}

std::map<std::string, std::string> index_of(const std::string& folder) {
  const std::string path = folder + "/" + kIndex;
  auto files = read_index(read_text(path));
  if (!files) {
    fail(ErrorCode::corrupt, path + ": " + files.message + " (" + files.position + ")",
         "save it again");
  }
  return std::move(*files.value);
}

// The shares that the ranks of a batch read from the disk have at most this many bytes per rank,
// unless a single tensor has more.
constexpr std::size_t kBatchBytes = std::size_t{256} << 20U;

// Returns the layout in which the ranks read a tensor: each rank reads some of its own part, and
// ranks with the same part read equal shares of it. In a mesh with axes after the semicolon, ranks
// with the same part read all of it.
MeshLayout reading_layout(const MeshLayout& layout, const std::vector<std::size_t>& shape) {
  MeshLayout reads = layout;
  if (!layout.mesh.folded().empty()) {
    return reads;
  }
  std::string copies;  // axes along which ranks have the same part
  for (const Axis& axis : layout.mesh.axes()) {
    const bool is_placed = std::ranges::any_of(layout.placements, [&](const AxisPlacement& how) {
      return ("," + how.axis + ",").find("," + axis.name + ",") != std::string::npos;
    });
    copies += is_placed ? "" : "," + axis.name;
  }
  if (copies.empty()) {
    return reads;
  }
  copies.erase(0, 1);
  const std::vector<std::size_t> part = shape_of(elements_at(layout, shape, 0));
  const auto ranks = static_cast<std::size_t>(layout.mesh.size(copies));
  // Cutting an early dimension leaves long runs of bytes in the file.
  auto dim = std::ranges::find_if(part, [&](std::size_t length) { return length >= ranks; });
  dim = dim == part.end() ? std::ranges::max_element(part) : dim;
  if (dim == part.end()) {  // a single element
    return {.mesh = MeshShape::parse("reader=1"), .ranks = {layout.rank_at(0)}};
  }
  reads.placements.push_back(
      {.axis = copies, .placement = Shard(static_cast<std::size_t>(dim - part.begin()))});
  return reads;
}

// A rank's shares of a batch of tensors.
struct Batch {
  std::vector<ReshardTensor> moves = {};
  std::vector<Tensor> in = {};
  std::vector<Tensor> out = {};
  std::vector<std::vector<std::byte>> memory = {};
  std::vector<Saved> wanted = {};
  std::size_t bytes = 0;

  // Adds a tensor, and the boxes of it that this rank reads.
  void add(const Loaded& tensor, const SavedTensor& saved, int rank) {
    moves.push_back({.name = tensor.name,
                     .dtype = saved.dtype,
                     .shape = saved.shape,
                     .from = reading_layout(tensor.layout, saved.shape),
                     .to = tensor.layout});
    out.push_back(tensor.part);
    in.emplace_back();
    const MeshLayout& from = moves.back().from;
    bytes += count_of(elements_at(from, saved.shape, 0)) * size_of(saved.dtype);
    for (int position = 0; position < from.mesh.ranks(); ++position) {
      if (from.rank_at(position) != rank) {
        continue;
      }
      const ElementRanges mine = elements_at(from, saved.shape, position);
      // Memory that nobody reads gives an empty share an address.
      memory.emplace_back(std::max<std::size_t>(count_of(mine) * size_of(saved.dtype), 1));
      in.back() = Tensor::packed(memory.back().data(), saved.dtype, shape_of(mine));
      for_each_box(mine, [&](const std::vector<Range>& box) {
        std::vector<std::size_t> first;
        for (const Range& range : box) {
          first.push_back(range.first);
        }
        wanted.push_back({.name = tensor.name,
                          .shape = saved.shape,
                          .part = view_of(in.back(), mine, box),
                          .first = std::move(first)});
      });
    }
  }
};

}  // namespace

void save_checkpoint(Communicator& communicator, const std::string& folder,
                     std::span<const Saved> tensors) {
  const int files = communicator.size();
  const std::string saving = folder + ".saving";
  std::vector<FileContents> contents(static_cast<std::size_t>(files));
  std::vector<std::vector<std::string>> orders(contents.size());
  std::map<std::string, std::string> index;
  std::uint64_t bytes = 0;
  const auto file_of = [&](std::size_t tensor) { return tensor % contents.size(); };
  std::vector<std::string> headers;
  agree(communicator, try_to([&] {
          for (std::size_t i = 0; i < tensors.size(); ++i) {
            const Saved& saved = tensors[i];
            if (saved.part.data != nullptr) {
              check_part(saved);
            }
            const std::size_t file = file_of(i);
            if (!index.emplace(saved.name, file_name(static_cast<int>(file), files)).second) {
              fail(ErrorCode::usage, "\"" + saved.name + "\" appears twice",
                   "give each tensor its own name");
            }
            contents[file][saved.name] = {.dtype = saved.part.dtype, .shape = saved.shape};
            orders[file].push_back(saved.name);
          }
          for (std::size_t file = 0; file < contents.size(); ++file) {
            headers.push_back(write_header(contents[file], orders[file]));
            for (const auto& [_, tensor] : contents[file]) {
              bytes += tensor.bytes;
            }
          }
          if (communicator.rank() == 0) {
            std::filesystem::remove_all(saving);
            // A folder that another user made meanwhile may contain links to this user's files.
            if (!std::filesystem::create_directories(saving)) {
              fail(ErrorCode::usage, "another process made " + saving,
                   "save into a folder that no other user writes to");
            }
          }
        }));
  agree(communicator, try_to([&] {
          const auto mine = static_cast<std::size_t>(communicator.rank());
          const std::string path = saving + "/" + file_name(communicator.rank(), files);
          const UniqueFd file = open_file(path, kNewFile);
          write_all(file.get(), headers[mine].data(), headers[mine].size(), 0, path);
        }));
  agree(communicator, try_to([&] {
          for (std::size_t number = 0; number < contents.size(); ++number) {
            const std::string path = saving + "/" + file_name(static_cast<int>(number), files);
            const UniqueFd file = open_file(path, O_WRONLY);
            for (std::size_t i = number; i < tensors.size(); i += contents.size()) {
              if (tensors[i].part.data != nullptr) {
                write_part(tensors[i], contents[number].at(tensors[i].name), file.get(), path);
              }
            }
            if (fsync(file.get()) != 0) {
              fail_file("write", path);
            }
          }
        }));
  agree(communicator, try_to([&] {
          if (communicator.rank() == 0) {
            const std::string path = saving + "/" + kIndex;
            const UniqueFd file = open_file(path, kNewFile);
            const std::string text = write_index(index, bytes);
            write_all(file.get(), text.data(), text.size(), 0, path);
            if (fsync(file.get()) != 0) {
              fail_file("write", path);
            }
            sync(saving, O_RDONLY | O_DIRECTORY);
            put_in_place(saving, folder);
          }
        }));
}

void load_checkpoint(const std::string& folder, std::span<const Saved> tensors) {
  const auto files = index_of(folder);
  std::map<std::string, std::pair<UniqueFd, FileContents>> opened;
  for (const Saved& wanted : tensors) {
    check_part(wanted);
    const auto found = files.find(wanted.name);
    if (found == files.end()) {
      fail_absent(wanted.name, folder);
    }
    const std::string path = folder + "/" + found->second;
    if (opened.find(path) == opened.end()) {
      UniqueFd file;
      FileContents contents = open_contents(path, file);
      opened.emplace(path, std::pair(std::move(file), std::move(contents)));
    }
    const auto& [file, contents] = opened.at(path);
    const auto where = contents.find(wanted.name);
    if (where == contents.end()) {
      fail(ErrorCode::corrupt,
           path + " has no \"" + wanted.name + "\", although the index lists it", "save it again");
    }
    if (where->second.shape != wanted.shape || where->second.dtype != wanted.part.dtype) {
      fail(ErrorCode::usage,
           "\"" + wanted.name + "\" is " +
               Tensor::packed(nullptr, where->second.dtype, where->second.shape).text() + ", not " +
               Tensor::packed(nullptr, wanted.part.dtype, wanted.shape).text(),
           "request the dtype and shape that were saved");
    }
    std::vector<std::byte> memory = packed_memory(wanted.part);
    const std::size_t bytes = size_of(wanted.part.dtype);
    for_each_run(wanted, [&](std::size_t offset, std::size_t element, std::size_t count) {
      read_all(file.get(), memory.data() + element * bytes, count * bytes,
               where->second.begin + offset * bytes, path);
    });
    copy(Tensor::packed(memory.data(), wanted.part.dtype, wanted.part.shape), wanted.part);
  }
}

void load_checkpoint(Communicator& communicator, const std::string& folder,
                     std::span<const Loaded> tensors) {
  constexpr const char* kOthers = "could not load\nsee its own error";
  std::map<std::string, SavedTensor> saved;
  agree(communicator, try_to([&] {
          for (SavedTensor& tensor : list_checkpoint(folder)) {
            saved.emplace(tensor.name, std::move(tensor));
          }
          for (const Loaded& tensor : tensors) {
            if (!saved.contains(tensor.name)) {
              fail_absent(tensor.name, folder);
            }
          }
        }),
        kOthers);
  for (std::size_t next = 0; next < tensors.size();) {
    Batch batch;
    agree(communicator, try_to([&] {
            for (; next < tensors.size() && batch.bytes < kBatchBytes; ++next) {
              batch.add(tensors[next], saved.at(tensors[next].name), communicator.rank());
            }
            load_checkpoint(folder, batch.wanted);
          }),
          kOthers);
    Reshard::create(communicator, std::move(batch.moves)).run(batch.in, batch.out);
  }
}

std::vector<SavedTensor> list_checkpoint(const std::string& folder) {
  std::map<std::string, FileContents> opened;
  std::vector<SavedTensor> all;
  for (const auto& [name, file] : index_of(folder)) {
    const std::string path = folder + "/" + file;
    if (opened.find(path) == opened.end()) {
      UniqueFd descriptor;
      opened[path] = open_contents(path, descriptor);
    }
    const auto where = opened[path].find(name);
    if (where == opened[path].end()) {
      fail(ErrorCode::corrupt, path + " has no \"" + name + "\", although the index lists it",
           "save it again");
    }
    all.push_back({.name = name, .dtype = where->second.dtype, .shape = where->second.shape});
  }
  return all;
}

}  // namespace unisono::parallel
