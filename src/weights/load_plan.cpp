#include "weights/load_plan.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "headway/base/error.h"
#include "weights/in_quotes.h"
#include "weights/listed.h"

namespace headway {
namespace {

/// "a.b.qkv_proj.weight" split into "a.b.", "qkv_proj" and ".weight".
struct SplitName {
  std::string before;
  std::string module;
  std::string after;
};

SplitName split(const std::string& full_name) {
  const size_t last_dot = std::min(full_name.rfind('.'), full_name.size());
  const size_t dot = last_dot == 0 ? std::string::npos : full_name.rfind('.', last_dot - 1);
  const size_t begin = dot == std::string::npos ? 0 : dot + 1;
  return {full_name.substr(0, begin), full_name.substr(begin, last_dot - begin), full_name.substr(last_dot)};
}

class Planner {
 public:
  Planner(const CheckpointIndex& index, const CheckpointNames& names) : index_(index), names_(names) {}

  void add(const NamedParameter& named) {
    Parameter& parameter = *named.parameter;
    check_allotted(parameter);
    const bool has_sections = !parameter.slices.front().section.empty();
    const auto sources = has_sections ? named_sections(named) : whole(named);
    const bool fused_on_disk = has_sections && find(named.full_name) != nullptr &&
                               std::ranges::any_of(sources, [&](const auto& source) { return !find(source.first); });
    if (fused_on_disk) {
      for (const SliceSource& source : fused_sources(parameter)) add_copy(named.full_name, source, parameter);
    } else {
      for (const auto& [name, source] : sources) add_copy(name, source, parameter);
    }
  }

  LoadPlan finish() && {
    const std::vector<std::string> unexpected = sort_unused_names();
    std::vector<std::string> findings;
    if (!missing_.empty()) findings.push_back(listed("tensors are missing", with_hints(missing_)));
    if (!unexpected.empty()) findings.push_back(listed("tensors are unexpected", unexpected));
    if (!misfits_.empty()) findings.push_back(listed("tensors do not fit", texts(misfits_)));
    if (!findings.empty()) {
      throw CheckpointError(fmt::format("{}: the checkpoint is not that of the model: {}", index_.folder().string(),
                                        fmt::join(findings, "; ")));
    }
    std::ranges::sort(plan_.copies, {}, [](const PlannedCopy& copy) {
      return std::tuple(copy.location->file->path(), copy.location->info.begin, copy.source.range.begin);
    });
    return std::move(plan_);
  }

 private:
  using NamedSource = std::pair<std::string, SliceSource>;

  static std::vector<NamedSource> whole(const NamedParameter& named) {
    return {{named.full_name, section_source(*named.parameter, "")}};
  }

  /// The sections of a parameter under the names that they have where each is a tensor of its own.
  std::vector<NamedSource> named_sections(const NamedParameter& named) const {
    const auto [before, module, after] = split(named.full_name);
    const auto modules = names_.sections.find(module);
    std::vector<NamedSource> sources;
    for (const TensorSlice& slice : named.parameter->slices) {
      if (modules == names_.sections.end() || !modules->second.contains(slice.section)) {
        throw ArgumentError(fmt::format("parameter {}: no checkpoint name is known for its section \"{}\"",
                                        named.full_name, slice.section));
      }
      sources.emplace_back(before + modules->second.at(slice.section) + after,
                           section_source(*named.parameter, slice.section));
    }
    return sources;
  }

  /// The name under which the checkpoint holds the data of that parameter or section.
  const std::string& stored_name(const std::string& name) const {
    const auto alias = names_.aliases.find(name);
    return alias == names_.aliases.end() ? name : alias->second;
  }

  /// The checkpoint tensor for that name, with or without the optional prefix; null if there is none.
  const std::map<std::string, TensorLocation>::value_type* find(const std::string& name) const {
    const std::string& stored = stored_name(name);
    auto found = index_.tensors().find(stored);
    if (found == index_.tensors().end() && stored.starts_with(names_.optional_prefix)) {
      found = index_.tensors().find(stored.substr(names_.optional_prefix.size()));
    }
    return found == index_.tensors().end() ? nullptr : &*found;
  }

  void add_copy(const std::string& name, const SliceSource& source, Parameter& parameter) {
    const auto* entry = find(name);
    if (entry == nullptr) {
      missing_.insert(stored_name(name));
      return;
    }
    const auto& [stored, location] = *entry;
    used_.insert(stored);
    const Converter convert = converter_between(location.info.dtype, parameter.tensor.scalar_type());
    if (location.info.shape != source.full_shape) {
      misfits_[stored] = fmt::format("{} (shape [{}], not [{}])", in_quotes(stored),
                                     fmt::join(location.info.shape, ", "), fmt::join(source.full_shape, ", "));
    } else if (convert == nullptr) {
      misfits_[stored] = fmt::format("{} ({} cannot be converted to {})", in_quotes(stored),
                                     name_of(location.info.dtype), c10::toString(parameter.tensor.scalar_type()));
    }
    plan_.copies.push_back({&location, &parameter, source, convert});
  }

  /// Splits the names that no parameter used into those that may be there and those, returned, that may not. A tensor
  /// without elements carries nothing that could be lost.
  std::vector<std::string> sort_unused_names() {
    std::vector<std::string> unexpected;
    for (const auto& [name, location] : index_.tensors()) {
      if (used_.contains(name)) continue;
      const bool harmless =
          location.info.bytes() == 0 || std::ranges::find(names_.ignorable, name) != names_.ignorable.end();
      if (harmless) plan_.unused.push_back(name);
      if (!harmless) unexpected.push_back(in_quotes(name));
    }
    return unexpected;
  }

  /// Those with a hint come first, so that no count cuts them off.
  std::vector<std::string> with_hints(const std::set<std::string>& missing) const {
    std::vector<std::string> texts;
    for (const std::string& name : missing) {
      const auto hint = names_.hints.find(name);
      if (hint != names_.hints.end())
        texts.insert(texts.begin(), fmt::format("{} ({})", in_quotes(name), hint->second));
      if (hint == names_.hints.end()) texts.push_back(in_quotes(name));
    }
    return texts;
  }

  static std::vector<std::string> texts(const std::map<std::string, std::string>& by_name) {
    std::vector<std::string> texts;
    for (const auto& [name, text] : by_name) texts.push_back(text);
    return texts;
  }

  const CheckpointIndex& index_;
  const CheckpointNames& names_;
  LoadPlan plan_;
  std::set<std::string> used_;
  std::set<std::string> missing_;
  std::map<std::string, std::string> misfits_;  ///< name -> what is wrong with it
};

}  // namespace

int64_t PlannedCopy::bytes() const {
  const int64_t cut = source.full_shape.at(static_cast<size_t>(source.slice->dim));
  return cut == 0 ? 0 : location->info.bytes() / cut * source.range.size();
}

LoadPlan plan_load(const CheckpointIndex& index, const CheckpointNames& names,
                   const std::vector<NamedParameter>& parameters) {
  Planner planner(index, names);
  for (const NamedParameter& named : parameters) planner.add(named);
  return std::move(planner).finish();
}

}  // namespace headway
