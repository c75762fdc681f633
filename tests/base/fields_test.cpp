// Options by tables of fields: ranges and their words, what is given, refused, read back and written to JSON; errors
// that know their field.
#include "base/fields.hpp"

#include "base/field_json.hpp"
#include "support/files.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

enum class Mood { calm, wild };
std::string_view to_string(Mood mood) { return mood == Mood::calm ? "calm" : "wild"; }
Mood parse_mood(std::string_view word) {
  if (word == "calm") return Mood::calm;
  if (word == "wild") return Mood::wild;
  throw bad_value("mood", word, "calm or wild");
}

struct Inner {
  double depth = 2;
};

struct Toy {
  Mood mood = Mood::calm;
  double size = 1;
  std::int64_t count = 3;
  bool loud = false;
  std::optional<std::uint64_t> seed{};
  Inner inner{};
  std::array<double, 2> pair{0.5, 0.25};
};

const Fields<Toy>& toy_fields() {
  static const Fields<Toy> fields{
      field<&Toy::mood, parse_mood>({.name = "mood", .help = "how it is", .choices = "calm|wild"}),
      field<&Toy::size>({.name = "how_large",
                         .help = "size",
                         .range = Range::above(0),
                         .member = "size",
                         .headline = true}),
      field<&Toy::count>({.name = "count", .help = "how many", .range = Range::from(1)}),
      only_if(
          field<&Toy::loud>({.name = "loud", .help = "of wild ones", .opposite = "quiet"}),
          +[](const Toy& toy) { return toy.mood == Mood::wild; },
          +[](const Toy&) -> std::string { return fmt::format("{} is calm", field_name("mood")); }),
      field<&Toy::seed>({.name = "seed", .help = "of chance"}),
      field_of_part<&Toy::inner, &Inner::depth>({.name = "depth", .help = "inside", .kept_idle = true}),
      field<&Toy::pair>({.name = "pair", .help = "two", .may_lack = true}),
  };
  return fields;
}

Toy toy(const Given& given) {
  Toy made;
  apply(toy_fields(), given, made);
  return made;
}

TEST(Range, SaysWhatItHolds) {
  EXPECT_EQ(Range{}.expected(FieldKind::number), "a finite number");
  EXPECT_EQ(Range::above(1).expected(FieldKind::number), "a finite number greater than 1");
  EXPECT_EQ(Range::from(0).expected(FieldKind::number), "a finite number, 0 or greater");
  EXPECT_EQ(Range::from(1).expected(FieldKind::count), "a whole number, 1 or more");
  EXPECT_EQ(Range::between(0, 1).expected(FieldKind::number), "a number from 0 to 1");
  EXPECT_EQ(Range::from_to_below(0, 1).expected(FieldKind::number), "a number in [0, 1)");
}

TEST(Range, HoldsFiniteNumbersOnly) {
  for (const double none : {std::nan(""), infinity, -infinity}) {
    EXPECT_FALSE(Range{}.contains(none));
    EXPECT_FALSE(Range::above(0).contains(none));
    EXPECT_FALSE(Range::between(0, 1).contains(none));
  }
  EXPECT_FALSE(Range::above(1).contains(1));
  EXPECT_TRUE(Range::from(1).contains(1));
  EXPECT_TRUE(Range::between(0, 1).contains(1));
  EXPECT_FALSE(Range::from_to_below(0, 1).contains(1));
}

TEST(Fields, TakeWhatIsGivenAndLeaveTheRest) {
  const Toy made =
      toy({{"mood", std::string("wild")}, {"loud", true}, {"how_large", 0.5}, {"seed", std::uint64_t{7}}});
  EXPECT_EQ(made.mood, Mood::wild);
  EXPECT_TRUE(made.loud);
  EXPECT_EQ(made.size, 0.5);
  EXPECT_EQ(made.seed, 7u);
  EXPECT_EQ(made.count, 3);
  EXPECT_EQ(toy({{"depth", 4.0}}).inner.depth, 4);
  EXPECT_EQ(toy({{"of another table", 1.0}}).size, 1);
}

TEST(Fields, RefuseWhatHasNoEffectOrIsOutOfRange) {
  expect_bad_input({"loud is given, but mood is calm"}, [] { toy({{"loud", true}}); });
  expect_bad_input({"how_large is 0: expected a finite number greater than 0"}, [] {
    toy({{"how_large", 0.0}});
  });
  expect_bad_input({"how_large is nan"}, [] { toy({{"how_large", nan_value}}); });
  expect_bad_input({"count is 0: expected a whole number, 1 or more"}, [] {
    toy({{"count", std::int64_t{0}}});
  });
  expect_bad_input({"mood is \"sad\": expected calm or wild"}, [] { toy({{"mood", std::string("sad")}}); });
}

