"""The FLOPs read from HLO are those that a pencil and torch's own FlopCounterMode find, within 1 %.

`pytest -s` prints the table of docs/reference/counters.md.
"""

from __future__ import annotations

from conftest import records

BATCH, SEQUENCE, LAYERS, VOCABULARY = 2, 128, 2, 4000
HIDDEN, FEED_FORWARD = 192, 768
"""As in scripts/flops.py, where the models' other dimensions come from, too."""


def layer(tokens, sequence, hidden, feed_forward, key_value=None, matrices=2):
    """Forward FLOPs of a transformer's layer: projections, scores and their use, feed-forward."""
    projections = 2 * tokens * hidden * (2 * hidden + 2 * (key_value or hidden))
    attention = 2 * 2 * tokens * sequence * hidden
    return projections + attention + 2 * tokens * hidden * feed_forward * matrices


def bert():
    """Pooler and classifier see one token of each sample. Backward costs twice what forward does."""
    tokens = BATCH * SEQUENCE
    top = 2 * BATCH * HIDDEN * HIDDEN + 2 * BATCH * HIDDEN * 2
    return 3 * (LAYERS * layer(tokens, SEQUENCE, HIDDEN, FEED_FORWARD) + top)


def gpt2():
    """The head over the vocabulary is a product too."""
    tokens = BATCH * SEQUENCE
    return 3 * (LAYERS * layer(tokens, SEQUENCE, HIDDEN, FEED_FORWARD) + 2 * tokens * HIDDEN * VOCABULARY)


def llama():
    """Two of eight heads for keys and values; three matrices in a gated feed-forward layer."""
    tokens = BATCH * SEQUENCE
    stack = LAYERS * layer(tokens, SEQUENCE, 256, 704, key_value=64, matrices=3)
    return 3 * (stack + 2 * tokens * 256 * VOCABULARY)


def vit():
    """14 x 14 patches and a class token. Nobody needs the gradient of the images."""
    tokens = BATCH * 197
    patches = 2 * BATCH * 196 * (3 * 16 * 16) * HIDDEN
    return 2 * patches + 3 * (LAYERS * layer(tokens, 197, HIDDEN, FEED_FORWARD) + 2 * BATCH * HIDDEN * 2)


def convolutions():
    """Output positions, kernel, input and output features; of a transposed one its input positions."""

    def conv(side, kernel, inputs, outputs):
        return 2 * BATCH * side * side * kernel * kernel * inputs * outputs

    inner = conv(16, 3, 32, 64) + conv(16, 3, 64, 64) + conv(16, 1, 64, 64)
    inner += conv(16, 3, 64, 128) + conv(16, 2, 128, 64) + 2 * BATCH * 64 * 10
    return 2 * conv(32, 7, 3, 32) + 3 * inner


ANALYTIC = {function.__name__: function for function in (bert, gpt2, llama, vit, convolutions)}


def test_flops_are_within_a_percent_of_the_analytic_count_and_of_flop_counter_mode(torchrun, tmp_path):
    """Forward and backward pass of five architectures; attention as written out, and torch's own."""
    said = torchrun("flops.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path), HF_HUB_OFFLINE="1").said
    written = records(tmp_path)
    graphs = {record["graph"]: record for record in written if record["kind"] == "graph"}
    print("\n| model | attention | HLO | analytic | | FlopCounterMode | |\n|---|---|---|---|---|---|---|")
    seen = set()
    for entry in said:
        begin, end = entry["records"]
        counted = products = 0
        for step in (record for record in written[begin:end] if record["kind"] == "step"):
            for name, runs in step["graphs"].items():
                graph = graphs[name]
                counted += runs * sum(graph["flops"].values())
                products += runs * sum(
                    2 * b * r * i * c * n for b, r, i, c, _, n in graph["work"]["products"]
                )
        assert products == counted
        analytic, torch_s = ANALYTIC[entry["model"]](), entry["flop_counter"]
        off, off_torch = counted / analytic - 1, counted / torch_s - 1
        print(
            f"| {entry['model']} | {entry['attention']} | {counted / 1e9:.4f} | {analytic / 1e9:.4f} | "
            f"{off:+.3%} | {torch_s / 1e9:.4f} | {off_torch:+.3%} |"
        )
        seen.add((entry["model"], abs(off) < 0.01, abs(off_torch) < 0.01))
    assert seen == {(name, True, True) for name in ANALYTIC}
