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
            "fastcgi_pass",
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
        keys: &["email", "auto_https", "letsencrypt"],
        instead: "write acme = \"ana@example.org\"",
    },
    Foreign {
        keys: &["ssl_protocols", "tls_protocols", "protocols"],
        instead: "write tls_min = \"1.2\" or \"1.3\"",
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
        keys: &["encode", "gzip", "brotli", "zstd", "compression"],
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
        instead: "write request_headers = { X-From = \"marline\" } in [[site]]; X-Forwarded-For and others are set anyhow",
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
        keys: &["log", "customlog"],
        instead: "write access_log = \"access.log\"",
    },
    Foreign {
        keys: &["pid"],
        instead: "write pid_file",
    },
];

/// The advice about the unknown key `written`, if another server has it. `is_inside` is whether it is in a table.
pub(super) fn instead_of(written: &str, is_inside: bool) -> Option<&'static str> {
    // Sites of other servers have addresses of their own.
    if is_inside && ["listen", "bind"].iter().any(|key| is_key(written, key)) {
        return Some("write listen at the top of the file: all sites are at the same addresses");
    }
    let all = FOREIGN.iter();
    let found = all.filter(|one| one.keys.iter().any(|key| is_key(written, key)));
    found.map(|one| one.instead).next()
}
