"""Fits a plane by descent with momentum, with a checkpoint after each epoch; goes on from the last one.

Of --attempts, each but the last trains its share of the epochs and then waits for its interruption.
"""

import argparse
import json
import os
import random
import time

EPOCHS = 40
CHECKPOINT = "/opt/ml/checkpoints/last.json"

parser = argparse.ArgumentParser()
parser.add_argument("--attempts", type=int)
attempts = parser.parse_args().attempts

weights, momentum = [0.0] * 8, [0.0] * 8
first, attempt = 0, 1
if os.path.exists(CHECKPOINT):
    with open(CHECKPOINT) as file:
        state = json.load(file)
    weights, momentum = state["weights"], state["momentum"]
    first, attempt = state["epoch"] + 1, state["attempt"] + 1
print(f"goes on from epoch {first}", flush=True)

for epoch in range(first, EPOCHS):
    while epoch >= EPOCHS * attempt // attempts:
        time.sleep(0.25)
    chance = random.Random(epoch)
    for _ in range(4):
        inputs = [chance.gauss(0, 1) for _ in weights]
        error = sum(w * x for w, x in zip(weights, inputs)) - sum(inputs)
        momentum = [0.9 * m + 0.1 * error * x for m, x in zip(momentum, inputs)]
        weights = [w - 0.05 * m for w, m in zip(weights, momentum)]
    with open(f"{CHECKPOINT}.new", "w") as file:
        json.dump({"epoch": epoch, "attempt": attempt, "weights": weights, "momentum": momentum}, file)
    os.replace(f"{CHECKPOINT}.new", CHECKPOINT)  # a reader finds the old one or the new one, whole
    print(f"epoch {epoch} error {error:.6f}", flush=True)
    time.sleep(0.25)

with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.json"), "w") as file:
    json.dump(weights, file)
