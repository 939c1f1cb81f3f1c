#!/usr/bin/env bash
# Runs all checks: style, types, the simulator's tests in the image, and all other tests.
# The steps run at the same time, because they spend much of it waiting. Their outputs are shown whole, one after the
# other. A failed step does not stop the others. pytest's own summary comes last.
#
# usage: scripts/test.sh [PYTEST ARGUMENT]...    (for the tests outside of the image)
set -uom pipefail # -m: each step is a process group, which can be ended as a whole
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$ROOT" || exit 1
BIN="$VENV/bin"
WORKERS=$(($(nproc) + 1)) # one more than processors, since some wait for containers; still more would slow the others
OUTPUT="$(mktemp -d)"
TITLES=()
PIDS=()
FAILED=()
# The tests start hundreds of processes; with this variable set, each would compile our sources again.
unset PYTHONDONTWRITEBYTECODE
# mypy's cache is valid for other checkouts too: 1 s instead of 24.
export MYPY_CACHE_DIR="${MYPY_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/windtunnel/mypy}"
# However this script ends, end all steps.
trap 'kill -INT -- "${PIDS[@]/#/-}" 2>/dev/null; wait; rm -rf "$OUTPUT"' EXIT

# start TITLE COMMAND...: start a step in the background.
start() {
    TITLES+=("$1")
    shift
    "$@" >"$OUTPUT/${#PIDS[@]}" 2>&1 </dev/null &
    PIDS+=("$!")
}

# step TITLE COMMAND...: start a step that prints how long it took.
step() {
    start "$1" timed "$@"
}

# show NUMBER: print a step's output from its beginning, until the step has ended.
show() {
    tail --lines=+1 --follow --sleep-interval=0.1 --pid="${PIDS[$1]}" "$OUTPUT/$1"
    wait "${PIDS[$1]}" || FAILED+=("${TITLES[$1]}")
    unset "PIDS[$1]"
}

container_tests() {
    local image
    image="$("$BIN/python" scripts/build_image.py test)" || return
    "$ROOT/scripts/in_image.sh" "$image" pytest -p no:cacheprovider tests/container
}

step "ruff check" "$BIN/ruff" check .
step "ruff format" "$BIN/ruff" format --check .
step "mypy" "$BIN/mypy"
step "tests in the image" container_tests
start "pytest" "$BIN/pytest" --ignore tests/container --ignore tests/benchmarks \
    --numprocesses "$WORKERS" --dist loadfile --no-loadscope-reorder "$@"

for number in 0 1 2 3; do show "$number"; done
if [ ${#FAILED[@]} -gt 0 ]; then
    say "failed so far: $(printf '%s; ' "${FAILED[@]}")"
fi
say "pytest: all other tests"
show 4
[ ${#FAILED[@]} -eq 0 ]
