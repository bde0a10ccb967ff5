#!/bin/sh
# Serves the files of MARLINE_ROOT by nginx, as a scenario's http.server: HTTP/1.1 and HTTP/2 over TLS, or HTTP/3 for the argument h3.
# NGINX names the program; by default it is the one that `make -C interop nginx` builds, and must be 1.25.1 or later.
set -eu
case ${1:-} in
    h3) listen="quic reuseport; http3 on; quic_gso on" ;;
    *) listen="ssl; http2 on" ;;
esac
cat >"$MARLINE_RUN/nginx.conf" <<END
daemon off;
user root;
worker_processes 1;
pid $MARLINE_RUN/pid;
error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path $MARLINE_RUN/body;
    proxy_temp_path $MARLINE_RUN/proxy;
    fastcgi_temp_path $MARLINE_RUN/fastcgi;
    uwsgi_temp_path $MARLINE_RUN/uwsgi;
    scgi_temp_path $MARLINE_RUN/scgi;
    types {
        text/html html;
        text/css css;
        text/javascript js;
        image/webp webp;
    }
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000;
    server {
        listen $MARLINE_ADDRESS:$MARLINE_PORT $listen;
        ssl_certificate $MARLINE_CERTIFICATE;
        ssl_certificate_key $MARLINE_KEY;
        root $MARLINE_ROOT;
    }
}
END
exec "${NGINX:-target/nginx/nginx}" -c "$MARLINE_RUN/nginx.conf"
