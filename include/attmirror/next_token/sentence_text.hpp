// Sentences as people write them: a text file with one sentence per line and blanks between words.
//
//   x y            two words: a collocation, y follows x
//   a b q y        more: the sentence a b q, whose query is q, is followed by y
//
// A line that occurs k times has weight k. Words are compared byte by byte: case and punctuation matter.
// Blanks are spaces and tabs; lines end with LF or CR LF; a byte order mark at the beginning is skipped.
#pragma once

#include <attmirror/next_token/sentences.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Where n(x) comes from.
enum class CollocationSource {
  // The two-word lines if there are any; else `copy` if each label occurs in its sentence; else `bigrams`.
  automatic,
  lines,  // two-word lines only; several for one word are a soft collocation
  copy,   // n(x) = x: the label is one of the words (Li et al. 2024)
  // The word that follows x most often in the file, including two-word lines (ties go to the first seen).
  bigrams,
};
std::string_view to_string(CollocationSource source);
CollocationSource parse_collocation_source(std::string_view name);  // throws Error (bad input)

// Sentences as words, with their vocabulary.
struct SentenceText {
  Vocabulary vocabulary;
  Sentences sentences;  // of two tokens or more; each distinct (sentence, label) once, with its weight
  Collocations collocations;
  CollocationSource source = CollocationSource::lines;  // never automatic
  std::vector<std::int64_t> lines;  // of sentence i: the first line that contains it, from 1
  std::int64_t short_lines = 0;     // empty or of one word: of an ordinary text
};

// How a file of sentences is read.
struct SentenceTextOptions {
  CollocationSource collocations = CollocationSource::automatic;
  std::filesystem::path
      vocabulary{};  // a file with one word per line, in the order of an embedding's rows; empty: as they occur
  // For a text that was not written for this model: empty lines and lines of one word are counted and left out, and
  // words of a sentence may lack a successor.
  bool skip_unexplained = false;
};

// Throws Error: bad input, naming the line (and word), for an empty line, a line of one word, bytes that are
// not UTF-8, control characters, a word that is not in the given vocabulary, a vocabulary of one word, a word
// in a sentence without a successor, a two-word line that contradicts `copy`, no sentence, or a file that
// does not exist; environment if the machine fails to read it.
SentenceText load_sentences(const std::filesystem::path& path, const SentenceTextOptions& options = {});
SentenceText parse_sentences(std::string_view text, std::string_view name,
                             const SentenceTextOptions& options = {});

// Sentences of the words in `vocabulary`, for evaluation: lines of three words or more (two words are a
// sentence of one token).
struct SentenceFile {
  Sentences sentences;
  std::vector<std::int64_t> lines;
};
SentenceFile load_more_sentences(const std::filesystem::path& path, const Vocabulary& vocabulary);
SentenceFile parse_more_sentences(std::string_view text, std::string_view name, const Vocabulary& vocabulary);

// One word per line: the vocabulary of SentenceTextOptions.
Vocabulary load_vocabulary(const std::filesystem::path& path);
Vocabulary parse_vocabulary(std::string_view text, std::string_view name);

// What load_sentences() reads: the collocations, then the sentences, each line repeated by its weight; read again,
// words are numbered as they occur. Throws Error (bad input) for a weight that is not whole or makes too many
// lines, a sentence of one token (a line would be a collocation), or a word with a blank or control character.
std::string to_text(const Vocabulary& vocabulary, const Collocations& collocations,
                    const Sentences& sentences);

}  // namespace attmirror
