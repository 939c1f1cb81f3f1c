# What the scripts share; to be sourced.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
VENV="${VENV:-$ROOT/.venv}"
PATH="$PATH:/usr/sbin:/sbin" # daemons are there, and it is on no path of Debian's users

# say TEXT: one line of progress.
say() {
    if [ -t 1 ]; then printf '\033[1m== %s\033[0m\n' "$*"; else printf '== %s\n' "$*"; fi
}

# fail TEXT: an error that ends the script.
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# have COMMAND...: whether all of them are there; `command -v` is content with one.
have() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return; done
}

# timed TITLE COMMAND...: run it, say how long it took; its exit code. Within it errexit does not hold.
timed() {
    local title="$1" start="$SECONDS" code=0
    shift
    say "$title"
    "$@" || code=$?
    say "$title: $([ "$code" -eq 0 ] && echo "done" || echo "FAILED ($code)") in $((SECONDS - start)) s"
    return "$code"
}

# apt_install PACKAGE...: as root, without questions; the package lists are fetched once a run.
apt_install() {
    have apt-get || fail "$* is missing and there is no apt-get here; install it by hand"
    [ "$(id -u)" -eq 0 ] || fail "$* is missing; run: sudo apt-get install $*"
    if [ -z "${APT_UPDATED:-}" ]; then
        DEBIAN_FRONTEND=noninteractive apt-get update -qq || say "not all package lists were fetched; older ones serve"
        APT_UPDATED=1
    fi
    # A machine that has just started may be updating itself.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" \
        >/dev/null || fail "apt-get could not install $*"
}

# install_into VENV ARGUMENT...: what pip would install there, from where pip would take it; by uv, if there is one on
# the path or in .venv, and by pip, which takes longer, where uv cannot.
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

# as_pip_variables VENV: pip's configuration files as the variables that pip would take instead; what the
# environment sets stays.
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
