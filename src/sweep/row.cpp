// Rows as bytes: lengths and numbers as 64-bit words in the machine's own order (ranks of one job run on one kind of
// machine), texts as they are.
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/row.hpp>

#include <cstring>
#include <type_traits>

namespace attmirror {

namespace {

constexpr std::uint64_t mark = 0x31776f72746d7461;  // "atmrow1"

class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void put(const Cell& cell) {
    put(static_cast<std::uint64_t>(cell.index()));
    std::visit(
        [this](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) put(value);
        },
        cell);
  }
  void put(const RowArray& array) {
    put(array.name);
    put(array.shape);
    put(array.values);
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint64_t>(items.size()));
    for (const T& item : items) put(item);
  }
  void put(const RunRow& row) {
    put(row.key);
    put(row.run);
    put(row.settings);
    put(row.config);
    put(row.status);
    put(row.reason);
    put(row.metrics);
    put(row.arrays);
    put(row.seconds);
    put(row.engine);
    put(row.isa);
    put(row.version);
    put(row.commit);
    put(row.finished);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void get(T& value) {
    require(sizeof value);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  void get(std::string& text) {
    const std::size_t size = length();
    text.assign(bytes_, at_, size);
    at_ += size;
  }
  void get(Cell& cell) {
    std::uint64_t kind = 0;
    get(kind);
    switch (kind) {
      case 0:
        cell = std::monostate{};
        return;
      case 1:
        return get(cell.emplace<std::int64_t>());
      case 2:
        return get(cell.emplace<double>());
      case 3:
        return get(cell.emplace<std::string>());
      default:
        fail();
    }
  }
  void get(RowArray& array) {
    get(array.name);
    get(array.shape);
    get(array.values);
  }
  template <class T>
  void get(std::vector<T>& items) {
    items.resize(length());  // every item takes a byte or more, so no length of ours exceeds the bytes left
    for (T& item : items) get(item);
  }
  void get(RunRow& row) {
    get(row.key);
    get(row.run);
    get(row.settings);
    get(row.config);
    get(row.status);
    get(row.reason);
    get(row.metrics);
    get(row.arrays);
    get(row.seconds);
    get(row.engine);
    get(row.isa);
    get(row.version);
    get(row.commit);
    get(row.finished);
  }
  void require_end() const {
    if (at_ != bytes_.size()) fail();
  }

 private:
  [[noreturn]] static void fail() { throw environment_error("rows from another process arrived damaged"); }
  void require(std::size_t size) const {
    if (bytes_.size() - at_ < size) fail();
  }
  std::size_t length() {
    std::uint64_t size = 0;
    get(size);
    require(size);
    return size;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_bytes(const std::vector<RunRow>& rows) {
  Writer writer;
  writer.put(mark);
  writer.put(rows);
  return writer.take();
}

std::vector<RunRow> parse_rows(const std::string& bytes) {
  Reader reader(bytes);
  std::uint64_t first = 0;
  reader.get(first);
  if (first != mark) throw environment_error("rows from another process arrived damaged");
  std::vector<RunRow> rows;
  reader.get(rows);
  reader.require_end();
  return rows;
}

}  // namespace attmirror
