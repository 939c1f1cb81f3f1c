"""One forward and backward pass of each model, counted by torch's FlopCounterMode and then run on a core.

The models are as published but for their size: two layers, of a quarter of the width, and a small vocabulary.
"""

import os

import torch
import torch_xla
import transformers
from saying import say
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

BATCH, SEQUENCE, LAYERS, VOCABULARY = 2, 128, 2, 4000
HIDDEN, HEADS, FEED_FORWARD = 192, 3, 768


def tokens():
    return torch.randint(0, VOCABULARY, (BATCH, SEQUENCE))


def bert(attention):
    # With a token for padding it looks for that among the tokens, which have no values where shapes alone are counted.
    config = transformers.BertConfig(
        VOCABULARY,
        HIDDEN,
        LAYERS,
        HEADS,
        FEED_FORWARD,
        attn_implementation=attention,
        pad_token_id=None,
    )
    batch = {"input_ids": tokens(), "labels": torch.randint(0, 2, (BATCH,))}
    return transformers.BertForSequenceClassification(config), batch


def gpt2(attention):
    config = transformers.GPT2Config(
        VOCABULARY, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, attn_implementation=attention
    )
    ids = tokens()
    return transformers.GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}


def llama(attention):
    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=VOCABULARY,
        attn_implementation=attention,
    )
    ids = tokens()
    return transformers.LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}


def vit(attention):
    config = transformers.ViTConfig(HIDDEN, LAYERS, HEADS, FEED_FORWARD, attn_implementation=attention)
    batch = {"pixel_values": torch.randn(BATCH, 3, 224, 224), "labels": torch.randint(0, 2, (BATCH,))}
    return transformers.ViTForImageClassification(config), batch


class Convolutions(torch.nn.Module):
    """A stem, strides, a residual block, a dilated one, a transposed one: a small ResNet and then some."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.down = nn.Conv2d(32, 64, 3, 2, 1)
        self.block = nn.Sequential(
            nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 1)
        )
        self.dilated = nn.Conv2d(64, 128, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(128, 64, 2, 2)
        self.head = nn.Linear(64, 10)

    def forward(self, images, labels):
        x = self.down(self.stem(images))
        x = self.up(self.dilated(x + self.block(x)))
        return (torch.nn.functional.cross_entropy(self.head(x.mean((2, 3))), labels),)


def convolutions(attention):
    batch = {"images": torch.randn(BATCH, 3, 64, 64), "labels": torch.randint(0, 10, (BATCH,))}
    return Convolutions(), batch


def lines():
    with open(os.path.join(os.environ["WINDTUNNEL_COUNTERS_DIR"], "rank-0.jsonl")) as file:
        return sum(1 for _ in file)


device = torch_xla.device()
torch.manual_seed(0)
for build in (bert, gpt2, llama, vit, convolutions):
    # By shapes alone, and attention's plain formula: a fused one FlopCounterMode does not know.
    with FakeTensorMode():
        model, batch = build("eager")
        with FlopCounterMode(display=False) as counter:
            model(**batch)[0].backward()
    for attention in ("eager", "sdpa") if build is not convolutions else ("none",):
        model, batch = build(attention)
        model.train().to(device)
        batch = {name: value.to(device) for name, value in batch.items()}
        torch_xla.sync()
        before = lines()
        model(**batch)[0].backward()
        torch_xla.sync()
        say(
            model=build.__name__,
            attention=attention,
            flop_counter=counter.get_total_flops(),
            records=[before, lines()],
        )
        del model, batch
        torch_xla.sync()
