"""The same training without torchrun: the script starts a process a core itself.

The cores' number comes from NEURONCORE_NUM_DEVICES.
"""

import sys

import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from mlp_torchrun import main, parser


def _mp_fn(index, arguments):
    assert index == xr.global_ordinal()
    main(arguments)


if __name__ == "__main__":
    xmp.spawn(_mp_fn, args=(parser.parse_args(sys.argv[1:]),), start_method="fork")
