"""P1's image classifier in ordinary PyTorch: unfolded patches, softmax, cross-entropy. vit_twin.py FOLDER CASE..."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import compare


class Attention(nn.Module):
    def __init__(self, width, heads, head_width, dropout):
        super().__init__()
        self.heads, self.head_width = heads, head_width
        self.query_key_value = nn.Linear(width, 3 * heads * head_width, bias=False)
        self.output = nn.Linear(heads * head_width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, self.head_width).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, dim=-1)
        )
        probabilities = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.head_width), dim=-1)
        return self.dropout(self.output((probabilities @ v).transpose(1, 2).reshape(batch, length, -1)))


class Block(nn.Module):
    def __init__(self, width, heads, head_width, hidden, dropout):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads, head_width, dropout)
        self.mlp_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.mlp = nn.Sequential(self.up, nn.GELU(), nn.Dropout(dropout), self.down, nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class VisionTransformer(nn.Module):
    def __init__(self, image, patch, channels, classes, width, blocks, heads, head_width, hidden, dropout):
        super().__init__()
        self.patch = patch
        self.patch_embedding = nn.Linear(channels * patch * patch, width)
        self.class_token = nn.Parameter(torch.randn(1, 1, width))
        self.position_embedding = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, head_width, hidden, dropout) for _ in range(blocks))
        self.head_norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        # unfold gives the numbers of a patch channel by channel, row by row, and the patches line by line.
        patches = F.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(images), -1, -1), self.patch_embedding(patches)], dim=1)
        x = self.dropout(x + self.position_embedding)
        for block in self.blocks:
            x = block(x)
        return self.head(self.head_norm(x[:, 0]))


def build(options, weights):
    names = ("image", "patch", "channels", "classes", "width", "blocks", "heads", "head_width", "hidden")
    model = VisionTransformer(dropout=float(options["dropout"]), **{key: int(options[key]) for key in names}).eval()
    parameters = {"class_token": model.class_token, "position_embedding": model.position_embedding}

    def add(name, module):
        parameters[name] = module.weight
        if module.bias is not None:
            parameters[name + "_bias"] = module.bias

    add("patch_embedding", model.patch_embedding)
    for i, block in enumerate(model.blocks):
        add(f"block{i}_attention_norm", block.attention_norm)
        add(f"block{i}_query_key_value", block.attention.query_key_value)
        add(f"block{i}_output", block.attention.output)
        add(f"block{i}_mlp_norm", block.mlp_norm)
        add(f"block{i}_up", block.up)
        add(f"block{i}_down", block.down)
    add("head_norm", model.head_norm)
    add("head", model.head)
    assert set(parameters) == set(weights) and len(parameters) == len(list(model.parameters()))
    with torch.no_grad():
        for name, parameter in parameters.items():
            assert parameter.numel() == weights[name].numel(), name
            parameter.copy_(weights[name].reshape(parameter.shape))
    return model, parameters


def run(model, batch):
    logits = model(batch["images"])
    return nn.CrossEntropyLoss(reduction="sum")(logits, batch["labels"]), logits


if __name__ == "__main__":
    compare.main(build, run)
