#include "config/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "config/agreed.h"
#include "config/limits.h"
#include "headway/base/log.h"

namespace headway {
namespace {

constexpr double kLargestFactor = 1e6;
constexpr double kLargestTheta = 1e18;

/// A rope type with the keys that it reads beside type, rope_theta and partial_rotary_factor.
struct KnownType {
  std::string_view name;
  RopeType type;
  std::vector<std::string_view> keys;
};

const std::vector<KnownType>& known_types() {
  static const std::vector<KnownType> types{{"default", RopeType::standard, {}},
                                            {"linear", RopeType::linear, {"factor"}},
                                            {"dynamic", RopeType::dynamic, {"factor"}},
                                            {"yarn",
                                             RopeType::yarn,
                                             {"factor", "original_max_position_embeddings", "attention_factor",
                                              "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}}};
  return types;
}

constexpr std::array<std::string_view, 4> kCommonKeys{"rope_type", "type", "rope_theta", "partial_rotary_factor"};

std::optional<RopeType> read_type(const ConfigObject& object, std::string_view key) {
  const auto name = object.text(key);
  if (!name) return std::nullopt;
  for (const KnownType& known : known_types()) {
    if (known.name == *name) return known.type;
  }
  object.fail_value(key, "\"default\", \"linear\", \"dynamic\" or \"yarn\"");
}

auto number_reader(double least, double most) {
  return [=](const ConfigObject& object, std::string_view key) { return object.number(key, least, most); };
}

/// The objects that state rope parameters, and the keys that are looked up in all of them.
class RopeSources {
 public:
  explicit RopeSources(const ConfigObject& root) : root_(root) {
    for (std::string_view key : {"rope_scaling", "rope_parameters"}) {
      if (auto object = root.object(key)) objects_.push_back(*object);
    }
    for (const ConfigObject& object : objects_) refuse_per_layer_type(object);
  }

  std::vector<Spelling> inner(std::initializer_list<std::string_view> keys) const {
    std::vector<Spelling> spellings;
    for (const ConfigObject& object : objects_) {
      for (std::string_view key : keys) spellings.push_back({object, key});
    }
    return spellings;
  }

  std::vector<Spelling> inner_or_top_level(std::string_view key) const {
    std::vector<Spelling> spellings{{root_, key}};
    for (const ConfigObject& object : objects_) spellings.push_back({object, key});
    return spellings;
  }

  RopeType type() const {
    if (const auto stated = objects_.empty() ? std::nullopt : agreed(inner({"rope_type", "type"}), read_type)) {
      return *stated;
    }
    for (const ConfigObject& object : objects_) {
      for (const auto& [key, value] : object.json().items()) {
        if (std::ranges::find(kCommonKeys, key) == kCommonKeys.end()) {
          object.fail(fmt::format("{} is set but {} is absent", object.name_of(key), object.name_of("rope_type")));
        }
      }
    }
    return RopeType::standard;
  }

  void warn_of_unused_keys(RopeType type) const {
    const KnownType& known = *std::ranges::find(known_types(), type, &KnownType::type);
    for (const ConfigObject& object : objects_) {
      for (const auto& [key, value] : object.json().items()) {
        const bool used = std::ranges::find(kCommonKeys, key) != kCommonKeys.end() ||
                          std::ranges::find(known.keys, std::string_view(key)) != known.keys.end();
        if (used) continue;
        log(LogLevel::warning,
            fmt::format("{}: {} has no effect on rope type \"{}\"", object.source(), object.name_of(key), known.name));
      }
    }
  }

 private:
  static void refuse_per_layer_type(const ConfigObject& object) {
    for (std::string_view key : {"full_attention", "sliding_attention"}) {
      if (object.states(key)) object.fail_value(key, "one set of rope parameters for all layers");
    }
  }

  const ConfigObject& root_;
  std::vector<ConfigObject> objects_;
};

double required_factor(const ConfigObject& root, const RopeSources& sources) {
  const auto factor = agreed(sources.inner({"factor"}), number_reader(1.0, kLargestFactor));
  if (!factor) root.fail("the rope type needs a factor; rope_scaling.factor and rope_parameters.factor are absent");
  return *factor;
}

void read_yarn(const ConfigObject& root, const RopeSources& sources, int64_t max_position_embeddings,
               RopeConfig& rope) {
  rope.original_max_position_embeddings =
      agreed(sources.inner_or_top_level("original_max_position_embeddings"), [](const ConfigObject& object,
                                                                                std::string_view key) {
        return object.integer(key, kPositionLimits);
      }).value_or(max_position_embeddings);
  const auto number = [&](std::string_view key, double least, double most) {
    return agreed(sources.inner({key}), number_reader(least, most));
  };
  rope.beta_fast = number("beta_fast", 1e-6, 1e6).value_or(rope.beta_fast);
  rope.beta_slow = number("beta_slow", 1e-6, 1e6).value_or(rope.beta_slow);
  if (rope.beta_fast < rope.beta_slow) {
    root.fail(fmt::format("rope beta_fast {} is below beta_slow {}", rope.beta_fast, rope.beta_slow));
  }
  rope.attention_factor = number("attention_factor", 1e-6, 1e6);
  rope.mscale = number("mscale", 0, 1e6);
  rope.mscale_all_dim = number("mscale_all_dim", 0, 1e6);
  rope.truncate = agreed(sources.inner({"truncate"}), [](const ConfigObject& object, std::string_view key) {
                    return object.boolean(key);
                  }).value_or(true);
  const double implied =
      static_cast<double>(max_position_embeddings) / static_cast<double>(rope.original_max_position_embeddings);
  if (implied != 1.0 && implied != rope.factor) {
    log(LogLevel::warning, fmt::format("{}: rope factor {} is used, though max_position_embeddings {} over "
                                       "original_max_position_embeddings {} is {}",
                                       root.source(), rope.factor, max_position_embeddings,
                                       rope.original_max_position_embeddings, implied));
  }
}

}  // namespace

RopeConfig read_rope_config(const ConfigObject& root, int64_t max_position_embeddings) {
  const RopeSources sources(root);
  RopeConfig rope;
  const auto theta = agreed(sources.inner_or_top_level("rope_theta"), number_reader(1.0 + 1e-6, kLargestTheta));
  if (!theta) root.fail("rope_theta is absent, at the top level and in rope_parameters; it has no default here");
  rope.theta = *theta;
  const auto part = agreed(sources.inner_or_top_level("partial_rotary_factor"), number_reader(0.0, 1.0));
  if (part && *part != 1.0) root.fail(fmt::format("partial_rotary_factor is {}; only 1 is supported", *part));

  rope.type = sources.type();
  if (rope.type != RopeType::standard) rope.factor = required_factor(root, sources);
  if (rope.type == RopeType::dynamic) rope.original_max_position_embeddings = max_position_embeddings;
  if (rope.type == RopeType::yarn) read_yarn(root, sources, max_position_embeddings, rope);
  sources.warn_of_unused_keys(rope.type);
  return rope;
}

}  // namespace headway
