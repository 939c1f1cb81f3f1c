#!/usr/bin/env bash
# Everything that must hold: style, types, the simulator's tests in the image, and all others.
# Every step runs, whatever became of those before; pytest's own summary comes last.
set -uo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$ROOT" || exit 1
BIN="$VENV/bin"
FAILED=()

step() {
    timed "$@" || FAILED+=("$1")
}

container_tests() {
    local image
    image="$("$BIN/python" scripts/build_test_image.py)" || return
    "$ROOT/scripts/in_image.sh" "$image" pytest -p no:cacheprovider tests/container
}

step "ruff check" "$BIN/ruff" check .
step "ruff format" "$BIN/ruff" format --check .
step "mypy" "$BIN/mypy"
step "tests in the image" container_tests

if [ ${#FAILED[@]} -gt 0 ]; then
    say "failed so far: $(printf '%s; ' "${FAILED[@]}")"
fi
say "pytest: all other tests"
"$BIN/pytest" --ignore tests/container --ignore tests/benchmarks "$@" || FAILED+=("pytest")
[ ${#FAILED[@]} -eq 0 ]
