"""Where a script's models go: what SageMaker keeps only what."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import script
from windtunnel.porting.program import read

_LOOP = "import torch, os, argparse\nfor batch in loader:\n    model(batch.cuda()).sum().backward()\n"


def _lost(text: str) -> list[str]:
    return [str(one) for one in read(script(_LOOP + text)) if "SageMaker keeps only what" in one.text]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('torch.save(model.state_dict(), "model.pt")\n', 4),
        ('torch.save(model.state_dict(), f"out/{epoch}.pt")\n', 4),
        ('path = "out"\ntorch.save({"m": model.state_dict()}, os.path.join(path, "model.pt"))\n', 5),
        ('model.save_pretrained("out/" + name)\n', 4),
        ('def save(state, path="last.pt"):\n    torch.save(state, path)\nsave(m.state_dict())\n', 5),
        (
            'def save(state, path):\n    torch.save(state, path + ".pt")\nsave(m.state_dict(), path="last")\n',
            5,
        ),
        ('with open("model.pt", "wb") as f:\n    torch.save(model.state_dict(), f)\n', 4),
        ('file = open(f"out/{epoch}.pt", "wb")\ntorch.save(model.state_dict(), file)\n', 4),
        ('with Path("out").joinpath("m.pt").open("wb") as f:\n    torch.save(model.state_dict(), f)\n', 4),
        ('import pickle\nwith open("m.pkl", "wb") as f:\n    pickle.dump(model.state_dict(), f)\n', 5),
        ('import pickle\nnet.parameters()\npickle.dump(net, open("m.pkl", "wb"))\n', 6),
        (
            'class A:\n    def save(self, path):\n        torch.save(m.state_dict(), path)\nA().save("m.pt")\n',
            6,
        ),
        ('net.parameters()\ntorch.save(net.module.cpu(), "m.pt")\n', 5),
        ('import gzip\nwith gzip.open("m.gz") as f:\n    torch.save({"m": model.state_dict()}, f)\n', 5),
    ],
)
def test_a_model_that_is_lost_is_noted(text: str, line: int) -> None:
    """With its container, as no path is of SageMaker's: a job of hours that left nothing."""
    (found,) = _lost(text)
    assert found.startswith(f"{line}: note: the model goes to ")
    assert len(_lost(text + text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        'torch.save(model.state_dict(), os.environ["SM_MODEL_DIR"] + "/model.pt")\n',
        'torch.save(model.state_dict(), os.path.join(args.out, "model.pt"))\n',
        'torch.save(model.state_dict(), "/opt/ml/model/model.pt")\n',
        'torch.save(model.state_dict(), "last.pt")\ntorch.save(model.state_dict(), args.save)\n',
        'torch.save(losses, "losses.pt")\n',
        'torch.save(model.state_dict(), "%s/model.pt" % args.out)\n',
        'torch.save(model.state_dict(), "{}/model.pt".format(args.out))\n',
        'torch.save(model.state_dict(), "model.pt")\nbucket.upload_file("model.pt", key)\n',
        "def save(state, path):\n    torch.save(state, path)\nsave(m.state_dict(), args.path)\n",
        "def save(state, path):\n    torch.save(state, path)\n",
        'with open(args.out, "wb") as f:\n    torch.save(model.state_dict(), f)\n',
        "with io.BytesIO() as f:\n    torch.save(model.state_dict(), f)\n",
        'with storage.open("out/model.pt", "wb") as f:\n    torch.save(model.state_dict(), f)\n',
        'with open(made(), "wb") as f:\n    torch.save(model.state_dict(), f)\n',
        'import pickle\npickle.dump(vocabulary, open("vocabulary.pkl", "wb"))\n',
        'import pickle\ndef dump(x, f):\n    pickle.dump(x, f)\ndump(words, open("words.pkl", "wb"))\n',
        'from smart_open import open\nwith open("s3://b/m.pt", "wb") as f:\n    torch.save(m.state_dict(), f)\n',
        'out = "out"\nexec(open("configurator.py").read())\ntorch.save(model.state_dict(), out)\n',
    ],
)
def test_a_model_that_is_or_may_be_kept(text: str) -> None:
    """By what SageMaker says, an argument, or what the text does not tell; of results nothing is said."""
    assert _lost(text) == []
