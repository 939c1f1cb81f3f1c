eval "$(windtunnel env --unset)"
