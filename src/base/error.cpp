#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Stands before and after a field's name. It is the unit separator of ASCII, which no text of a user should hold; one
// that does is printed without it.
constexpr char field_mark = '\x1f';

std::string spelled(const std::string& marked, const FieldSpelling& spelling) {
  std::string text;
  for (std::size_t at = 0; at < marked.size();) {
    const std::size_t begin = std::min(marked.find(field_mark, at), marked.size());
    text.append(marked, at, begin - at);
    const std::size_t end = begin == marked.size() ? begin : marked.find(field_mark, begin + 1);
    if (end == std::string::npos) return text.append(marked, begin + 1);
    if (end > begin) text += spelling(std::string_view(marked).substr(begin + 1, end - begin - 1));
    at = end + 1;
  }
  return text;
}

Error about_field(std::string_view field, const std::string& value, std::string_view shown,
                  std::string_view expected) {
  return Error(ErrorKind::bad_input, fmt::format("{} is {}: expected {}", field_name(field), shown, expected),
               {.field = std::string(field), .index = std::nullopt, .value = value});
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message, ErrorPlace place)
    : std::runtime_error(spelled(message, [](std::string_view field) { return std::string(field); })),
      kind_(kind),
      details_(std::make_shared<Details>(Details{message, std::move(place)})) {}

std::string Error::message(const FieldSpelling& spelling) const {
  return spelled(details_->marked, spelling);
}

Error Error::in(std::string_view context) const {
  return Error(kind_, fmt::format("{}: {}", context, details_->marked), details_->place);
}

std::string field_name(std::string_view field) {
  return fmt::format("{}{}{}", field_mark, field, field_mark);
}

Error bad_input(const std::string& message) { return Error(ErrorKind::bad_input, message); }
Error environment_error(const std::string& message) { return Error(ErrorKind::environment, message); }

Error bad_value(std::string_view field, double value, std::string_view expected) {
  const std::string text = fmt::format("{}", value);
  return about_field(field, text, text, expected);
}

Error bad_value(std::string_view field, std::int64_t value, std::string_view expected) {
  const std::string text = fmt::format("{}", value);
  return about_field(field, text, text, expected);
}

Error bad_value(std::string_view field, std::string_view word, std::string_view expected) {
  return about_field(field, std::string(word), fmt::format("\"{}\"", word), expected);
}

Error bad_entry(std::string_view array, std::int64_t index, double value, std::string_view expected) {
  return Error(ErrorKind::bad_input, fmt::format("{}[{}] is {}: expected {}", array, index, value, expected),
               {.field = std::string(array), .index = index, .value = fmt::format("{}", value)});
}

}  // namespace attmirror
