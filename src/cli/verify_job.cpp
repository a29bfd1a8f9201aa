#include "cli/verify_job.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr std::array<std::string_view, 4> kPartNames{"embedding", "keys and values", "attention", "mlp"};

void write_json(const std::filesystem::path& path, const Json& content) {
  std::ofstream file(path, std::ios::binary);
  file << dump_json(content);
  file.close();
  if (!file) throw Error(fmt::format("{} cannot be written", path.string()));
}

/// JSON has no NaN and no infinity; both stand for a difference that nothing bounds.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

double number_of(const Json& json) {
  return json.is_null() ? std::nan("") : json.get<double>();
}

Json bounds_json(const VerifyBounds& bounds) {
  return {{"same_tokens", bounds.same_tokens},
          {"relative_logit", bounds.relative_logit},
          {"least_logprob", bounds.least_logprob}};
}

VerifyBounds bounds_of(const Json& json) {
  return {json.at("same_tokens"), json.at("relative_logit"), json.at("least_logprob")};
}

Json token_json(const TokenDifference& token) {
  return {{"prompt", token.prompt},     {"index", token.index},
          {"expected", token.expected}, {"actual", token.actual ? Json(*token.actual) : Json()},
          {"gap", number(token.gap)},   {"bound", token.bound}};
}

TokenDifference token_of(const Json& json) {
  TokenDifference token{json.at("prompt"),         json.at("index"), json.at("expected"), {},
                        number_of(json.at("gap")), json.at("bound")};
  if (!json.at("actual").is_null()) token.actual = json.at("actual").get<int64_t>();
  return token;
}

Comparison comparison_of(const Json& json) {
  const Json& logit = json.at("logit");
  const Json& logprob = json.at("logprob");
  Comparison comparison;
  comparison.dtype = json.at("dtype");
  comparison.bounds = bounds_of(json.at("bounds"));
  comparison.logit = {number_of(logit.at("relative")), number_of(logit.at("absolute")), logit.at("prompt"),
                      logit.at("position"), logit.at("token")};
  comparison.logprob = {number_of(logprob.at("value")), logprob.at("bound"), logprob.at("prompt"),
                        logprob.at("position"), logprob.at("token")};
  if (!json.at("first_different_token").is_null()) comparison.token = token_of(json.at("first_different_token"));
  comparison.breaches = json.at("breaches").get<std::vector<std::string>>();
  return comparison;
}

Json deviation_json(const Deviation& deviation) {
  return {{"layer", deviation.layer},
          {"part", static_cast<int>(deviation.part)},
          {"relative", number(deviation.relative)},
          {"kv_heads", deviation.kv_heads}};
}

Deviation deviation_of(const Json& json) {
  return {json.at("layer"), static_cast<LayerPart>(json.at("part").get<int>()), number_of(json.at("relative")),
          json.at("kv_heads").get<std::vector<int64_t>>()};
}

}  // namespace

std::string_view name_of(LayerPart part) {
  return kPartNames[static_cast<size_t>(part)];
}

void write_job(const std::filesystem::path& path, const VerifyJob& job) {
  write_json(path, {{"prompts", job.prompts},
                    {"tokens", job.tokens},
                    {"baseline", job.baseline.string()},
                    {"trace", job.trace.string()},
                    {"layers", job.layers.string()},
                    {"results", job.results.string()}});
}

VerifyJob read_job(const std::filesystem::path& path) {
  const Json json = read_json_file(path);
  return {json.at("prompts").get<std::vector<std::vector<int32_t>>>(),
          json.at("tokens"),
          json.at("baseline").get<std::string>(),
          json.at("trace").get<std::string>(),
          json.at("layers").get<std::string>(),
          json.at("results").get<std::string>()};
}

std::filesystem::path findings_file(const std::filesystem::path& results, int rank) {
  return results / fmt::format("rank-{}.json", rank);
}

void write_findings(const std::filesystem::path& results, const RankFindings& findings) {
  write_json(findings_file(results, findings.rank),
             {{"rank", findings.rank},
              {"dtype", findings.dtype},
              {"comparison", findings.comparison ? comparison_json(*findings.comparison) : Json()},
              {"deviation", findings.deviation ? deviation_json(*findings.deviation) : Json()}});
}

RankFindings read_findings(const std::filesystem::path& results, int rank) {
  const Json json = read_json_file(findings_file(results, rank));
  RankFindings findings{json.at("rank"), json.at("dtype"), {}, {}};
  if (!json.at("comparison").is_null()) findings.comparison = comparison_of(json.at("comparison"));
  if (!json.at("deviation").is_null()) findings.deviation = deviation_of(json.at("deviation"));
  return findings;
}

Json comparison_json(const Comparison& comparison) {
  const LogitDifference& logit = comparison.logit;
  const LogprobDifference& logprob = comparison.logprob;
  return {{"dtype", comparison.dtype},
          {"bounds", bounds_json(comparison.bounds)},
          {"logit",
           {{"relative", number(logit.relative)},
            {"absolute", number(logit.absolute)},
            {"prompt", logit.prompt},
            {"position", logit.position},
            {"token", logit.token}}},
          {"logprob",
           {{"value", number(logprob.value)},
            {"bound", logprob.bound},
            {"prompt", logprob.prompt},
            {"position", logprob.position},
            {"token", logprob.token}}},
          {"first_different_token", comparison.token ? token_json(*comparison.token) : Json()},
          {"breaches", comparison.breaches}};
}

}  // namespace headway
