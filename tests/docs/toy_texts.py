"""toy_texts.py: writes small stand-ins for the data that the pages about networks name, into the working directory.

train.tsv, dev.tsv (LABEL<TAB>TEXT), vocab.txt, aclImdb/train/ and p1_sentences.tsv have the form of SST-2, WordPiece's
vocabulary, IMDb and P1's sentences, with one word in each review that decides it, so that a network of any size trains
on them in a second.
"""

import pathlib
import random

GOOD = ("fantastic", "lovely", "superb")
BAD = ("dull", "awful", "hated")
PLAIN = ("the", "movie", "was", "a", "film", "with", "music", "and", "plot", "scene", "i", "it")


def review(draw):
    """(label, the word that decides, text)"""
    label = draw.randrange(2)
    pivotal = draw.choice(GOOD if label else BAD)
    words = draw.choices(PLAIN, k=draw.randint(3, 9))
    words.insert(draw.randint(0, len(words)), pivotal)
    return label, pivotal, " ".join(words)


def write_lines(path, lines):
    pathlib.Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main():
    draw = random.Random(1)
    write_lines("vocab.txt", ("[PAD]", "[UNK]", "[CLS]", "[SEP]") + PLAIN + GOOD + BAD)
    for path, count in (("train.tsv", 200), ("dev.tsv", 40)):
        write_lines(path, [f"{label}\t{text}" for label, _, text in (review(draw) for _ in range(count))])
    write_lines("p1_sentences.tsv",
                ["label\tpivotal\tsentence"] + ["\t".join(map(str, review(draw))) for _ in range(10)])
    for number in range(20):
        label, _, text = review(draw)
        folder = pathlib.Path("aclImdb/train", "pos" if label else "neg")
        folder.mkdir(parents=True, exist_ok=True)
        write_lines(folder / f"{number}_{9 if label else 2}.txt", [text])


if __name__ == "__main__":
    main()
