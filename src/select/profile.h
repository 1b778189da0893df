// The results of `unisono tune` on this machine, as used by the communicator.
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
  // An empty profile, which chooses nothing.
  Profile() = default;
  // Throws Error(config) that names the file and the position in it.
  explicit Profile(const std::string& path);
  // `name`: a file; "none" for no profile; "" for the default file, if it exists.
  static Profile find(const std::string& name);

  const std::string& path() const { return path_; }
  const cost::Choices& choices() const { return choices_; }
  // Returns the fitted machine, or nullptr if there is none. Reads the file at the first call,
  // because few programs need it. Throws like the constructor.
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

// Returns the file that `unisono tune` writes and find("") reads; "" if there is no home directory.
// `lookup` is read_env().
using ProfileLookup = std::function<std::optional<std::string>(std::string_view)>;
std::string default_profile_path(const ProfileLookup& lookup);

}  // namespace unisono::comm
