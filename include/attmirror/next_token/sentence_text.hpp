// Sentences as people write them: a text file, a sentence a line, words between blanks.
//
//   x y            two words: a collocation, y follows x
//   a b q y        more: the sentence a b q, whose query is q, is followed by y
//
// A line that is there k times has weight k. Words are compared byte by byte: case and punctuation count. Blanks are
// spaces and tabs; lines end with LF or CR LF; a byte order mark at the beginning is skipped.
#pragma once

#include <attmirror/next_token/sentences.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Where n(x) comes from.
enum class CollocationSource {
  // The two-word lines where there are any; else `copy` where each label occurs in its sentence; else `bigrams`.
  automatic,
  lines,  // two-word lines only; several for one word are a soft collocation
  copy,   // n(x) = x: the label is one of the words (Li et al. 2024)
  // The word that follows x most often in the file, two-word lines included (of equals the first seen).
  bigrams,
};
std::string_view to_string(CollocationSource source);
CollocationSource parse_collocation_source(std::string_view name);  // throws Error (bad input)

// Sentences as words, with their vocabulary.
struct SentenceText {
  Vocabulary vocabulary;
  Sentences sentences;  // of two tokens or more; each different (sentence, label) once, with its weight
  Collocations collocations;
  CollocationSource source = CollocationSource::lines;  // never automatic
  std::vector<std::int64_t> lines;                      // of sentence i: the first line that holds it, from 1
};

// How a file of sentences is read.
struct SentenceTextOptions {
  CollocationSource collocations = CollocationSource::automatic;
  std::filesystem::path
      vocabulary{};  // a file with a word a line, in the order of an embedding's rows; empty: as they occur
};

// Throws Error: bad input naming the line (and word) for an empty line, a line of one word, bytes that are no UTF-8
// or control characters, a word that is not in the given vocabulary, a vocabulary of one word, a word of a sentence
// without successor, a two-word line that contradicts `copy`, no sentence, a file that is not there; environment
// where the machine fails to read it.
SentenceText load_sentences(const std::filesystem::path& path, const SentenceTextOptions& options = {});
SentenceText parse_sentences(std::string_view text, std::string_view name,
                             const SentenceTextOptions& options = {});

// Sentences of the words of `vocabulary`, for evaluation: lines of three words or more (of two: a sentence of
// one token).
struct SentenceFile {
  Sentences sentences;
  std::vector<std::int64_t> lines;
};
SentenceFile load_more_sentences(const std::filesystem::path& path, const Vocabulary& vocabulary);
SentenceFile parse_more_sentences(std::string_view text, std::string_view name, const Vocabulary& vocabulary);

// A word a line: the vocabulary of SentenceTextOptions.
Vocabulary load_vocabulary(const std::filesystem::path& path);
Vocabulary parse_vocabulary(std::string_view text, std::string_view name);

// What load_sentences() reads: the collocations, then the sentences, a line as often as its weight says. Read again,
// words are numbered as they occur there. Throws Error (bad input): a weight that is not a whole number or makes too
// many lines, a sentence of one token (a line would be a collocation), a word with a blank or a control character.
std::string to_text(const Vocabulary& vocabulary, const Collocations& collocations,
                    const Sentences& sentences);

}  // namespace attmirror
