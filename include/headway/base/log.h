#pragma once

#include <string_view>

namespace headway {

enum class LogLevel { debug, info, warning, error };

/// Writes one line to standard error if `level` is at or above HEADWAY_LOG (debug, info, warning, error; default
/// info). Safe to call from several threads.
void log(LogLevel level, std::string_view message);

/// Adds "[rank N]" to the lines of this process; set once the rank is known.
void set_log_rank(int global_rank);

}  // namespace headway
