"""What a container finds in /opt/ml/model."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.objects import FakeObjects
from windtunnel_local.service.hosting.model_files import provide_model


def test_a_model_of_many_objects_is_there_whole(tmp_path: Path) -> None:
    """Also behind the thousand that one page of a list has."""
    objects = FakeObjects(tmp_path / "objects", "models")
    for number in range(1003):
        objects.put_text("models", f"llama/parts/{number}.bin", "w")
    source = {"S3Uri": "s3://models/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    target = tmp_path / "model"
    target.mkdir()
    provide_model({"ModelDataSource": {"S3DataSource": source}}, target, objects, lambda: None)
    assert len(list((target / "parts").iterdir())) == 1003
