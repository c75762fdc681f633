// Options described once: a table of fields beside each options struct.
//
//   const std::vector<Field<Adam>> fields{
//       field<&Adam::lr>({.name = "lr", .help = "how far a step goes", .range = Range::above(0)}),
//       field<&Adam::schedule, parse_schedule>({.name = "schedule", .help = "...", .choices =
//       "constant|power:EXPONENT"}),
//   };
//
// From such a table come the options of the command with their help and completions, the settings of a sweep, the
// keys of a trainer's TOML file, config.json in both directions, what differs between two configurations and the
// command that repeats a run. The default of a field is what the struct, or the preset of a named method, says.
//
// A front end gathers what its user gave (Given), and apply() puts it into the struct: in the order of the table, so a
// field stands after those that decide whether it has an effect. One without effect is refused: whoever gave it has
// misunderstood something. Internal.
#pragma once

#include "base/numbers.hpp"
#include <attmirror/base/error.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

// What a field may hold, as front ends pass it on; nothing: not given, or without effect.
using FieldValue = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                                std::array<double, 2>>;

enum class FieldKind {
  flag,
  count,  // a whole number
  seed,   // one from 0 to 2^64 - 1
  number,
  word,  // text that `choices` describes
  norm,  // a word, or a number that stands for l_p
  path,
  pair,  // two numbers
};

// The numbers that a field takes; always finite ones.
struct Range {
  double low = -infinity, high = infinity;
  bool above_low = false, below_high = false;  // the bounds themselves are left out

  bool contains(double x) const {  // false for NaN and infinities
    return (above_low ? x > low : x >= low) && (below_high ? x < high : x <= high) && x > -infinity &&
           x < infinity;
  }
  static constexpr Range above(double low) { return {.low = low, .above_low = true}; }
  static constexpr Range from(double low) { return {.low = low}; }
  static constexpr Range between(double low, double high) { return {.low = low, .high = high}; }
  static constexpr Range from_to_below(double low, double high) {
    return {.low = low, .high = high, .below_high = true};
  }

  std::string expected(FieldKind kind) const;  // "a finite number greater than 0"
};

struct FieldInfo {
  std::string name{};  // in sweep files, TOML, JSON and Python; --entropy-beta of the command is entropy_beta
  std::string help{};  // one line
  std::string choices{};        // of words: "lp|schatten|entropy"; capitals stand for something of the user's
  Range range{};                // of numbers
  std::string member{};         // in C++, where it differs from the name
  std::string key{};            // in config.json, where it differs
  std::string opposite{};       // of a flag: the command's word for false
  std::string instead{};        // what those have that do not take it; may name fields
  std::string shown_default{};  // for help, where the default depends on other fields
  bool needed = false;          // it has no default
  bool headline = false;        // the command that repeats a run shows it even at its default
  bool kept_idle = false;       // config.json records it where it has no effect, too
  bool may_lack = false;        // config.json of older versions does not have it
  bool place = false;           // where something is computed, not what: a run may go on with another value
  // The table's maker fills these in.
  FieldKind kind = FieldKind::word;
  bool listed = false;  // a text that must be one of `choices`

  const std::string& in_cpp() const { return member.empty() ? name : member; }
  const std::string& in_json() const { return key.empty() ? name : key; }
};

// What a field takes, for messages: "a finite number greater than 0", "\"sum\" or \"mean\"".
std::string expected(const FieldInfo& info);

// Whether numbers are in range and a text is one of those listed. check_value() throws Error (bad input) where not;
// `as` is the name that the message uses.
bool is_allowed(const FieldInfo& info, const FieldValue& value);
void check_value(const FieldInfo& info, const FieldValue& value, const std::string& as);

// One default and those who have another: "none; ema:0.9 for signum; ema:0.95 for muon". Takes names with their values.
std::string grouped_defaults(const std::vector<std::pair<std::string_view, FieldValue>>& values);

// As a command line or a message shows it: 0.1, 20000, ema:0.9, true.
std::string to_text(const FieldValue& value);

// "lp, schatten, entropy"
std::string choices_text(const FieldInfo& field);

