#include "cli/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "headway/base/error.h"

namespace headway {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024;
constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"K", kKi},
                               {"M", kKi* kKi},
                               {"G", kKi* kKi* kKi},
                               {"T", kKi* kKi* kKi* kKi},
                               {"KiB", kKi},
                               {"MiB", kKi* kKi},
                               {"GiB", kKi* kKi* kKi},
                               {"TiB", kKi* kKi* kKi* kKi},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12}};
constexpr Unit kRateUnits[] = {{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kOperationUnits[] = {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr Unit kTimeUnits[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

double parse(std::string_view text, std::string_view option, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(end - text.data());
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  std::string names;
  for (const Unit& known : units) {
    if (unit == known.name && error == std::errc() && std::isfinite(number) && number > 0) {
      return number * known.factor;
    }
    if (!known.name.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  throw ConfigError(fmt::format("{}: \"{}\" is not a positive number with one of the units {}", option, text, names));
}

}  // namespace

int64_t parse_bytes(std::string_view text, std::string_view option) {
  const double bytes = parse(text, option, kByteUnits);
  constexpr double kLargest = 1e18;
  if (bytes > kLargest) throw ConfigError(fmt::format("{}: \"{}\" is more than {:g} bytes", option, text, kLargest));
  return static_cast<int64_t>(bytes);
}

double parse_bytes_per_second(std::string_view text, std::string_view option) {
  return parse(text, option, kRateUnits);
}

double parse_operations_per_second(std::string_view text, std::string_view option) {
  return parse(text, option, kOperationUnits);
}

double parse_seconds(std::string_view text, std::string_view option) {
  return parse(text, option, kTimeUnits);
}

}  // namespace headway
