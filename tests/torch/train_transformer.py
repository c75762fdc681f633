#!/usr/bin/env python3
"""train_transformer.py SST2-FOLDER VOCABULARY [STEPS]: trains a small BERT of Hugging Face's transformers, from random weights,
on sentences of SST-2: with torch.optim.AdamW and with one line changed, in a loop of one's own and by transformers' Trainer.
Exits with 0 if the changed ones learn, too, and if a training that Trainer resumes from a checkpoint ends with the same weights.

BERT's weights start with a deviation of 0.02, which is meant for a width of 768. At the width of 64 used here all plain gradient
steps, p = 2 (SGD) included, stay at chance with it for thousands of steps; 0.1 is the deviation that fits."""

import pathlib
import sys
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, Trainer, TrainingArguments

import attmirror.torch

OPTIMIZERS = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=5e-4),
    "MirrorDescent": lambda parameters: attmirror.torch.MirrorDescent(parameters, lr=0.15, p=1.1),
    "SteepestDescent": lambda parameters: attmirror.torch.SteepestDescent(parameters, lr=5e-4, norm="sign", momentum=0.9),
}
BATCH = 32
CHANCE = 0.57  # what nobody reaches who has learned nothing


class Sentences(torch.utils.data.Dataset):
    def __init__(self, path, count, tokenizer):
        lines = [line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8")][:count]
        texts = [line[0] for line in lines]
        self.tokens = tokenizer(texts, padding="max_length", truncation=True, max_length=32, return_tensors="pt")
        self.labels = torch.tensor([int(line[1]) for line in lines])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, rows):
        return {**{key: value[rows] for key, value in self.tokens.items()}, "labels": self.labels[rows]}


def new_model(words):
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(
        vocab_size=words, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, num_labels=2, initializer_range=0.1,
    ))  # fmt: skip


def train_by_loop(model, sentences, make, steps):
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        loss = model(**sentences[step * BATCH : (step + 1) * BATCH]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()


def make_trainer(model, sentences, make, steps, folder, save_steps=None):
    arguments = TrainingArguments(
        output_dir=folder, max_steps=steps, per_device_train_batch_size=BATCH, lr_scheduler_type="cosine", report_to="none",
        disable_tqdm=True, logging_strategy="no", save_strategy="steps" if save_steps else "no", save_steps=save_steps or 500,
        use_cpu=True, seed=0,
    )  # fmt: skip
    # The changed line: without `optimizers` it is AdamW.
    return Trainer(model, arguments, train_dataset=sentences, optimizers=(make(model.parameters()), None))


def accuracy(model, sentences):
    model.eval()
    with torch.no_grad():
        return float((model(**sentences[:]).logits.argmax(1) == sentences.labels).float().mean())


def resumes_with_the_same_weights(words, sentences, folder):
    def make(parameters):
        return attmirror.torch.MirrorDescent(parameters, lr=0.01, p=1.1, momentum=0.9, dual_state=True)

    whole, resumed = new_model(words), new_model(words)
    make_trainer(whole, sentences, make, 20, folder, save_steps=10).train()
    checkpoint = str(pathlib.Path(folder) / "checkpoint-10")
    make_trainer(resumed, sentences, make, 20, folder).train(resume_from_checkpoint=checkpoint)
    return all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters()))


def main(folder, vocabulary, steps=2000):
    steps = int(steps)
    tokenizer = BertTokenizer(vocabulary)
    words = tokenizer.vocab_size
    sentences = Sentences(f"{folder}/train.tsv", steps * BATCH, tokenizer)
    dev = Sentences(f"{folder}/dev.tsv", 872, tokenizer)
    accuracies = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, how in [*((name, "a loop") for name in OPTIMIZERS), ("MirrorDescent", "Trainer")]:
            model = new_model(words)
            if how == "a loop":
                train_by_loop(model, sentences, OPTIMIZERS[name], steps)
            else:
                make_trainer(model, sentences, OPTIMIZERS[name], steps, scratch).train()
            accuracies[name, how] = accuracy(model, dev)
            share = 100 * accuracies[name, how]
            print(f"{name}, by {how}: {share:.1f} % of the sentences of dev.tsv after {steps} steps", flush=True)
        resumes = resumes_with_the_same_weights(words, sentences, scratch)
    print(f"a training resumed by Trainer has {'the same' if resumes else 'OTHER'} weights")
    return 0 if resumes and min(accuracies.values()) > CHANCE else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
