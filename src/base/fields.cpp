#include "base/fields.hpp"

#include "base/words.hpp"

#include <algorithm>

#include <fmt/ranges.h>

namespace attmirror {

std::string Range::expected(FieldKind kind) const {
  const bool whole = kind == FieldKind::count;
  const std::string what = whole ? "a whole number" : "a finite number";
  const bool bounded = high < infinity;
  if (low == -infinity && !bounded) return what;
  if (bounded && below_high) return fmt::format("a number in {}{}, {})", above_low ? "(" : "[", low, high);
  if (bounded) return fmt::format("{} from {} to {}", whole ? what : "a number", low, high);
  if (above_low) return fmt::format("{} greater than {}", what, low);
  return fmt::format("{}, {} or {}", what, low, whole ? "more" : "greater");
}

std::string expected(const FieldInfo& info) {
  const auto quoted = [&info] {
    std::string text = fmt::format("\"{}\"", info.choices);
    for (std::size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos;)
      text.replace(bar, 1, text.find('|', bar + 1) == std::string::npos ? "\" or \"" : "\", \"");
    return text;
  };
  switch (info.kind) {
    case FieldKind::flag:
      return "true or false";
    case FieldKind::count:
    case FieldKind::number:
      return info.range.expected(info.kind);
    case FieldKind::pair:
      return fmt::format("two numbers, each {}", info.range.expected(FieldKind::number));
    case FieldKind::seed:
      return "a whole number from 0 to 2^63 - 1" +
             (info.choices.empty() ? "" : fmt::format(", {}", quoted()));
    case FieldKind::norm:
      return fmt::format("a number or {}", quoted());
    case FieldKind::path:
      return "a path in quotes";
    case FieldKind::word:
      break;
  }
  return info.choices.empty() ? "a text in quotes" : quoted();
}

bool is_allowed(const FieldInfo& info, const FieldValue& value) {
  const Range& range = info.range;
  if (const auto* number = std::get_if<double>(&value)) return range.contains(*number);
  if (const auto* count = std::get_if<std::int64_t>(&value))
    return range.contains(static_cast<double>(*count));
  if (const auto* pair = std::get_if<std::array<double, 2>>(&value))
    return range.contains((*pair)[0]) && range.contains((*pair)[1]);
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr || !info.listed ||
         fmt::format("|{}|", info.choices).find(fmt::format("|{}|", *text)) != std::string::npos;
}

void check_value(const FieldInfo& info, const FieldValue& value, const std::string& as) {
  if (is_allowed(info, value)) return;
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::vector<std::string_view> choices;
    for (std::string_view left = info.choices; !left.empty();) {
      const std::size_t bar = std::min(left.find('|'), left.size());
      choices.push_back(left.substr(0, bar));
      left.remove_prefix(std::min(bar + 1, left.size()));
    }
    throw bad_value(as, *text, expected(info) + did_you_mean(*text, choices));
  }
  throw Error(ErrorKind::bad_input,
              fmt::format("{} is {}: expected {}", field_name(as), to_text(value), expected(info)),
              {.field = as, .index = std::nullopt, .value = to_text(value)});
}

std::string to_text(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "nothing";
        else if constexpr (std::is_same_v<T, std::array<double, 2>>)
          return fmt::format("[{}, {}]", v[0], v[1]);
        else
          return fmt::format("{}", v);
      },
      value);
}

std::string grouped_defaults(const std::vector<std::pair<std::string_view, FieldValue>>& values) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> groups;
  for (const auto& [name, value] : values) {
    if (value.index() == 0) continue;
    const std::string text = to_text(value);
    const auto known = std::ranges::find(groups, text, &decltype(groups)::value_type::first);
    if (known == groups.end())
      groups.push_back({text, {name}});
    else
      known->second.push_back(name);
  }
  std::string text;
  for (const auto& [value, names] : groups)
    text += text.empty() ? value : fmt::format("; {} for {}", value, fmt::join(names, ", "));
  return text;
}

std::string choices_text(const FieldInfo& field) {
  std::string text = field.choices;
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, ", ");
  return text;
}

void Given::put(std::string_view name, FieldValue value) {
  for (Entry& entry : entries_)
    if (entry.first == name) {
      entry.second = std::move(value);
      return;
    }
  append(name, std::move(value));
}

void Given::append(std::string_view name, FieldValue value) {
  if (entries_.empty()) entries_.reserve(32);
  entries_.emplace_back(name, std::move(value));
}

void Given::remove(std::string_view name) {
  std::erase_if(entries_, [name](const Entry& entry) { return entry.first == name; });
}

const FieldValue* Given::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first.size() == name.size() && (entry.first.data() == name.data() || entry.first == name))
      return &entry.second;
  return nullptr;
}

std::string sweep_spelling(const std::vector<const FieldInfo*>& fields, std::string_view name) {
  for (const FieldInfo* field : fields)
    if (field->in_cpp() == name) return field->name;
  return std::string(name);
}

std::string command_spelling(const std::vector<const FieldInfo*>& fields, std::string_view name) {
  return option_name({.name = sweep_spelling(fields, name)});
}

std::string option_name(const FieldInfo& field) {
  std::string word = fmt::format("--{}", field.name);
  std::ranges::replace(word, '_', '-');
  return word;
}

std::string option_text(const FieldInfo& field, const FieldValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    if (!*flag && field.opposite.empty()) return "";
    return fmt::format(" {}", *flag ? option_name(field) : option_name({.name = field.opposite}));
  }
  const std::string text = to_text(value);
  return fmt::format(" {} {}", option_name(field),
                     field.kind == FieldKind::path ? shell_path(text) : shell_word(text));
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=:,/@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  if (one_line(text) != text) {
    // What cannot be shown, or copied from a screen, is spelled by its bytes.
    std::string spelled = "$'";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte >= 0x7F)
        spelled += fmt::format("\\x{:02x}", byte);
      else if (c == '\'' || c == '\\')
        spelled += {'\\', c};
      else
        spelled += c;
    }
    return spelled + "'";
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_path(const std::filesystem::path& path) {
  const std::string text = path.string();
  return shell_word(text.starts_with('-') ? "./" + text : text);
}

}  // namespace attmirror
