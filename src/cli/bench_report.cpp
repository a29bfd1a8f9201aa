#include "cli/bench_report.h"

#include <fmt/format.h>

#include <functional>

#include "cli/spread.h"
#include "plan/text_table.h"

namespace headway {
namespace {

/// A figure of each repetition; none if the machine's reach is not known.
using Figure = std::function<double(const BenchRepetition&)>;

DecodeWork decode_work(const BenchReport& report, const BenchRepetition& repetition) {
  return {report.ranks, report.work.sequences, repetition.times.mean_context, report.ops_per_token};
}

int64_t prompt_tokens(const BenchReport& report) {
  return report.work.sequences * report.work.prompt_tokens;
}

/// What one run of the command found, as spreads over its repetitions.
class Figures {
 public:
  explicit Figures(const BenchReport& report) : report_(report) {}

  bool has_limits() const { return report_.repetitions.front().reach.has_value(); }

  Spread prefill() const {
    return spread([this](const BenchRepetition& r) { return prefill_of(r); });
  }
  Spread decode() const {
    return spread([this](const BenchRepetition& r) { return decode_of(r); });
  }
  Spread prefill_limit() const {
    return spread([this](const BenchRepetition& r) { return prefill_limit_of(r); });
  }
  Spread decode_limit() const {
    return spread([this](const BenchRepetition& r) { return decode_limit_of(r); });
  }
  Spread decode_limit_of_largest_rank() const {
    return spread([this](const BenchRepetition& r) {
      return headway::decode_limit_of_largest_rank(decode_work(report_, r), *r.reach);
    });
  }
  /// Each repetition against its own limit, so that what the machine does meanwhile counts for both.
  Spread prefill_ratio() const {
    return spread([this](const BenchRepetition& r) { return prefill_of(r) / prefill_limit_of(r); });
  }
  Spread decode_ratio() const {
    return spread([this](const BenchRepetition& r) { return decode_of(r) / decode_limit_of(r); });
  }
  Spread read_gb_per_s() const {
    return spread([](const BenchRepetition& r) { return r.reach->read_bytes_per_s * 1e-9; });
  }
  Spread linear_gflop_per_s() const {
    return spread([](const BenchRepetition& r) { return r.reach->linear_ops_per_s * 1e-9; });
  }
  double decode_bytes() const { return decode_work(report_, report_.repetitions.front()).bytes(); }

 private:
  Spread spread(const Figure& figure) const {
    std::vector<double> values;
    for (const BenchRepetition& repetition : report_.repetitions) values.push_back(figure(repetition));
    return spread_of(values);
  }

  double prefill_of(const BenchRepetition& r) const {
    return static_cast<double>(prompt_tokens(report_)) / r.times.prefill_s;
  }
  double decode_of(const BenchRepetition& r) const {
    return static_cast<double>(report_.work.sequences * r.times.decode_steps) / r.times.decode_s;
  }
  double prefill_limit_of(const BenchRepetition& r) const {
    return headway::prefill_limit(prompt_tokens(report_), *r.reach);
  }
  double decode_limit_of(const BenchRepetition& r) const {
    return headway::decode_limit(decode_work(report_, r), *r.reach);
  }

  const BenchReport& report_;
};

void add_spread(Json& json, const std::string& key, const Spread& spread) {
  json[key] = spread.median;
  json[key + "_least"] = spread.least;
  json[key + "_most"] = spread.most;
}

void add_limits(Json& json, const Figures& figures) {
  const auto add = [&](const std::string& key, const auto& figure) {
    if (figures.has_limits()) {
      add_spread(json, key, (figures.*figure)());
    } else {
      json[key] = nullptr;
    }
  };
  add("decode_limit_tokens_per_s", &Figures::decode_limit);
  add("prefill_limit_tokens_per_s", &Figures::prefill_limit);
  add("decode_ratio", &Figures::decode_ratio);
  add("prefill_ratio", &Figures::prefill_ratio);
  add("read_gb_per_s", &Figures::read_gb_per_s);
  add("linear_gflop_per_s", &Figures::linear_gflop_per_s);
  add("decode_limit_of_largest_rank_tokens_per_s", &Figures::decode_limit_of_largest_rank);
}

std::string rate_text(const Spread& spread) {
  return fmt::format("{:.1f}", spread.median);
}

std::string range_text(const Spread& spread) {
  return fmt::format("{:.1f} - {:.1f}", spread.least, spread.most);
}

std::string heading(const BenchReport& report) {
  return fmt::format(
      "{}, {}{}; tp {}, attention over {}, {} thread{} each\n"
      "{} sequence{} of {} + {} tokens; median of {} (least - most)\n\n",
      report.architecture, report.dtype, report.quantize == "none" ? "" : ", weights in " + report.quantize,
      report.parallel.tp, report.parallel.attn_tp, report.threads, report.threads == 1 ? "" : "s",
      report.work.sequences, report.work.sequences == 1 ? "" : "s", report.work.prompt_tokens, report.work.gen_tokens,
      report.repetitions.size());
}

}  // namespace

Json bench_json(const BenchReport& report) {
  const Figures figures(report);
  Json json{{"architecture", report.architecture},  {"dtype", report.dtype},
            {"quantize", report.quantize},          {"tp", report.parallel.tp},
            {"attn_tp", report.parallel.attn_tp},   {"threads_per_rank", report.threads},
            {"batch", report.work.sequences},       {"prompt_tokens", report.work.prompt_tokens},
            {"gen_tokens", report.work.gen_tokens}, {"repetitions", report.repetitions.size()},
            {"load_seconds", report.load_s},        {"decode_bytes_per_step", figures.decode_bytes()}};
  add_spread(json, "decode_tokens_per_s", figures.decode());
  add_spread(json, "prefill_tokens_per_s", figures.prefill());
  add_limits(json, figures);
  return json;
}

std::string bench_text(const BenchReport& report, bool colours) {
  const Figures figures(report);
  TextTable table({"", "tokens/s", "", "limit", "ratio"});
  const auto add = [&](const char* name, const Spread& rate, const auto& limit, const auto& ratio) {
    std::vector<std::string> row{name, rate_text(rate), range_text(rate), "-", "-"};
    if (figures.has_limits()) {
      row[3] = rate_text((figures.*limit)());
      row[4] = fmt::format("{:.2f}", (figures.*ratio)().median);
    }
    table.add(row);
  };
  add("prefill", figures.prefill(), &Figures::prefill_limit, &Figures::prefill_ratio);
  add("decode", figures.decode(), &Figures::decode_limit, &Figures::decode_ratio);
  std::string text = heading(report) + table.text(Palette(colours));
  if (figures.has_limits()) {
    text +=
        fmt::format("\nmemory read {:.1f} GB/s, linears alone {:.0f} GFLOP/s; a decoding step reads {:.1f} MB\n",
                    figures.read_gb_per_s().median, figures.linear_gflop_per_s().median, figures.decode_bytes() * 1e-6);
  }
  return text;
}

}  // namespace headway
