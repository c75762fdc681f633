// A strict reader of the one Python dict that an .npy header holds.
//
//   header = "{" [ entry { "," entry } [ "," ] ] "}"
//   entry  = "'descr'" ":" string | "'fortran_order'" ":" ( "True" | "False" ) | "'shape'" ":" tuple
//   tuple  = "(" ")" | "(" integer "," ")" | "(" integer "," integer { "," integer } [ "," ] ")"
//
// Each key stands there once; blanks may stand between the words; strings have no escapes, as no number type
// needs one. numpy evaluates the header as a Python literal: the grammar above accepts all that numpy writes.
#include "data/npy_header.hpp"

#include "data/messages.hpp"
#include <attmirror/base/error.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

// numpy itself distrusts headers above 10,000 bytes. A header grows with its shape only, and 32 axes of 19
// digits need less than a kilobyte.
constexpr std::size_t longest_header = 64 * 1024;

struct TypeCode {
  std::string_view code;  // kind and bytes, without the byte order
  DType dtype;
};
constexpr TypeCode type_codes[] = {
    {"f8", DType::float64}, {"f4", DType::float32}, {"f2", DType::float16}, {"i8", DType::int64},
    {"i4", DType::int32},   {"i2", DType::int16},   {"i1", DType::int8},    {"u8", DType::uint64},
    {"u4", DType::uint32},  {"u2", DType::uint16},  {"u1", DType::uint8},   {"b1", DType::boolean},
};

DType parse_descr(std::string_view descr, std::string_view name) {
  const auto refuse = [&](std::string_view reason) {
    return bad_input(fmt::format("{}: descr is {}: {}", name, in_quotes(descr), reason));
  };
  const char order = descr.empty() ? '\0' : descr.front();
  const std::string_view code = descr.empty() ? descr : descr.substr(1);
  if (descr == "O" || code.starts_with("O")) throw refuse("Python objects cannot be read, only numbers");
  if (order == '>') throw refuse("big-endian numbers cannot be read; save them with dtype.newbyteorder('<')");
  if (order == '<' || order == '|' || order == '=')
    for (const auto& known : type_codes)
      if (known.code == code) return known.dtype;
  throw refuse("expected real numbers, integers or booleans, such as '<f8' or '|b1'");
}

