#pragma once

#include <cstdint>
#include <string_view>

namespace headway {

/// Numbers with units, as options take them. Each throws ConfigError naming the option, the text and the units.
int64_t parse_bytes(std::string_view text, std::string_view option);                 ///< 24GiB, 24GB, 1.5G (GiB), 4096
double parse_bytes_per_second(std::string_view text, std::string_view option);       ///< 14GB/s
double parse_operations_per_second(std::string_view text, std::string_view option);  ///< 1.2TFLOP/s
double parse_seconds(std::string_view text, std::string_view option);                ///< 5us, 0.1ms

}  // namespace headway
