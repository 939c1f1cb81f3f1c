#!/usr/bin/env bash
# Sets up a machine: Python environment, Docker engine, training image; for tests and benchmarks also Slurm, the image
# of a cluster's nodes and a browser.
# Parts that are in order are not touched, so a second run takes a second.
#
# usage: scripts/setup.sh [venv | engine | image | slurm | cluster | browser]...    (no argument: the first three)
#
# PYTHON=...  the interpreter of the environment (python3; 3.10 or newer)
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PYTHON="${PYTHON:-python3}"
ENGINE_WAIT_S=60

venv() {
    local wanted
    wanted="$("$PYTHON" -VV; sha256sum "$ROOT/pyproject.toml")"
    if [ -x "$VENV/bin/windtunnel" ] && [ "$(cat "$VENV/.stamp" 2>/dev/null)" = "$wanted" ]; then
        say "Python environment: up to date"
        return
    fi
    timed "Python environment in .venv" make_venv
    printf '%s\n' "$wanted" >"$VENV/.stamp"
}

make_venv() {
    have "$PYTHON" || fail "$PYTHON is missing; install Python 3.10 or newer, or name one: make ... PYTHON=python3.11"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "$("$PYTHON" -V) is too old; name a Python 3.10 or newer: make ... PYTHON=python3.11"
    # Debian's Python has venv without ensurepip, which it needs.
    "$PYTHON" -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
    if ! is_own_venv; then
        # An environment at another place may belong to something else, so it is not replaced.
        if [ -L "$VENV" ] || { [ "$VENV" != "$ROOT/.venv" ] && [ -e "$VENV" ]; }; then
            fail "$VENV is no environment that $PYTHON has made there; remove it"
        fi
        "$PYTHON" -m venv --clear "$VENV" || return
    fi
    PATH="$PATH:$VENV/bin" command -v uv >/dev/null ||
        "$VENV/bin/pip" install --quiet --disable-pip-version-check uv
    install_into "$VENV" --editable "${ROOT}[dev]"
}

# Whether $VENV was made by this Python and at its present place: the programs of a copied or moved environment start
# the Python of the old place.
is_own_venv() {
    [ "$("$VENV/bin/python" -VV 2>/dev/null)" = "$("$PYTHON" -VV)" ] &&
        [[ "$("$VENV/bin/pip" --version 2>/dev/null)" == *" from $VENV/"* ]]
}

needs_venv() {
    [ -x "$VENV/bin/python" ] || fail "there is no Python environment in $VENV; run: scripts/setup.sh venv"
}

engine_answers() {
    "$VENV/bin/python" - <<'PYTHON' 2>/dev/null
import docker
client = docker.from_env(timeout=10)
client.ping()
client.close()
PYTHON
}

engine() {
    needs_venv
    if engine_answers; then
        say "Docker engine: answers"
        return
    fi
    [ -z "${DOCKER_HOST:-}" ] ||
        fail "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST; start it, or unset DOCKER_HOST"
    timed "Docker engine" start_engine
}

start_engine() {
    # The engine may run, but without access for this user.
    [ "$(id -u)" -eq 0 ] || fail "$("$VENV/bin/windtunnel" image status 2>&1)"
    if ! have dockerd; then
        say "installing docker.io and mmdebstrap"
        apt_install ca-certificates docker.io mmdebstrap
    fi
    have docker || apt_install docker-cli # a separate package since Debian 13
    if [ -d /run/systemd/system ]; then
        systemctl start docker || fail "the Docker engine does not start; see journalctl -u docker"
    elif is_running dockerd /var/run/docker.pid; then
        # Not started again: two engines in one network namespace remove each other's bridge.
        say "dockerd runs but does not answer yet; waiting for it"
    else
        start_dockerd
    fi
    local deadline=$((SECONDS + ENGINE_WAIT_S))
    until engine_answers; do
        [ "$SECONDS" -lt "$deadline" ] ||
            fail "the Docker engine does not answer after $ENGINE_WAIT_S s; see ${DOCKERD_LOG:-journalctl -u docker}"
        sleep 0.5
    done
}

# is_running NAME PIDFILE: whether the process with the number in the file is alive and has that name.
is_running() {
    local pid
    pid="$(cat "$2" 2>/dev/null)" || return 1
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]
}

# Start dockerd on a machine without systemd: in a session of its own, so that it outlives make. With --live-restore,
# jobs outlive dockerd.
start_dockerd() {
    # A killed engine leaves its pid files. If another process has such a number now, a new engine would not start.
    rm -f /var/run/docker.pid
    local containerd=/var/run/docker/containerd/containerd.pid
    is_running containerd "$containerd" || rm -f "$containerd"
    DOCKERD_LOG=/var/log/dockerd.log
    : >>"$DOCKERD_LOG" 2>/dev/null || DOCKERD_LOG="$HOME/dockerd.log"
    say "starting dockerd, log in $DOCKERD_LOG"
    setsid --fork dockerd --live-restore </dev/null >>"$DOCKERD_LOG" 2>&1
}

image() {
    needs_venv
    timed "Training image" "$VENV/bin/windtunnel" image build
}

# Debian starts the daemons when they are installed; without a configuration they end at once.
slurm() {
    if have slurmctld slurmd munged sbatch; then
        say "Slurm: installed"
    else
        timed "Slurm" apt_install slurmctld slurmd slurm-client munge
    fi
}

cluster() {
    needs_venv
    timed "Image of a cluster's nodes" "$VENV/bin/python" "$ROOT/scripts/build_image.py" cluster
}

browser() {
    # It has no windows and no pages of its own: the tests take 0.6 of the processor time that `chromium` takes.
    if have chromium-headless-shell; then
        say "Chromium: installed"
    else
        timed "Chromium" apt_install chromium-headless-shell
    fi
}

main() {
    cd "$ROOT"
    [ $# -gt 0 ] || set -- venv engine image
    local part
    for part in "$@"; do
        case "$part" in
        venv | engine | image | slurm | cluster | browser) "$part" ;;
        *) fail "unknown part '$part'; one of: venv engine image slurm cluster browser" ;;
        esac
    done
}

main "$@"
