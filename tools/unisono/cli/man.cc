// Man pages in roff, from the option tables.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/commands.h"
#include "cli/help.h"

namespace unisono::cli {
namespace {

// Escapes backslashes, dashes, and a leading dot or quote, which have a meaning in roff.
std::string escaped(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) {
      result += "\\&";
    }
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_start = c == '\n';
  }
  return result;
}

std::string paragraphs(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t gap = text.find("\n\n");
    result += fmt::format(".PP\n{}\n", escaped(text.substr(0, gap)));
    text = gap == std::string_view::npos ? std::string_view{} : text.substr(gap + 2);
  }
  return result;
}

std::string option_entry(const Option& option) {
  std::string text = ".TP\n";
  if (option.letter != 0) {
    text += fmt::format("\\fB\\-{}\\fR, ", option.letter);
  }
  text += fmt::format("\\fB\\-\\-{}\\fR", escaped(option.name));
  if (!option.value.empty()) {
    text += fmt::format(" \\fI{}\\fR", escaped(option.value));
  }
  text += fmt::format("\n{}\n", escaped(option.help));
  if (!option.choices.empty()) {
    text += fmt::format("One of {}.\n", fmt::join(split_choices(option.choices), ", "));
  }
  if (option.repeats) {
    text += "May be repeated.\n";
  }
  if (!option.fallback.empty()) {
    text += fmt::format("Default: {}.\n", escaped(option.fallback));
  }
  return text;
}

std::string overview_page() {
  std::string text =
      ".TH UNISONO 1\n.SH NAME\nunisono \\- collective communication: run it, measure it, prove "
      "it, see it\n.SH SYNOPSIS\n\\fBunisono\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH "
      "COMMANDS\n";
  for (const Command* command : commands()) {
    text +=
        fmt::format(".TP\n\\fBunisono\\-{}\\fR(1)\n{}\n", command->name, escaped(command->summary));
  }
  text +=
      ".SH EXIT STATUS\n.TP\n0\nDone and correct.\n.TP\n1\nThe answer is no: wrong data, schedule "
      "invalid, mismatch found.\n.TP\n2\nUsage or configuration.\n.TP\n3\nCould not run: "
      "connection, "
      "peer lost, resource.\n.TP\n4\nTimed out.\n.TP\n5\nSlower than requested.\n.TP\n128+N\nEnded "
      "by "
      "signal N.\n";
  return text;
}

}  // namespace

std::string man_page(const Command* command) {
  if (command == nullptr) {
    return overview_page();
  }
  std::string upper(command->name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = fmt::format(
      ".TH UNISONO\\-{} 1\n.SH NAME\nunisono\\-{} \\- {}\n.SH SYNOPSIS\n"
      "\\fBunisono {}\\fR [\\fIOPTION\\fR...] {}\n.SH EXAMPLES\n",
      upper, command->name, escaped(command->summary), command->name, escaped(command->operands));
  for (const Example& example : command->examples) {
    text += fmt::format(".PP\n.nf\n\\fB{}\\fR\n.fi\n.RS\n{}\n.RE\n", escaped(example.command),
                        escaped(example.what));
  }
  text += ".SH DESCRIPTION\n" + paragraphs(command->description) + ".SH OPTIONS\n";
  for (const Option& option : all_options(*command)) {
    text += option_entry(option);
  }
  return text + ".SH SEE ALSO\n\\fBunisono\\fR(1)\n";
}

}  // namespace unisono::cli
