"""What loggers are given in each step: a tensor of the device is read, whoever writes it down."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, STEP, said


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("writer.add_scalar('loss', loss, step)", "writer.add_scalar('loss', loss, step)"),
        ("if rank == 0: writer.add_scalar(tag='loss', scalar_value=loss)", "writer.add_scalar("),
        ("writer.add_scalars('losses', {'train': loss}, step)", "writer.add_scalars("),
        ("writer.add_histogram('out', out, step)", "writer.add_histogram("),
        ("import wandb; wandb.log({'loss': loss}, step=step)", "wandb.log({'loss': loss}, step=step)"),
        ("import mlflow; mlflow.log_metric('loss', loss)", "mlflow.log_metric('loss', loss)"),
        ("import mlflow; mlflow.log_metrics({'loss': loss.detach()})", "mlflow.log_metrics("),
        ("bar.set_postfix({'loss': loss})", "bar.set_postfix("),
        ("wandb.log(\n        {\n            'loss': loss,\n        }\n    )", "wandb.log(...) in each step"),
    ],
)
def test_a_value_that_a_logger_is_given_in_each_step(given: str, shown: str) -> None:
    """It calls .item() or .cpu() on it; nothing was said unless the script did."""
    text = HEAD + STEP + f"    {given}\n    xm.optimizer_step(optimizer)\n"
    (remark,) = said(text)
    assert "host_read: " in remark and shown in remark and "\n" not in remark


@pytest.mark.parametrize(
    "given",
    [
        "xm.add_step_closure(lambda value: writer.add_scalar('loss', value, step), args=(loss,))",
        "xm.add_step_closure(writer.add_scalar, args=('loss', loss, step))",
        "writer.add_scalar('lr', optimizer.param_groups[0]['lr'], step)",
        "meter.log({'loss': loss})",
        "import wandb; wandb.log({'epoch': epoch})",
    ],
)
def test_what_a_logger_is_given_less_often_or_of_the_host(given: str) -> None:
    """Or something that is no logger, as far as the text tells."""
    assert said(HEAD + STEP + f"    {given}\n    xm.optimizer_step(optimizer)\n") == []