template <class Options>
struct Field : FieldInfo {
  FieldValue (*read)(const Options&) = nullptr;
  void (*write)(Options&, const FieldValue&) = nullptr;
  // Whether it has an effect on these options, and why it has none: "geometry is lp: only entropy has one". Without
  // the first, the second is empty where it has; without both it always has.
  bool (*applies)(const Options&) = nullptr;
  std::string (*otherwise)(const Options&) = nullptr;

  bool has_effect(const Options& options) const {
    if (applies != nullptr) return applies(options);
    return otherwise == nullptr || otherwise(options).empty();
  }

  FieldValue get(const Options& options) const { return has_effect(options) ? read(options) : FieldValue{}; }
  void set(Options& options, const FieldValue& value) const {
    check_value(*this, value, name);
    write(options, value);
  }
};

template <class Options>
using Fields = std::vector<Field<Options>>;

// What help shows as the default: that of the struct.
template <class Options>
std::string default_text(const Field<Options>& field) {
  if (!field.shown_default.empty()) return field.shown_default;
  const FieldValue value = field.read(Options{});
  return value.index() == 0 ? "" : to_text(value);
}

template <class T>
constexpr FieldKind kind_of_field() {
  if constexpr (std::is_same_v<T, bool>) return FieldKind::flag;
  if constexpr (std::is_same_v<T, std::int64_t>) return FieldKind::count;
  if constexpr (std::is_same_v<T, std::uint64_t>) return FieldKind::seed;
  if constexpr (std::is_same_v<T, double>) return FieldKind::number;
  if constexpr (std::is_same_v<T, std::filesystem::path>) return FieldKind::path;
  if constexpr (std::is_same_v<T, std::array<double, 2>>) return FieldKind::pair;
  return FieldKind::word;
}

template <class T>
struct WithoutOptional {
  using Type = T;
};
template <class T>
struct WithoutOptional<std::optional<T>> {
  using Type = T;
};

template <class T>
struct MemberPointer;
template <class Class, class Member>
struct MemberPointer<Member Class::*> {
  using Owner = Class;
  using Type = Member;
};

// A field that is a member: a number, a flag, a text or a path as it is; anything else as a word, by `parse` and the
// to_string() of its type. A text may have a `parse`, too, and without one is listed in its choices. An optional
// member is a field that may have no value.
template <auto member, auto parse = nullptr>
auto field(FieldInfo info) {
  using Owner = typename MemberPointer<decltype(member)>::Owner;
  using Type = typename MemberPointer<decltype(member)>::Type;
  using Value = typename WithoutOptional<Type>::Type;
  Field<Owner> result;
  static_cast<FieldInfo&>(result) = std::move(info);
  result.kind = kind_of_field<Value>();
  constexpr bool parsed = !std::is_same_v<decltype(parse), std::nullptr_t>;
  constexpr bool is_text = std::is_same_v<Type, std::string>;
  result.listed = is_text && !parsed && !result.choices.empty();
  result.read = [](const Owner& options) -> FieldValue {
    if constexpr (!std::is_same_v<Type, Value>)
      return options.*member ? FieldValue(*(options.*member)) : FieldValue();
    else if constexpr (parsed && !is_text)
      return std::string(to_string(options.*member));
    else if constexpr (std::is_same_v<Type, std::filesystem::path>)
      return (options.*member).string();
    else
      return options.*member;
  };
  result.write = [](Owner& options, const FieldValue& value) {
    if constexpr (parsed)
      options.*member = parse(std::get<std::string>(value));
    else if constexpr (std::is_same_v<Type, std::filesystem::path>)
      options.*member = std::get<std::string>(value);
    else
      options.*member = std::get<Value>(value);
  };
  return result;
}

// A field of a part of the options: `options.*part.*member`.
template <auto part, auto member, auto parse = nullptr>
auto field_of_part(FieldInfo info) {
  using Owner = typename MemberPointer<decltype(part)>::Owner;
  static const auto inner = field<member, parse>({});
  Field<Owner> result;
  static_cast<FieldInfo&>(result) = field<member, parse>(std::move(info));
  result.read = [](const Owner& options) { return inner.read(options.*part); };
  result.write = [](Owner& options, const FieldValue& value) { inner.write(options.*part, value); };
  return result;
}

// A field that is none: one word for several members, or one that is worked out.
template <class Options>
Field<Options> made_field(FieldInfo info, FieldKind kind, FieldValue (*read)(const Options&),
                          void (*write)(Options&, const FieldValue&)) {
  Field<Options> result;
  static_cast<FieldInfo&>(result) = std::move(info);
  result.kind = kind;
  result.read = read;
  result.write = write;
  return result;
}

