#include "config/attention_window.h"

#include <fmt/format.h>

#include "config/limits.h"

namespace headway {
namespace {

/// layer_types as "does this layer slide?"; nothing where the key is absent.
std::optional<std::vector<bool>> read_layer_types(const ConfigObject& root, int64_t num_layers) {
  const Json* types = root.find("layer_types");
  if (types == nullptr) return std::nullopt;
  if (!types->is_array() || static_cast<int64_t>(types->size()) != num_layers) {
    root.fail_value("layer_types", fmt::format("a list of num_hidden_layers = {} entries", num_layers));
  }
  std::vector<bool> slides;
  for (const Json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      root.fail(fmt::format("layer_types[{}] is {}; \"full_attention\" or \"sliding_attention\" is expected",
                            slides.size(), shown(type)));
    }
    slides.push_back(type == "sliding_attention");
  }
  return slides;
}

/// The window where one is in use: none without use_sliding_window, and none if sliding_window is null.
std::optional<int64_t> read_window(const ConfigObject& root) {
  if (!root.boolean("use_sliding_window").value_or(false) || root.is_null("sliding_window")) return std::nullopt;
  return root.required_integer("sliding_window", kPositionLimits);
}

std::vector<bool> layers_from_max_window_layers(const ConfigObject& root, int64_t num_layers) {
  const int64_t first = root.required_integer("max_window_layers", {0, kLayerLimits.end});
  std::vector<bool> slides;
  for (int64_t i = 0; i < num_layers; ++i) slides.push_back(i >= first);
  return slides;
}

}  // namespace

std::vector<std::optional<int64_t>> read_sliding_windows(const ConfigObject& root, int64_t num_layers) {
  const auto types = read_layer_types(root, num_layers);
  const auto window = read_window(root);
  std::vector<std::optional<int64_t>> windows(static_cast<size_t>(num_layers));
  if (!window && !types) return windows;
  const std::vector<bool> slides = types ? *types : layers_from_max_window_layers(root, num_layers);
  for (size_t i = 0; i < windows.size(); ++i) {
    if (!slides[i]) continue;
    if (!window) {
      root.fail(
          fmt::format("layer_types[{}] is \"sliding_attention\" but {}", i,
                      root.is_null("sliding_window") ? "sliding_window is null" : "use_sliding_window is not true"));
    }
    windows[i] = window;
  }
  return windows;
}

}  // namespace headway
