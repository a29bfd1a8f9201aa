#include "weights/slice_reader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace headway {
namespace {

constexpr int64_t kWindowBytes = int64_t{8} << 20;

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// Pages of a file from the first byte read since the last release, let go in windows.
class ReadWindow {
 public:
  /// Nothing is read from `slice_end` on.
  ReadWindow(const PlannedCopy& copy, int64_t slice_end)
      : file_(*copy.location->file), data_(file_.data(copy.location->info)), slice_end_(slice_end) {}
  ~ReadWindow() { release(); }
  ReadWindow(const ReadWindow&) = delete;
  ReadWindow& operator=(const ReadWindow&) = delete;

  /// `count` bytes at `begin`, where each call's bytes lie behind those of the last.
  const std::byte* bytes(int64_t begin, int64_t count) {
    if (end_ > begin_ && begin + count - begin_ > kWindowBytes) release();
    if (end_ == begin_) {
      begin_ = begin;
      file_.will_read(data_.subspan(static_cast<size_t>(begin), static_cast<size_t>(window_at(begin))));
    }
    end_ = begin + count;
    return data_.data() + begin;
  }

 private:
  int64_t window_at(int64_t begin) const { return std::min(kWindowBytes, slice_end_ - begin); }

  void release() {
    file_.release(data_.subspan(static_cast<size_t>(begin_), static_cast<size_t>(end_ - begin_)));
    begin_ = end_;
  }

  const SafetensorsFile& file_;
  std::span<const std::byte> data_;
  int64_t slice_end_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace

void SliceReader::read(const PlannedCopy& copy) const {
  const auto& [slice, full_shape, range] = copy.source;
  const at::Tensor& parameter = copy.parameter->tensor;
  if (parameter.is_cpu()) {
    read_into(copy, parameter, slice->offset);
    return;
  }
  std::vector<int64_t> shape = full_shape;
  shape.at(static_cast<size_t>(slice->dim)) = range.size();
  const at::Tensor staged = at::empty(shape, at::TensorOptions(parameter.scalar_type()));
  read_into(copy, staged, 0);
  parameter.narrow(slice->dim, slice->offset, range.size()).copy_(staged);
}

/// Both tensors are walked as [rows, cut dimension, columns]: a row of the slice is one run of bytes in each.
void SliceReader::read_into(const PlannedCopy& copy, const at::Tensor& target, int64_t offset) const {
  const auto& [slice, full_shape, range] = copy.source;
  const auto dim = static_cast<size_t>(slice->dim);
  const int64_t rows = product(std::span(full_shape).first(dim));
  const int64_t columns = product(std::span(full_shape).subspan(dim + 1));
  const int64_t run = range.size() * columns;
  const int64_t source_size = size_of(copy.location->info.dtype);
  const int64_t target_size = target.element_size();
  const int64_t longest_piece = kWindowBytes / source_size;
  auto* target_data = static_cast<std::byte*>(target.data_ptr());
  ReadWindow window(copy, ((rows - 1) * full_shape[dim] + range.end) * columns * source_size);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t source_begin = (row * full_shape[dim] + range.begin) * columns;
    const int64_t target_begin = (row * target.size(slice->dim) + offset) * columns;
    for (int64_t done = 0; done < run; done += longest_piece) {
      const int64_t count = std::min(longest_piece, run - done);
      copy.convert(window.bytes((source_begin + done) * source_size, count * source_size),
                   target_data + (target_begin + done) * target_size, count);
      on_read_(count * source_size);
    }
  }
}

}  // namespace headway
