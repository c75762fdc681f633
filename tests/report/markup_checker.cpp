#include "report/markup_checker.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace attmirror::test {

namespace {

class Checker {
 public:
  Checker(std::string_view markup, Markup kind) : rest_(markup), html_(kind == Markup::html) {}

  MarkupCheck run() {
    check_letters();
    if (html_) rest_.starts_with("<!DOCTYPE html>\n") ? skip(16) : fail("no doctype");
    while (!rest_.empty() && result_.error.empty()) rest_.front() == '<' ? tag() : text();
    if (result_.error.empty() && !open_.empty()) fail("<" + open_.back() + "> is not closed");
    return result_;
  }

 private:
  void fail(const std::string& what) {
    if (result_.error.empty()) result_.error = what + " before: " + std::string(rest_.substr(0, 60));
  }
  void skip(std::size_t count) { rest_.remove_prefix(std::min(count, rest_.size())); }

  void check_letters() {
    for (std::string_view text = rest_; !text.empty();) {
      const Letter letter = first_letter(text);
      const bool replaced = text.starts_with("\uFFFD");
      if (letter.code == replacement_letter && !replaced) return fail("bytes that are no UTF-8");
      if (letter.code < 0x20 && letter.code != '\n' && letter.code != '\t' && letter.code != '\r')
        return fail("a control character");
      text.remove_prefix(letter.bytes);
    }
  }

  void check_entities(std::string_view value) {
    for (std::size_t at = value.find('&'); at != std::string_view::npos; at = value.find('&', at + 1)) {
      const std::string_view entity = value.substr(at);
      const auto known = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
      if (std::ranges::none_of(known, [&](const char* one) { return entity.starts_with(one); }))
        return fail("a bare &: " + std::string(entity.substr(0, 20)));
    }
  }

  void text() {
    const std::size_t end = std::min(rest_.find('<'), rest_.size());
    check_entities(rest_.substr(0, end));
    if (rest_.substr(0, end).find('>') != std::string_view::npos) fail("a bare >");
    result_.text += rest_.substr(0, end);
    skip(end);
  }

  std::string name() {
    std::size_t end = 0;
    while (end < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '-' || rest_[end] == ':'))
      ++end;
    const std::string word(rest_.substr(0, end));
    if (word.empty()) fail("no name of a tag or an attribute");
    skip(end);
    return word;
  }

  void blanks() { skip(std::min(rest_.find_first_not_of(" \n\t"), rest_.size())); }

  void tag() {
    skip(1);
    if (rest_.starts_with("/")) return closing();
    Element element{name(), {}};
    std::set<std::string> seen;
    for (blanks(); result_.error.empty() && !rest_.starts_with(">") && !rest_.starts_with("/>"); blanks()) {
      const std::string attribute = name();
      if (!seen.insert(attribute).second) fail("attribute " + attribute + " twice");
      std::string value;
      if (rest_.starts_with("=\"")) {
        skip(2);
        const std::size_t end = rest_.find('"');
        if (end == std::string_view::npos) return fail("an attribute without an end");
        value = rest_.substr(0, end);
        if (value.find('<') != std::string::npos) fail("a bare < in an attribute");
        check_entities(value);
        skip(end + 1);
      } else if (!html_) {
        fail("attribute " + attribute + " without a value");
      }
      element.attributes.emplace_back(attribute, value);
      if (!rest_.starts_with(">") && !rest_.starts_with("/>") && !rest_.starts_with(" "))
        fail("no blank between attributes");
    }
    if (!result_.error.empty()) return;
    const bool closed = rest_.starts_with("/>");
    skip(closed ? 2 : 1);
    const bool is_void = html_ && (element.name == "meta" || element.name == "input" ||
                                   element.name == "link" || element.name == "br" || element.name == "img");
    result_.elements.push_back(element);
    if (closed || is_void) return;
    if (html_ && (element.name == "script" || element.name == "style")) {
      const std::string end = "</" + element.name + ">";
      const std::size_t at = rest_.find(end);
      if (at == std::string_view::npos) return fail("a script or style without an end");
      return skip(at + end.size());
    }
    open_.push_back(element.name);
  }

  void closing() {
    skip(1);
    const std::string word = name();
    if (!rest_.starts_with(">")) return fail("</" + word + " without >");
    skip(1);
    if (open_.empty() || open_.back() != word)
      return fail("</" + word + "> closes <" + (open_.empty() ? "" : open_.back()) + ">");
    open_.pop_back();
  }

  std::string_view rest_;
  bool html_;
  std::vector<std::string> open_;
  MarkupCheck result_;
};

}  // namespace

MarkupCheck check_markup(std::string_view markup, Markup kind) { return Checker(markup, kind).run(); }

}  // namespace attmirror::test
