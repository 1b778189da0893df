// What `unisono tune` has measured on this machine, as the communicator uses it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cost/choices.h"
#include "cost/machine_json.h"

namespace unisono::comm {

class Profile {
 public:
  // None: nothing is chosen by it.
  Profile() = default;
  // Throws Error(config) that names the file and the place in it.
  explicit Profile(const std::string& path);
  // A file; "none" for none; "" for the default file, if it is there.
  static Profile find(const std::string& name);

  const std::string& path() const { return path_; }
  const cost::Choices& choices() const { return choices_; }
  // Read at the first call, as few programs ask for it; nullptr: none. Throws as the constructor.
  const cost::Machine* machine() const;

 private:
  struct Model {
    std::once_flag read;
    std::optional<cost::NamedMachine> named;
  };
  std::string path_;
  std::string text_;
  cost::Choices choices_;
  std::unique_ptr<Model> model_ = std::make_unique<Model>();
};

// Where `unisono tune` writes and find("") reads; "" where there is no home. `lookup` is
// read_env().
using ProfileLookup = std::function<std::optional<std::string>(std::string_view)>;
std::string default_profile_path(const ProfileLookup& lookup);

}  // namespace unisono::comm
