"""P1's text classifier in ordinary PyTorch: padded batches, a mask, softmax, BCELoss. encoder_twin.py FOLDER CASE..."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import compare


class LayerNorm(nn.Module):
    """Without a bias (nn.LayerNorm has had the option since version 2.1)."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.attention_dropout = nn.Dropout(dropout)
        self.residual_dropout = nn.Dropout(dropout)

    def forward(self, x, visible):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.query_key_value(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~visible[:, None, None, :], float("-inf"))
        mixed = self.attention_dropout(F.softmax(scores, dim=-1)) @ v
        return self.residual_dropout(self.output(mixed.transpose(1, 2).reshape(batch, length, width)))


class MLP(nn.Module):
    def __init__(self, width, hidden, dropout):
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(F.gelu(self.up(x))))


class Block(nn.Module):
    def __init__(self, width, heads, hidden, dropout):
        super().__init__()
        self.attention = SelfAttention(width, heads, dropout)
        self.attention_norm = LayerNorm(width)
        self.mlp = MLP(width, hidden, dropout)
        self.mlp_norm = LayerNorm(width)

    def forward(self, x, visible):
        x = self.attention_norm(x + self.attention(x, visible))
        return self.mlp_norm(x + self.mlp(x))


class Encoder(nn.Module):
    def __init__(self, vocabulary, length, width, blocks, heads, hidden, dropout):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, dropout) for _ in range(blocks))
        self.head = nn.Linear(width, 1, bias=False)

    def forward(self, ids, mask):
        visible = mask.clone()
        visible[:, 0] = True  # the first column always is
        x = self.token_embedding(ids) + self.position_embedding(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, visible)
        return self.head(x[:, 0])


def build(options, weights):
    sizes = {key: int(options[key]) for key in ("vocabulary", "length", "width", "blocks", "heads", "hidden")}
    model = Encoder(dropout=float(options["dropout"]), **sizes).eval()
    parameters = {
        "token_embedding": model.token_embedding.weight,
        "position_embedding": model.position_embedding.weight,
        "head": model.head.weight,
    }
    for i, block in enumerate(model.blocks):
        parameters[f"block{i}_query_key_value"] = block.attention.query_key_value.weight
        parameters[f"block{i}_output"] = block.attention.output.weight
        parameters[f"block{i}_attention_norm"] = block.attention_norm.weight
        parameters[f"block{i}_up"] = block.mlp.up.weight
        parameters[f"block{i}_down"] = block.mlp.down.weight
        parameters[f"block{i}_mlp_norm"] = block.mlp_norm.weight
    assert set(parameters) == set(weights) and len(parameters) == len(list(model.parameters()))
    with torch.no_grad():
        for name, parameter in parameters.items():
            assert parameter.shape == weights[name].shape, name
            parameter.copy_(weights[name])
    return model, parameters


def run(model, batch):
    offsets = batch["offsets"].tolist()
    texts = [batch["tokens"][begin:end] for begin, end in zip(offsets, offsets[1:])]
    ids = nn.utils.rnn.pad_sequence(texts, batch_first=True)
    mask = torch.arange(ids.shape[1])[None, :] < torch.tensor([len(text) for text in texts])[:, None]
    logits = model(ids, mask)
    loss = nn.BCELoss(reduction="sum")(torch.sigmoid(logits).squeeze(1), batch["labels"].float())
    return loss, logits


if __name__ == "__main__":
    compare.main(build, run)
