"""The process that holds a model and runs the user's handlers, one request at a time: `worker.py SOCKET`.

AWS's own package calls the handlers. Only the server starts this.
"""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import sys
import traceback
from typing import Any

from neuron_sim import settings
from neuron_sim.serving import frames
from neuron_sim.serving.context import Context


def main() -> int:
    """Load the model, tell the server so, and answer requests until the server is gone."""
    os.set_inheritable(int(sys.argv[1]), False)
    stream = socket.socket(fileno=int(sys.argv[1])).makefile("rwb")
    serving = settings.serving()
    # As TorchServe's workers log: a handler's messages stand in the log as they are.
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=serving.log_level)
    context = Context(serving.model_dir)
    try:
        service = _loaded(context)
    except BaseException:  # noqa: BLE001 - also sys.exit() in a handler is the reason why there is no model
        frames.send(stream, frames.Head(status=500), _explained(traceback.format_exc()).encode())
        return 1
    frames.send(stream, frames.Head(), b"")
    while (request := frames.receive(stream)) is not None:
        head, body = request
        frames.send(stream, *_answer(service, context, head.headers, body))
    return 0


def _loaded(context: Context) -> Any:
    """AWS's handler service, which has loaded the model by model_fn."""
    from sagemaker_pytorch_serving_container.handler_service import HandlerService  # type: ignore[import-not-found]

    service = HandlerService()
    service.initialize(context)
    return service


def _explained(error: str) -> str:
    """A traceback, after advice about packages whose absence it reports."""
    from neuron_sim.launcher.missing import advice

    return "\n".join([*advice(error), error])


def _answer(
    service: Any, context: Context, headers: dict[str, str], body: bytearray
) -> tuple[frames.Head, frames.Body]:
    """The handlers' answer to a request. The toolkit makes an answer of an exception that they raise."""
    request = context.begin(headers)
    result = service.handle([{"body": body}], context)[0]
    try:
        encoded = _encoded(result)
    except TypeError:
        logging.exception("The handlers returned what is no text, bytes, tensor or JSON.")
        return frames.failure(503, "Unsupported model output data type.")
    named = {name: str(value) for name, value in request.get_response_headers().items()}
    return frames.Head(named, request.get_response_status_code()), encoded


def _encoded(result: object) -> frames.Body:
    """A handler's result as bytes, encoded as by TorchServe (pytorch/serve, ts/protocol/otf_message_handler.py)."""
    import torch

    if isinstance(result, bytes | bytearray):
        return result
    if isinstance(result, str):
        return result.encode()
    if isinstance(result, torch.Tensor):
        saved = io.BytesIO()
        torch.save(result, saved)
        return saved.getvalue()
    return json.dumps(result, indent=2).encode()


if __name__ == "__main__":
    sys.exit(main())
