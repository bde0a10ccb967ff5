//! Keys of other servers' configurations, and what to write instead.

use marline::settings::is_key;

/// A key as another server has it.
struct Foreign {
    keys: &'static [&'static str],
    instead: &'static str,
}

/// Keys of nginx, Apache and Caddy for what marline's files say otherwise.
const FOREIGN: &[Foreign] = &[
    Foreign {
        keys: &[
            "proxy_pass",
            "reverse_proxy",
            "upstream",
            "upstreams",
            "backend",
            "proxypass",
        ],
        instead: "write to = \"http://127.0.0.1:8000\" in [[site]] or [[site.route]]; `marline proxy` has it in [proxy]",
    },
    Foreign {
        keys: &["root", "document_root", "alias", "file_server", "static"],
        instead: "write dir = \"/var/www\"",
    },
    Foreign {
        keys: &[
            "server_name",
            "server_names",
            "server_alias",
            "host",
            "hosts",
            "hostname",
            "domain",
            "domains",
        ],
        instead: "write names = [\"example.org\"] in [[site]], or name at the top of the file",
    },
    Foreign {
        keys: &[
            "server",
            "servers",
            "vhost",
            "virtual_host",
            "virtualhost",
            "sites",
        ],
        instead: "write [[site]] for each",
    },
    Foreign {
        keys: &["location", "locations", "handle", "handle_path", "routes"],
        instead: "write [[site.route]] with path = \"/api/*\" for each",
    },
    Foreign {
        keys: &[
            "ssl_certificate",
            "ssl_certificate_key",
            "tls_certificate",
            "tls_key",
            "tls",
            "ssl",
            "certificate_file",
            "private_key",
        ],
        instead: "write cert = \"fullchain.pem\" and key = \"privkey.pem\", or acme = \"ana@example.org\"",
    },
    Foreign {
        keys: &["email", "letsencrypt", "certbot", "acme_ca", "acme_email"],
        instead: "write acme = \"ana@example.org\"",
    },
    Foreign {
        keys: &["auto_https"],
        instead: "there are certificates of an authority only with acme = \"ana@example.org\", and acme = \"off\" in [[site]] for a site without; redirect_http = \":80\" redirects to https",
    },
    Foreign {
        keys: &["ssl_protocols", "tls_protocols", "sslprotocol"],
        instead: "write tls_min = \"1.2\" or \"1.3\"",
    },
    Foreign {
        keys: &["protocols", "http2", "http3", "quic", "h2", "h3"],
        instead: "leave it out: HTTP/1.1, 2 and 3 are always served; tls_min sets the version of TLS",
    },
    Foreign {
        keys: &["ssl_early_data", "early_data", "0rtt"],
        instead: "write zero_rtt = true or false at the top of the file",
    },
    Foreign {
        keys: &[
            "ssl_stapling",
            "ssl_stapling_verify",
            "ocsp_stapling",
            "ssl_use_stapling",
        ],
        instead: "leave it out: the status is stapled where a certificate asks for it",
    },
    Foreign {
        keys: &[
            "ssl_ciphers",
            "ssl_prefer_server_ciphers",
            "ciphers",
            "curves",
            "ssl_ecdh_curve",
            "ssl_dhparam",
            "ssl_session_cache",
            "ssl_session_timeout",
            "ssl_session_tickets",
            "sslciphersuite",
        ],
        instead: "leave it out: marline chooses ciphers, curves and sessions; tls_min sets the version of TLS",
    },
    Foreign {
        keys: &[
            "ssl_client_certificate",
            "ssl_verify_client",
            "ssl_crl",
            "client_auth",
        ],
        instead: "write client_certificates = { ca = \"clients.pem\" } in [[site]]",
    },
    Foreign {
        keys: &["try_files"],
        instead: "write try = [\"{path}\", \"/index.html\"] beside dir",
    },
    Foreign {
        keys: &["index", "directory_index"],
        instead: "leave it out: index.html is answered for its directory; try has other files",
    },
    Foreign {
        keys: &["autoindex", "browse"],
        instead: "write list = true beside dir",
    },
    Foreign {
        keys: &[
            "encode",
            "gzip",
            "gzip_types",
            "gzip_comp_level",
            "gzip_min_length",
            "gzip_vary",
            "gzip_proxied",
            "brotli",
            "zstd",
            "compression",
        ],
        instead: "write compress = true or false",
    },
    Foreign {
        keys: &["return", "redir", "redirects"],
        instead: "write redirect = \"https://example.org{uri}\", or respond with status",
    },
    Foreign {
        keys: &["add_header", "header", "headers", "header_down"],
        instead: "write response_headers = { X-Frame-Options = \"DENY\" } in [[site]]",
    },
    Foreign {
        keys: &["proxy_set_header", "header_up"],
        instead: "write request_headers = { X-From = \"marline\" } in [[site]]; X-Forwarded-For and others are always set",
    },
    Foreign {
        keys: &[
            "auth_basic",
            "auth_basic_user_file",
            "basicauth",
            "auth_user_file",
        ],
        instead: "write basic_auth = \"users\" in [[site]], a file of htpasswd",
    },
    Foreign {
        keys: &["client_max_body_size", "request_body", "limit_request_body"],
        instead: "write max_body = \"10MB\" in [[site]]",
    },
    Foreign {
        keys: &["error_page", "handle_errors", "error_document"],
        instead: "write error_pages = { 404 = \"404.html\" } in [[site]]",
    },
    Foreign {
        keys: &["gzip_static", "brotli_static", "precompressed"],
        instead: "leave it out: files beside others with .gz, .br or .zst at their end are served to clients that accept them",
    },
    Foreign {
        keys: &[
            "stub_status",
            "server_status",
            "status_page",
            "admin",
            "prometheus",
        ],
        instead: "write metrics = \":9100\", for Prometheus, health checks and `marline top`",
    },
    Foreign {
        keys: &[
            "fastcgi_pass",
            "php_fastcgi",
            "fastcgi_param",
            "fastcgi_index",
            "fastcgi_split_path_info",
            "uwsgi_pass",
            "scgi_pass",
            "php",
            "cgi",
        ],
        instead: "marline has no FastCGI, uWSGI or SCGI; have the application speak HTTP, and write to = \"http://127.0.0.1:8000\" or to = \"unix:/run/app.sock\"",
    },
    Foreign {
        keys: &["grpc_pass"],
        instead: "write to = \"h2c://127.0.0.1:50051\"",
    },
    Foreign {
        keys: &[
            "proxy_cache",
            "proxy_cache_path",
            "proxy_cache_valid",
            "proxy_cache_key",
            "fastcgi_cache",
            "cache",
            "cacheenable",
            "open_file_cache",
        ],
        instead: "marline has no cache of responses",
    },
    Foreign {
        keys: &["limit_rate", "limit_rate_after", "ratelimit", "bandwidth"],
        instead: "marline does not limit bytes per second; rate = \"10/s\" limits requests",
    },
    Foreign {
        keys: &["limit_conn", "limit_conn_zone", "max_conns"],
        instead: "write max_connections in [http]; a network of clients gets a share of it",
    },
    Foreign {
        keys: &["expires", "etag", "cache_control"],
        instead: "write response_headers = { Cache-Control = \"max-age=3600\" } in [[site]]; files always have ETag and Last-Modified",
    },
    Foreign {
        keys: &[
            "uri",
            "strip_prefix",
            "uri_strip_prefix",
            "rewrites",
            "rewriterule",
            "rewriteengine",
        ],
        instead: "write rewrite = \"/{rest}\" in [[site.route]] with path = \"/api/*\"",
    },
    Foreign {
        keys: &[
            "proxy_buffering",
            "proxy_request_buffering",
            "proxy_buffers",
            "proxy_buffer_size",
            "flush_interval",
        ],
        instead: "leave it out: responses are passed on as they arrive; buffer_uploads in [site.proxy] collects the content of requests",
    },
    Foreign {
        keys: &["proxy_http_version", "proxy_ssl_server_name", "transport"],
        instead: "the scheme of `to` says it: http://, h2c://, https:// or h3://; [site.proxy.tls] has the rest",
    },
    Foreign {
        keys: &["proxy_next_upstream", "lb_try_duration", "lb_retries"],
        instead: "write retries in [site.proxy]",
    },
    Foreign {
        keys: &[
            "sendfile",
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "directio",
            "worker_rlimit_nofile",
            "multi_accept",
            "accept_mutex",
            "events",
            "use",
            "daemon",
            "types",
            "default_type",
            "server_tokens",
            "charset",
            "include_types",
            "types_hash_max_size",
            "reuseport",
        ],
        instead: "leave it out: marline needs no such setting",
    },
    Foreign {
        keys: &["include", "import", "snippet"],
        instead: "a configuration is one file; marline includes no others",
    },
    Foreign {
        keys: &[
            "map",
            "geo",
            "geoip",
            "if",
            "set",
            "vars",
            "split_clients",
            "lua",
            "js_import",
            "perl",
            "templates",
            "ssi",
            "sub_filter",
            "handle_response",
            "replace",
        ],
        instead: "marline has no variables, conditions or scripts; routes choose by path and method",
    },
    Foreign {
        keys: &["auth_request", "forward_auth", "satisfy", "auth_jwt"],
        instead: "marline does not ask another service about access; it has basic_auth, client_certificates, allow and deny",
    },
    Foreign {
        keys: &[
            "mirror",
            "dav_methods",
            "webdav",
            "mp4",
            "flv",
            "mail",
            "stream",
            "resolver",
            "push",
            "http2_push",
        ],
        instead: "marline has no equivalent",
    },
    Foreign {
        keys: &["limit_req", "limit_req_zone", "rate_limit"],
        instead: "write rate = \"10/s\" in [[site]]",
    },
    Foreign {
        keys: &["set_real_ip_from", "real_ip_header"],
        instead: "write trusted_proxies = [\"192.0.2.0/24\"], and client_field",
    },
    Foreign {
        keys: &["worker_processes"],
        instead: "write workers = 4; by default there is one for each core",
    },
    Foreign {
        keys: &["worker_connections"],
        instead: "write max_connections in [http]",
    },
    Foreign {
        keys: &["keepalive_timeout"],
        instead: "write idle_timeout in [http]",
    },
    Foreign {
        keys: &[
            "client_header_timeout",
            "client_body_timeout",
            "read_timeout",
        ],
        instead: "write header_timeout in [http]",
    },
    Foreign {
        keys: &["proxy_connect_timeout", "dial_timeout"],
        instead: "write connect_timeout in [site.proxy]",
    },
    Foreign {
        keys: &["proxy_read_timeout", "response_header_timeout"],
        instead: "write response_timeout in [site.proxy]",
    },
    Foreign {
        keys: &["health_uri", "health_check", "health"],
        instead: "write health_path in [site.proxy]",
    },
    Foreign {
        keys: &["lb_policy", "least_conn", "ip_hash"],
        instead: "write balance in [site.proxy]",
    },
    Foreign {
        keys: &["log_format"],
        instead: "write access_log_format",
    },
    Foreign {
        keys: &["log", "customlog", "access_logs"],
        instead: "write access_log = \"access.log\" at the top of the file",
    },
    Foreign {
        keys: &["errorlog", "log_level", "loglevel"],
        instead: "write error_log = \"error.log\" and error_log_level = \"warning\" at the top of the file",
    },
    Foreign {
        keys: &["pid"],
        instead: "write pid_file",
    },
];

/// The advice about the unknown key `written`, if another server has it. `is_inside` is whether it is in a table.
pub(super) fn instead_of(written: &str, is_inside: bool) -> Option<&'static str> {
    let written = &written.to_ascii_lowercase();
    // Sites of other servers have addresses of their own.
    if is_inside && ["listen", "bind"].iter().any(|key| is_key(written, key)) {
        return Some("write listen at the top of the file: all sites are at the same addresses");
    }
    let all = FOREIGN.iter();
    let found = all.filter(|one| one.keys.iter().any(|key| is_key(written, key)));
    found.map(|one| one.instead).next()
}
