"""How a worker tells the test what it saw: one JSON line in a file of its own."""

import json
import os


def say(**fields):
    rank = int(os.environ.get("RANK", 0))
    with open(f"{os.environ['SAY_TO']}.{rank}", "a") as file:
        file.write("SAY " + json.dumps({"rank": rank, **fields}) + "\n")
