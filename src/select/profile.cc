#include "select/profile.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(
      ErrorCode::config,
      "profile " + path + what +
          "\nrewrite it with `unisono tune`, or set UNISONO_PROFILE=none to use no profile");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || file.bad()) {
    refuse(path, " cannot be read");
  }
  return text;
}

template <typename T>
T take(Parsed<T> parsed, const std::string& path, const std::string& text) {
  if (!parsed) {
    refuse(path, place_in(text, parsed.position) + ": " + parsed.message);
  }
  return std::move(*parsed.value);
}

}  // namespace

Profile::Profile(const std::string& path)
    : path_(path),
      text_(read_file(path)),
      choices_(take(cost::parse_choices_json(text_), path_, text_)) {}

Profile Profile::find(const std::string& name) {
  if (name == "none") {
    return {};
  }
  if (!name.empty()) {
    return Profile(name);
  }
  const std::string path = default_profile_path(read_env);
  return path.empty() || ::access(path.c_str(), F_OK) != 0 ? Profile() : Profile(path);
}

const cost::Machine* Profile::machine() const {
  if (path_.empty()) {
    return nullptr;
  }
  std::call_once(model_->read,
                 [this] { model_->named = take(cost::parse_machine_json(text_), path_, text_); });
  return &model_->named->machine;
}

std::string default_profile_path(const ProfileLookup& lookup) {
  const std::string config = lookup("XDG_CONFIG_HOME").value_or("");
  if (!config.empty()) {
    return config + "/unisono/profile.json";
  }
  const std::string home = lookup("HOME").value_or("");
  return home.empty() ? "" : home + "/.config/unisono/profile.json";
}

}  // namespace unisono::comm