// A field that has an effect only where `applies` says so; `otherwise` says why not.
template <class Options>
Field<Options> only_if(Field<Options> field, std::type_identity_t<bool (*)(const Options&)> applies,
                       std::type_identity_t<std::string (*)(const Options&)> otherwise) {
  field.applies = applies;
  field.otherwise = otherwise;
  return field;
}

// ---- what a user gave

// Values by the names of fields. The names are those of tables, which outlive it.
class Given {
 public:
  using Entry = std::pair<std::string_view, FieldValue>;
  Given() = default;
  Given(std::initializer_list<Entry> entries) : entries_(entries) {}

  void put(std::string_view name, FieldValue value);     // replaces what was given
  void append(std::string_view name, FieldValue value);  // where nothing was
  void remove(std::string_view name);
  const FieldValue* find(std::string_view name) const;  // null: not given
  bool has(std::string_view name) const { return find(name) != nullptr; }

  template <class T>
  std::optional<T> get(std::string_view name) const {
    const FieldValue* value = find(name);
    return value == nullptr ? std::nullopt : std::optional(std::get<T>(*value));
  }
  std::string word(std::string_view name, std::string_view otherwise = "") const {
    const auto text = get<std::string>(name);
    return text ? *text : std::string(otherwise);
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  friend bool operator==(const Given&, const Given&) = default;

 private:
  std::vector<Entry> entries_;
};

// Puts what was given into the options. Throws Error (bad input) for what does not parse, is out of range or has no
// effect. Values for other tables are left alone.
template <class Options>
void apply(const Field<Options>& field, const FieldValue& value, Options& options) {
  if (!field.has_effect(options))
    throw Error(ErrorKind::bad_input,
                fmt::format("{} is given, but {}", field_name(field.name), field.otherwise(options)),
                {.field = field.name, .index = std::nullopt, .value = to_text(value)});
  field.set(options, value);
}
template <class Options>
void apply(const Fields<Options>& fields, const Given& given, Options& options) {
  for (const Field<Options>& field : fields)
    if (const FieldValue* value = given.find(field.name)) apply(field, *value, options);
}

// Every field that has an effect, defaults included: apply() gives equal options. `given` has none of them yet.
template <class Options>
void add_values(const Fields<Options>& fields, const Options& options, Given& given) {
  for (const Field<Options>& field : fields)
    if (FieldValue value = field.get(options); value.index() != 0) given.append(field.name, std::move(value));
}

// What must be given to make `options` of `start`: what differs, and the headlines. A field is held against what those
// before it leave as its default (eps paper has another Jacobian).
template <class Options>
void add_changes(const Fields<Options>& fields, const Options& options, Options start, Given& given) {
  for (const Field<Options>& field : fields) {
    FieldValue value = field.get(options);
    if (value.index() == 0 || (!field.headline && !field.needed && value == field.get(start))) continue;
    field.write(start, value);
    given.put(field.name, std::move(value));
  }
}

// Checks every number against its range and every listed text, in the words of C++: what validate() begins with.
template <class Options>
void check_ranges(const Fields<Options>& fields, const Options& options) {
  for (const Field<Options>& field : fields)
    if (field.listed || field.kind == FieldKind::number || field.kind == FieldKind::count ||
        field.kind == FieldKind::pair)
      check_value(field, field.read(options), field.in_cpp());
}

// How sweep files and the command spell a field of these tables, given its name in C++ or theirs: beta of
// MirrorDescent is entropy_beta and --entropy-beta.
std::string sweep_spelling(const std::vector<const FieldInfo*>& fields, std::string_view name);
std::string command_spelling(const std::vector<const FieldInfo*>& fields, std::string_view name);
std::string option_name(const FieldInfo& field);  // --entropy-beta

// " --entropy-beta 0.5", as one would type it for a POSIX shell; nothing for a flag that is off.
std::string option_text(const FieldInfo& field, const FieldValue& value);

// Text as one word of a POSIX shell.
std::string shell_word(const std::string& text);

// The same for the path of a file, which no command takes for an option: ./--data.npz.
std::string shell_path(const std::filesystem::path& path);

}  // namespace attmirror