class DictReader {
 public:
  DictReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (accept('}')) break;
      expect(',');
    }
    skip_blanks();
    if (at_ < text_.size()) throw syntax("the end of the header");
    const auto require = [&](bool given, std::string_view key) {
      if (!given) throw bad_input(fmt::format("{}: the header lacks the key '{}'", name_, key));
    };
    require(dtype_.has_value(), "descr");
    require(order_.has_value(), "fortran_order");
    require(shape_.has_value(), "shape");
    return {*dtype_, *order_, *shape_, 0};
  }

 private:
  void read_entry() {
    const std::string_view key = read_string();
    expect(':');
    const auto once = [&](bool given) {
      if (given) throw bad_input(fmt::format("{}: the header has the key {} twice", name_, in_quotes(key)));
    };
    if (key == "descr") {
      once(dtype_.has_value());
      skip_blanks();
      if (peek() == '[' || peek() == '(' || peek() == '{')
        throw bad_input(
            fmt::format("{}: descr is a structured type: expected one number type, such as '<f8'", name_));
      dtype_ = parse_descr(read_string(), name_);
    } else if (key == "fortran_order") {
      once(order_.has_value());
      if (accept_word("True"))
        order_ = MemoryOrder::fortran;
      else if (accept_word("False"))
        order_ = MemoryOrder::c;
      else
        throw syntax("True or False");
    } else if (key == "shape") {
      once(shape_.has_value());
      shape_ = read_shape();
    } else {
      throw bad_input(fmt::format("{}: the header has the key {}: expected descr, fortran_order and shape",
                                  name_, in_quotes(key)));
    }
  }

  Shape read_shape() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(read_extent(shape.size()));
      if (accept(')')) {
        // In Python (3) is a number, and only (3,) is a tuple.
        if (shape.size() == 1) throw bad_input(fmt::format("{}: shape is a number: expected a tuple", name_));
        break;
      }
      expect(',');
    }
    return shape;
  }

  std::int64_t read_extent(std::size_t axis) {
    skip_blanks();
    const std::size_t begin = at_;
    const bool negative = peek() == '-';
    if (negative) ++at_;
    const std::size_t digits = at_;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::int64_t value = 0;
    bool fits = true;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      const std::int64_t digit = peek() - '0';
      fits = fits && value <= (most - digit) / 10;
      if (fits) value = 10 * value + digit;
    }
    if (at_ == digits) throw syntax("a whole number");
    if (negative || !fits)
      throw bad_input(fmt::format("{}: shape[{}] is {}: expected 0 or more, within int64", name_, axis,
                                  in_quotes(text_.substr(begin, at_ - begin))));
    return value;
  }

  std::string_view read_string() {
    skip_blanks();
    const char quote = peek();
    if (quote != '\'' && quote != '"') throw syntax("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw syntax("a string that ends");
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  bool accept(char wanted) {
    skip_blanks();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) throw syntax(fmt::format("'{}'", wanted));
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  // The end of the header reads as a NUL, which no rule accepts; neither does a NUL that stands in the text.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Error syntax(std::string_view expected) const {
    const std::string found = at_ < text_.size() ? in_quotes(text_.substr(at_, 12)) : "its end";
    return bad_input(
        fmt::format("{}: byte {} of the header is {}: expected {}", name_, at_, found, expected));
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::optional<DType> dtype_;
  std::optional<MemoryOrder> order_;
  std::optional<Shape> shape_;
};

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> file, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic))
    throw bad_input(
        fmt::format("{}: the first bytes are {}: expected '\\x93NUMPY'", name, in_quotes(text.substr(0, 6))));
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  if (file.size() < 8)
    throw bad_input(fmt::format("{}: ends after {} bytes, within the header", name, file.size()));
  const std::size_t major = byte_at(6), minor = byte_at(7);
  if (major < 1 || major > 3 || minor != 0)
    throw bad_input(fmt::format("{}: version is {}.{}: expected 1.0, 2.0 or 3.0", name, major, minor));

  const std::size_t length_bytes = major == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (file.size() < begin)
    throw bad_input(fmt::format("{}: ends after {} bytes, within the header", name, file.size()));
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(8 + i) << (8 * i);
  if (length > longest_header)
    throw bad_input(
        fmt::format("{}: header length is {}: expected at most {}", name, length, longest_header));
  if (length > file.size() - begin)
    throw bad_input(
        fmt::format("{}: header length is {}, but only {} bytes follow", name, length, file.size() - begin));
  NpyHeader header = DictReader(text.substr(begin, length), name).read();
  header.size = begin + length;
  return header;
}

std::size_t npy_header_bytes(std::span<const std::byte> beginning) {
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (!text.starts_with(magic) || text.size() < 12) return 0;
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(beginning[i]); };
  const std::size_t length_bytes = byte_at(6) == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(8 + i) << (8 * i);
  return length > longest_header ? 0 : 8 + length_bytes + length;
}

std::string format_npy_header(const Array& array, MemoryOrder order) {
  std::string_view code;
  for (const auto& known : type_codes)
    if (known.dtype == array.dtype()) code = known.code;
  if (code.empty())
    throw bad_input(
        fmt::format("array is {}: the .npy format has no {}", array.describe(), to_string(array.dtype())));
  return format_npy_header(fmt::format("{}{}", item_size(array.dtype()) == 1 ? '|' : '<', code),
                           array.shape(), order);
}

std::string format_npy_header(std::string_view descr, const Shape& shape, MemoryOrder order) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr,
                                 order == MemoryOrder::fortran ? "True" : "False", to_string(shape));
  constexpr std::size_t alignment = 64, before = magic.size() + 4;
  const std::size_t length = (before + dict.size() + 1 + alignment - 1) / alignment * alignment - before;
  dict.resize(length - 1, ' ');
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return header + dict + '\n';
}

}  // namespace attmirror
