#include "engine/step_input.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "headway/base/error.h"

namespace headway {
namespace {

static_assert(std::endian::native == std::endian::little, "step messages are written as they lie in memory");

void put(std::string& bytes, int64_t value) {
  const auto word = static_cast<int32_t>(value);
  bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
}

void put(std::string& bytes, const std::vector<int32_t>& words) {
  put(bytes, static_cast<int64_t>(words.size()));
  bytes.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int32_t));
}

class WordReader {
 public:
  explicit WordReader(std::string_view bytes) : bytes_(bytes) {}

  int32_t word() {
    int32_t word = 0;
    std::memcpy(&word, claim(1), sizeof word);
    return word;
  }

  std::vector<int32_t> words() {
    std::vector<int32_t> words(length());
    const char* data = claim(words.size());
    if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(int32_t));
    return words;
  }

  /// A length that what is left can hold, so that a broken message cannot ask for much memory.
  size_t length() {
    const int32_t count = word();
    if (count < 0 || static_cast<size_t>(count) > left()) fail();
    return count;
  }

  /// A number from 0 to `most`.
  int32_t word_up_to(size_t most) {
    const int32_t number = word();
    if (number < 0 || static_cast<size_t>(number) > most) fail();
    return number;
  }

  void expect_end() const {
    if (position_ != bytes_.size()) fail();
  }

 private:
  size_t left() const { return (bytes_.size() - position_) / sizeof(int32_t); }

  const char* claim(size_t words) {
    if (words > left()) fail();
    const char* data = bytes_.data() + position_;
    position_ += words * sizeof(int32_t);
    return data;
  }

  [[noreturn]] void fail() const {
    throw CommunicationError(fmt::format("malformed step message of {} bytes, at byte {}", bytes_.size(), position_));
  }

  std::string_view bytes_;
  size_t position_ = 0;
};

BlockTable blocks_of_context(const BlockTable& table, int64_t context_length, int64_t block_size) {
  return BlockTable(table.begin(), table.begin() + (context_length + block_size - 1) / block_size);
}

}  // namespace

StepInput StepInput::of(const ScheduledBatch& batch, int64_t block_size) {
  StepInput input;
  for (const ScheduledSequence& scheduled : batch.sequences) {
    const Request& request = *scheduled.request;
    const auto first = request.token_ids.begin() + request.computed_tokens;
    input.sequences.push_back({{first, first + scheduled.num_tokens},
                               scheduled.context_length(),
                               blocks_of_context(request.block_table, scheduled.context_length(), block_size),
                               scheduled.logit_rows(),
                               request.replica});
  }
  return input;
}

std::vector<int64_t> StepInput::token_ids() const {
  std::vector<int64_t> ids;
  for (const SequenceInput& sequence : sequences) {
    ids.insert(ids.end(), sequence.token_ids.begin(), sequence.token_ids.end());
  }
  return ids;
}

std::vector<int64_t> StepInput::replica_tokens(int replicas) const {
  std::vector<int64_t> counts(replicas, 0);
  for (const SequenceInput& sequence : sequences) {
    counts.at(sequence.replica) += static_cast<int64_t>(sequence.token_ids.size());
  }
  return counts;
}

std::vector<int64_t> StepInput::replica_logit_rows(int replicas) const {
  std::vector<int64_t> counts(replicas, 0);
  for (const SequenceInput& sequence : sequences) counts.at(sequence.replica) += sequence.logit_rows;
  return counts;
}

std::vector<int64_t> StepInput::logit_rows(int64_t replica) const {
  std::vector<int64_t> rows;
  int64_t end = 0;
  for (const SequenceInput& sequence : sequences) {
    if (sequence.replica != replica) continue;
    end += static_cast<int64_t>(sequence.token_ids.size());
    for (int64_t row = end - sequence.logit_rows; row < end; ++row) rows.push_back(row);
  }
  return rows;
}

AttentionBatch StepInput::attention_batch(int64_t block_size, int64_t replica) const {
  AttentionBatch batch;
  batch.query_starts.push_back(0);
  for (const SequenceInput& sequence : sequences) {
    if (sequence.replica != replica) continue;
    const int64_t new_tokens = static_cast<int64_t>(sequence.token_ids.size());
    for (int64_t position = sequence.context_length - new_tokens; position < sequence.context_length; ++position) {
      batch.positions.push_back(position);
      batch.slots.push_back(sequence.block_table[position / block_size] * block_size + position % block_size);
    }
    batch.query_starts.push_back(batch.num_tokens());
    batch.context_lengths.push_back(sequence.context_length);
    batch.block_tables.push_back(sequence.block_table);
  }
  return batch;
}

std::string serialise(const StepInput& input) {
  std::string bytes;
  put(bytes, input.stop);
  put(bytes, static_cast<int64_t>(input.sequences.size()));
  for (const SequenceInput& sequence : input.sequences) {
    put(bytes, sequence.token_ids);
    put(bytes, sequence.context_length);
    put(bytes, sequence.block_table);
    put(bytes, sequence.logit_rows);
    put(bytes, sequence.replica);
  }
  return bytes;
}

StepInput parse_step_input(std::string_view bytes) {
  WordReader reader(bytes);
  StepInput input;
  input.stop = reader.word() != 0;
  input.sequences.resize(reader.length());
  for (SequenceInput& sequence : input.sequences) {
    sequence.token_ids = reader.words();
    sequence.context_length = reader.word();
    sequence.block_table = reader.words();
    sequence.logit_rows = reader.word_up_to(sequence.token_ids.size());
    sequence.replica = reader.word();
  }
  reader.expect_end();
  return input;
}

}  // namespace headway
