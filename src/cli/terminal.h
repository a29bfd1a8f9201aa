#pragma once

#include <string>

namespace headway {

/// Whether `fd` is a terminal that a person looks at.
bool is_terminal(int fd);

/// Whether colours are wanted there: a terminal that is not "dumb", and NO_COLOR is not set.
bool colours_on(int fd);

/// Columns of the terminal at `fd`, 80 if it does not say.
int terminal_width(int fd);

/// Writes all of `text` at once, so that what several ranks write does not mix. Errors are ignored.
void write_text(int fd, const std::string& text);
void write_line(int fd, const std::string& text);

}  // namespace headway
