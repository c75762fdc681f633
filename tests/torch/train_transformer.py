#!/usr/bin/env python3
"""train_transformer.py SST2-FOLDER VOCABULARY: trains a small BERT of Hugging Face's transformers, from random weights, on
sentences of SST-2, with torch.optim.AdamW and with one line changed. Ends with 0 if the changed ones learn, too.

BERT's weights start with a deviation of 0.02, which is meant for a width of 768. At the width of 64 used here all plain gradient
steps, p = 2 (SGD) included, stay at chance with it for thousands of steps; 0.1 is the deviation that fits."""

import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

import attmirror.torch

OPTIMIZERS = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=5e-4),
    "MirrorDescent": lambda parameters: attmirror.torch.MirrorDescent(parameters, lr=0.15, p=1.1),
    "SteepestDescent": lambda parameters: attmirror.torch.SteepestDescent(parameters, lr=5e-4, norm="sign", momentum=0.9),
}
STEPS, BATCH = 2000, 32


def read(path, count):
    lines = [line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8")][:count]
    return [line[0] for line in lines], torch.tensor([int(line[1]) for line in lines])


def main(folder, vocabulary):
    tokenizer = BertTokenizer(vocabulary)
    sets = {}
    for name, count in (("train", STEPS * BATCH), ("dev", 872)):
        texts, labels = read(f"{folder}/{name}.tsv", count)
        sets[name] = tokenizer(texts, padding="max_length", truncation=True, max_length=32, return_tensors="pt"), labels
    accuracies = {}
    for name, make in OPTIMIZERS.items():
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(
            vocab_size=tokenizer.vocab_size, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=128, num_labels=2, initializer_range=0.1,
        ))  # fmt: skip
        optimizer = make(model.parameters())
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        tokens, labels = sets["train"]
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            loss = model(**{key: value[rows] for key, value in tokens.items()}, labels=labels[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        tokens, labels = sets["dev"]
        with torch.no_grad():
            accuracies[name] = float((model(**tokens).logits.argmax(1) == labels).float().mean())
        print(f"{name}: {100 * accuracies[name]:.1f} % of the sentences of dev.tsv after {STEPS} steps", flush=True)
    return 0 if min(accuracies.values()) > 0.57 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