// In the words of C++ where C++ made the mistake.
TEST(Fields, RangesAreCheckedByMember) {
  expect_bad_input({"size is -1: expected a finite number greater than 0"}, [] {
    const Toy wrong{.size = -1};
    check_ranges(toy_fields(), wrong);
  });
  EXPECT_NO_THROW(check_ranges(toy_fields(), Toy{}));
}

TEST(Fields, ComeBackFromTheirValues) {
  const Toy made = toy({{"mood", std::string("wild")}, {"loud", true}, {"count", std::int64_t{9}}});
  Given all;
  add_values(toy_fields(), made, all);
  Given again;
  add_values(toy_fields(), toy(all), again);
  EXPECT_EQ(all, again);
  EXPECT_TRUE(all.has("loud"));
  EXPECT_FALSE(all.has("seed"));  // none was given
  Given calm;
  add_values(toy_fields(), Toy{}, calm);
  EXPECT_FALSE(calm.has("loud"));
}

TEST(Fields, SayWhatDiffers) {
  Given changes;
  add_changes(toy_fields(), toy({{"count", std::int64_t{9}}}), Toy{}, changes);
  std::string text;
  for (const auto& [name, value] : changes) text += fmt::format("{}={} ", name, attmirror::to_text(value));
  EXPECT_EQ(text, "how_large=1 count=9 ");
}

TEST(Fields, GoThroughJson) {
  const Toy made =
      toy({{"mood", std::string("wild")}, {"loud", true}, {"how_large", 0.1}, {"seed", ~std::uint64_t{0}}});
  Json json;
  put_fields(toy_fields(), made, json);
  EXPECT_EQ(
      json.dump(),
      R"({"mood":"wild","how_large":0.1,"count":3,"loud":true,"seed":18446744073709551615,"depth":2.0,"pair":[0.5,0.25]})");
  json.erase("pair");  // which older files lack
  Toy back;
  get_fields(toy_fields(), json, back);
  EXPECT_EQ(back.size, 0.1);
  EXPECT_EQ(back.seed, ~std::uint64_t{0});
  json["mood"] = "sad";
  expect_bad_input({"mood is \"sad\""}, [&] { get_fields(toy_fields(), json, back); });
  json.erase("mood");
  EXPECT_THROW(get_fields(toy_fields(), json, back), Json::exception);
}

TEST(Fields, AreSpelledAsTheReaderMeetsThem) {
  std::vector<const FieldInfo*> infos;
  for (const FieldInfo& info : toy_fields()) infos.push_back(&info);
  EXPECT_EQ(command_spelling(infos, "size"), "--how-large");
  EXPECT_EQ(command_spelling(infos, "how_large"), "--how-large");
  EXPECT_EQ(sweep_spelling(infos, "size"), "how_large");
  EXPECT_EQ(sweep_spelling(infos, "unknown_to_it"), "unknown_to_it");
  EXPECT_EQ(option_text(*infos[1], 0.5), " --how-large 0.5");
  EXPECT_EQ(option_text(*infos[3], true), " --loud");
  EXPECT_EQ(option_text(*infos[3], false), " --quiet");
  EXPECT_EQ(option_text(*infos[0], std::string("it's")), " --mood 'it'\\''s'");
}

TEST(Error, KnowsFieldIndexAndValue) {
  const Error entry = bad_entry("labels", 17, 0, "-1 or +1");
  EXPECT_STREQ(entry.what(), "labels[17] is 0: expected -1 or +1");
  EXPECT_EQ(entry.field(), "labels");
  EXPECT_EQ(entry.index(), 17);
  EXPECT_EQ(entry.value(), "0");
  const auto dashed = [](std::string_view field) { return "--" + std::string(field); };
  EXPECT_EQ(entry.message(dashed), entry.what());  // an array is no option
  const Error option = bad_value("p", 0.9, "more").in("a file").in("run 3");
  EXPECT_STREQ(option.what(), "run 3: a file: p is 0.9: expected more");
  EXPECT_EQ(option.message(dashed), "run 3: a file: --p is 0.9: expected more");
  EXPECT_EQ(option.field(), "p");
  EXPECT_EQ(option.kind(), ErrorKind::bad_input);
  EXPECT_EQ(bad_input("nothing marked").message(dashed), "nothing marked");
  EXPECT_EQ(bad_value("p", "\x1f", "a number").message(dashed),
            "--p is \"\": expected a number");  // half a mark
}

}  // namespace
}  // namespace attmirror::test
