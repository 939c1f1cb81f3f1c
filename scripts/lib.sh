# Functions that the scripts share; to be sourced.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
VENV="${VENV:-$ROOT/.venv}"
PATH="$PATH:/usr/sbin:/sbin" # for daemons; Debian does not have these folders on the PATH of users

# say TEXT: print a line of progress.
say() {
    if [ -t 1 ]; then printf '\033[1m== %s\033[0m\n' "$*"; else printf '== %s\n' "$*"; fi
}

# fail TEXT: print an error and end the script.
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# have COMMAND...: whether all of the commands exist; for `command -v` one of them is enough.
have() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return; done
}

# timed TITLE COMMAND...: run the command, print how long it took, return its exit code. It runs without errexit.
timed() {
    local title="$1" start="$SECONDS" code=0
    shift
    say "$title"
    "$@" || code=$?
    say "$title: $([ "$code" -eq 0 ] && echo "done" || echo "FAILED ($code)") in $((SECONDS - start)) s"
    return "$code"
}

# apt_install PACKAGE...: install Debian packages as root, without questions. Fetches the package lists once in a run.
apt_install() {
    have apt-get || fail "$* is missing and there is no apt-get here; install it by hand"
    [ "$(id -u)" -eq 0 ] || fail "$* is missing; run: sudo apt-get install $*"
    if [ -z "${APT_UPDATED:-}" ]; then
        DEBIAN_FRONTEND=noninteractive apt-get update -qq || say "not all package lists were fetched; older ones serve"
        APT_UPDATED=1
    fi
    # Waits for the lock: a machine that has just started may be updating itself.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" \
        >/dev/null || fail "apt-get could not install $*"
}

# install_into VENV ARGUMENT...: install what `pip install ARGUMENT...` would, from pip's indexes. Uses uv, from the
# PATH or .venv; if uv fails, pip, which takes longer.
install_into() {
    local venv="$1"
    shift
    (
        PATH="$PATH:$VENV/bin"
        as_pip_variables "$venv"
        # shellcheck source=containers/training/uv-env.sh
        source "$ROOT/containers/training/uv-env.sh"
        uv pip install --quiet --python "$venv/bin/python" "$@"
    ) || {
        say "uv could not install it (see above); pip tries, which takes longer"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    }
}

# as_pip_variables VENV: export the settings of pip's configuration files as pip's variables. Variables that are set
# already stay.
as_pip_variables() {
    local key value name
    while IFS='=' read -r key value; do
        name="${key##*.}"
        name="PIP_${name^^}"
        name="${name//-/_}"
        value="${value:1:-1}"
        [ -n "${!name:-}" ] || export "$name=${value//\\n/ }"
    done < <("$1/bin/pip" config list)
}
