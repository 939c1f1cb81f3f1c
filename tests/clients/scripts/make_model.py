import io
import tarfile

weights = b'{"scale": 2}'
for name in ("model.tar.gz", "with-code.tar.gz"):
    with tarfile.open(name, "w:gz") as archive:
        member = tarfile.TarInfo("weights.json")
        member.size = len(weights)
        archive.addfile(member, io.BytesIO(weights))
        if name == "with-code.tar.gz":
            archive.add("code", "code")
