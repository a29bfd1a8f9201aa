#include "cli/bench_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/json.h"
#include "plan/text_table.h"

namespace headway {
namespace {

constexpr std::string_view kStep = "step";  // the span of a whole step, around all the others

int64_t first_begin(const std::vector<RankTrace>& ranks) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const RankTrace& rank : ranks) {
    for (const TraceEvent& event : rank.events) first = std::min(first, event.begin_ns);
  }
  return first;
}

double microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-3;
}

std::string phase_text(const char* title, const std::vector<OperatorTime>& operators, const Palette& palette) {
  int64_t total = 0;
  int64_t steps = 0;
  for (const OperatorTime& op : operators) {
    total += op.self_ns;
    if (op.name == kStep) steps = op.calls;
  }
  TextTable table({title, "calls", "us/step", "us/call", "share"});
  for (const OperatorTime& op : operators) {
    const bool rest = op.name == kStep;
    table.add({rest ? "between operators" : op.name, rest ? "" : std::to_string(op.calls),
               fmt::format("{:.1f}", microseconds(op.self_ns) / static_cast<double>(std::max<int64_t>(steps, 1))),
               rest ? "" : fmt::format("{:.1f}", microseconds(op.self_ns) / static_cast<double>(op.calls)),
               fmt::format("{:.1f}%", 100.0 * static_cast<double>(op.self_ns) / static_cast<double>(total))});
  }
  return table.text(palette);
}

}  // namespace

std::vector<OperatorTime> operator_times(std::vector<TraceEvent> events, int64_t begin_ns, int64_t end_ns) {
  std::sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::map<std::string, OperatorTime> by_name;
  std::vector<const TraceEvent*> open;  // those that the next one may lie in, the innermost last
  for (const TraceEvent& event : events) {
    if (event.begin_ns < begin_ns || event.begin_ns >= end_ns) continue;
    while (!open.empty() && open.back()->end_ns <= event.begin_ns) open.pop_back();
    OperatorTime& own = by_name[event.name];
    own.name = event.name;
    ++own.calls;
    own.self_ns += event.end_ns - event.begin_ns;
    if (!open.empty()) by_name[open.back()->name].self_ns -= event.end_ns - event.begin_ns;
    open.push_back(&event);
  }
  std::vector<OperatorTime> times;
  for (const auto& [name, time] : by_name) times.push_back(time);
  std::stable_sort(times.begin(), times.end(),
                   [](const OperatorTime& a, const OperatorTime& b) { return a.self_ns > b.self_ns; });
  return times;
}

std::string chrome_trace(const std::vector<RankTrace>& ranks) {
  const int64_t start = first_begin(ranks);
  Json events = Json::array();
  for (const RankTrace& rank : ranks) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank.rank},
                      {"args", {{"name", fmt::format("rank {}", rank.rank)}}}});
    for (const TraceEvent& event : rank.events) {
      events.push_back({{"name", event.name},
                        {"ph", "X"},
                        {"pid", rank.rank},
                        {"tid", 0},
                        {"ts", microseconds(event.begin_ns - start)},
                        {"dur", microseconds(event.end_ns - event.begin_ns)}});
    }
  }
  return dump_json({{"traceEvents", events}, {"displayTimeUnit", "ms"}}) + "\n";
}

std::string profile_text(const RankTrace& first, int64_t decode_begin_ns, bool colours) {
  const Palette palette(colours);
  const int64_t end = std::numeric_limits<int64_t>::max();
  return phase_text("prefill, rank 0", operator_times(first.events, 0, decode_begin_ns), palette) + "\n" +
         phase_text("decode, rank 0", operator_times(first.events, decode_begin_ns, end), palette);
}

}  // namespace headway
