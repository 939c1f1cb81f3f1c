eval "$(windtunnel env)"
