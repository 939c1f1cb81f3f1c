# To be sourced by sh: set uv's variables from pip's, because uv reads neither these nor pip.conf. Existing ones stay.
# shellcheck shell=sh
hand() { [ -z "$2" ] || eval "export $1=\"\${$1:-\$2}\""; }

hand UV_DEFAULT_INDEX "${PIP_INDEX_URL:-}"
hand UV_INDEX "${PIP_EXTRA_INDEX_URL:-}"
# shellcheck disable=SC2086  # words
hand UV_FIND_LINKS "$(echo ${PIP_FIND_LINKS:-} | tr ' ' ',')"
hand UV_NO_INDEX "${PIP_NO_INDEX:-}"
hand UV_INSECURE_HOST "${PIP_TRUSTED_HOST:-}"
hand UV_HTTP_TIMEOUT "${PIP_DEFAULT_TIMEOUT:-}"
hand SSL_CERT_FILE "${PIP_CERT:-}"
hand HTTPS_PROXY "${PIP_PROXY:-}"
# Take the best version of all indexes, as pip does: a CPU build is 2.9.0+cpu, which ranks above 2.9.0.
hand UV_INDEX_STRATEGY unsafe-best-match
