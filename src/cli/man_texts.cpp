#include "cli/man_texts.hpp"

#include <algorithm>

namespace attmirror::cli {

namespace {

const NamedTexts run_folder_files = {
    {"config.json", "all settings of the run, with seeds and the fingerprint of the data"},
    {"metrics.jsonl", "one line per record: step, loss, largest softmax probability, norm"},
    {"trace.npz", "the recorded weights; the first axis is the record"},
    {"final.npz", "the trained weights and the selected tokens"},
    {"checkpoint.npz", "what --resume needs to continue with the same bits"},
    {"result.json", "how the run ended; written last"},
};

std::vector<ManText> all_texts() {
  return {
      {"attmirror",
       "attmirror trains softmax attention by mirror descent and other optimizers, finds out which tokens "
       "the attention selects, and solves the max-margin problem that training converges to, with a "
       "certificate.\n\nAnswers go to standard output; progress and messages go to standard error. Results "
       "do not depend on the number of threads, and a run that was interrupted and resumed has the same "
       "bits as one that was not.",
       {},
       {},
       {},
       "train softmax attention by mirror descent and solve the max-margin problem that it converges to"},
      {"attmirror generate",
       "Writes a dataset of token sequences with queries, labels and a decoder. The same options give the "
       "same data on every machine.",
       {{"FILE.npz", "the dataset: X (tokens), Z (queries), Y (labels), v (decoder)"}},
       {},
       {"attmirror-info", "attmirror-train"}},
      {"attmirror train",
       "Trains the attention weights on a dataset and prints which token each sequence ends up selecting. "
       "With -o the run is kept in a folder, from which it can be resumed after an interruption.",
       run_folder_files,
       {},
       {"attmirror-generate", "attmirror-margin", "attmirror-compare", "attmirror-sweep"}},
      {"attmirror margin",
       "Finds the smallest weights that separate the selected tokens from all others by a margin of at "
       "least 1. The answer comes with a certificate: the gap between its norm and a lower bound, "
       "recomputed from the data by separate code.",
       {{"svm.npz",
         "the solution W, the multipliers lambda with their constraints, the selected tokens alpha, the "
         "support tokens"}},
       {},
       {"attmirror-train", "attmirror-compare"}},
      {"attmirror compare",
       "Compares the weights of a run with a max-margin solution: directional Bregman divergence in the "
       "geometry of the run, correlation, and the ratio of their margins. None of them depends on the size "
       "of the weights.",
       {},
       {},
       {"attmirror-train", "attmirror-margin"}},
      {"attmirror path",
       "Follows the weights of least loss within balls of growing radius, and compares each with the "
       "max-margin solution of the tokens that it selects.",
       {{"config.json", "all settings of the path, with seeds and the fingerprint of the data"},
        {"metrics.jsonl", "one line per radius"},
        {"path.npz", "the points of the path; the first axis is the radius"}},
       {},
       {"attmirror-margin", "attmirror-train"}},
      {"attmirror next-token",
       "Trains one layer of attention to predict the next token (P4), in two stages or jointly, on "
       "sentences of your own or generated ones, and compares both weight matrices with their max-margin "
       "targets.",
       {},
       {},
       {"attmirror-train", "attmirror-reproduce"}},
      {"attmirror deep",
       "Trains transformers by mirror descent and shows what their attention selects. This part of "
       "attmirror needs LibTorch and is a program of its own, attmirror-deep, which lies beside attmirror "
       "where it was built. attmirror deep SUBCOMMAND --help lists the options of a subcommand.",
       {},
       deep_environment(),
       {"attmirror-report"},
       "train transformers by mirror descent and show what they attend to"},
      {"attmirror sweep",
       "Runs all trainings that a sweep file describes, with their max-margin problems, and keeps the "
       "results in a database; or prints and exports what a database holds. Under mpirun all processes fill "
       "the same database. A sweep that was killed continues with --resume.",
       {{"sweep.toml", "the sweep: data, model and optimizer, with lists of values to combine"},
        {"results.db", "the results, an SQLite database"}},
       sweep_environment(),
       {"attmirror-train", "attmirror-report"}},
      {"attmirror which-margin",
       "Trains optimizers on a dataset, or takes the runs that are given, and measures the margin of their weights in "
       "several norms, relative to the largest margin that any weights have. The largest margins are certified. Theory "
       "predicts in which norm each optimizer comes near the largest one.",
       {{"report.html", "with -o: the page"},
        {"figures/, tables/", "its figure (SVG) and tables (CSV, LaTeX)"}},
       {},
       {"attmirror-train", "attmirror-margin", "attmirror-study"}},
      {"attmirror attractors",
       "Finds the directions that training can converge to, with the tokens on which it then ends: the whole attractor, on "
       "which every query has its best token, and partial ones, which leave the best tokens of some queries behind. Each "
       "has a certificate. Random starts tell how often training ends on each.",
       {{"NAME.html", "with -o: the page"},
        {"NAME-figures/, NAME-tables/", "its figure (SVG) and tables (CSV, LaTeX)"}},
       {},
       {"attmirror-train", "attmirror-margin", "attmirror-which-margin"}},
      {"attmirror study",
       "Trains several optimizers on a dataset from several random starts, solves the max-margin problem of each run, "
       "compares the two and writes a page. It is a sweep whose file is written for you; a study that was interrupted "
       "continues with --resume.",
       {{"sweep.toml", "the sweep file: attmirror sweep repeats the runs to the bit"},
        {"results.db", "the results, an SQLite database"},
        {"report.html, figures/, tables/", "the page, with its figures (SVG) and tables (CSV, LaTeX)"}},
       {},
       {"attmirror-sweep", "attmirror-which-margin", "attmirror-report"}},
      {"attmirror reproduce",
       "Reruns the experiments of the papers, compares each published number with ours, and writes one page "
       "with all figures and tables. --list names the experiments.",
       {{"report.html", "the page"}, {"figures/, tables/", "its figures (SVG) and tables (CSV, LaTeX)"}},
       {},
       {"attmirror-report", "attmirror-sweep"}},
      {"attmirror report",
       "Makes one HTML page, which works offline, from runs, sweeps and reproductions.",
       {},
       {},
       {"attmirror-reproduce", "attmirror-sweep", "attmirror-train"}},
      {"attmirror info",
       "Describes a file or folder that attmirror reads or writes.",
       {},
       {},
       {"attmirror-generate"}},
      {"attmirror completion",
       "Prints a script that teaches a shell to complete attmirror's subcommands, options and their values. "
       "An installed attmirror brings these scripts along.",
       {{"~/.bashrc, ~/.zshrc", "where the line of the example goes, for bash and zsh"},
        {"~/.config/fish/completions/attmirror.fish", "where the script goes for fish"}},
       {},
       {}},
      {"attmirror help",
       "Prints what --help of a subcommand prints, or the list of subcommands, or the list of the environment "
       "variables that attmirror reads.",
       {},
       {},
       {"attmirror-man"}},
      {"attmirror man",
       "Prints the man page of attmirror or of a subcommand, or writes all of them into a folder. The pages "
       "are made from the options that the program itself reads. An installed attmirror brings them along: "
       "man attmirror-train.",
       {},
       {},
       {}},
      {"attmirror deep train",
       "Trains the transformer that a TOML file describes and keeps the run in a folder. A training that "
       "was interrupted or killed continues with --resume. Under mpirun or torchrun several processes train "
       "together.",
       {},
       deep_environment(),
       {"attmirror-deep-report", "attmirror-deep-attention-map"}},
      {"attmirror deep tokenize",
       "Splits texts into WordPiece tokens and writes their ids, with a checksum by which they can be "
       "compared with the ids of another tokenizer.",
       {},
       {},
       {"attmirror-deep-train"}},
      {"attmirror deep attention-map",
       "Makes a page that shows how much attention each token of a text, or each patch of an image, receives, for "
       "several networks side by side. With --differing it chooses the sentences in which the token-selection scores of "
       "the networks differ most and least, and says which network selects the deciding word best.",
       {},
       {},
       {"attmirror-deep-score", "attmirror-deep-histogram"}},
      {"attmirror deep score",
       "Measures how often the attention of a network selects the word that decides the sentiment of a "
       "review (P1): in sentences with one such word each, and in real reviews, with sentiment words from a "
       "list that is made of other reviews. Of several networks it says which one wins each sentence and each "
       "review.",
       {},
       {},
       {"attmirror-deep-attention-map"}},
      {"attmirror deep histogram",
       "Makes a page that shows the distribution of the weights of keys, queries and values, for several "
       "networks.",
       {},
       {},
       {"attmirror-deep-attention-map"}},
      {"attmirror deep report",
       "Makes one page with the learning curves and the trials of trainings.",
       {},
       {},
       {"attmirror-deep-train", "attmirror-report"}},
  };
}

}  // namespace

ManText man_text(const std::string& command) {
  const std::vector<ManText> texts = all_texts();
  const auto found = std::ranges::find(texts, command, &ManText::command);
  return found == texts.end() ? ManText{.command = command, .description = {}} : *found;
}

}  // namespace attmirror::cli
