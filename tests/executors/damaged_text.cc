#include "damaged_text.h"

namespace unisono::executors::testing {

std::string damaged(std::string text, std::mt19937& random) {
  const std::string whole = text;
  for (std::size_t hits = 1 + random() % 3; hits-- > 0 && !text.empty();) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = static_cast<char>('0' + random() % 10);
        break;
      case 2:
        text.erase(at, 1 + random() % 40);
        break;
      default:
        text.insert(at, whole.substr(random() % whole.size(), random() % 40));
        break;
    }
  }
  return text;
}

}  // namespace unisono::executors::testing
