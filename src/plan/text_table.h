#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// Emphasis for terminals; plain text without colours.
class Palette {
 public:
  explicit Palette(bool colours) : colours_(colours) {}
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string good(std::string_view text) const { return wrap("32", text); }
  std::string bad(std::string_view text) const { return wrap("31", text); }
  std::string notable(std::string_view text) const { return wrap("33", text); }

 private:
  std::string wrap(std::string_view code, std::string_view text) const;
  bool colours_;
};

/// Columns that line up: the first is aligned left, the others right. Cells may hold colours; their codes do not
/// count as width.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void align_left(size_t column) { left_.push_back(column); }
  bool has_rows() const { return rows_.size() > 1; }

  /// Lines of the table, each indented by two blanks; a header of empty cells is left out.
  std::string text(const Palette& palette) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> left_ = {0};
};

}  // namespace headway
