#!/bin/sh
# Serves the files of MARLINE_ROOT by Caddy, as a scenario's http.server. CADDY names the program.
set -eu
cat >"$MARLINE_RUN/Caddyfile" <<END
{
    admin off
    auto_https off
    storage file_system $MARLINE_RUN
}
https://:$MARLINE_PORT {
    bind $MARLINE_ADDRESS
    tls $MARLINE_CERTIFICATE $MARLINE_KEY
    root * $MARLINE_ROOT
    file_server
}
END
export HOME="$MARLINE_RUN"
exec "${CADDY:-caddy}" run --adapter caddyfile --config "$MARLINE_RUN/Caddyfile"
