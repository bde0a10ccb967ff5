use super::*;

pub(super) fn read(text: &str) -> Result<ConfigFile, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("site.toml");
    std::fs::write(&path, text).unwrap();
    ConfigFile::read(&path, FileKeys::Serve).map_err(|failure| match failure {
        Failure::Usage(message) => message,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_duplicate_key_is_named_with_its_line() {
    let error = read("dir = '.'\nlisten = '[::1]:1'\ndir = '/'\n").unwrap_err();
    assert!(
        error.contains("site.toml:3: dir: this key is there twice"),
        "{error}"
    );
}

#[test]
fn a_file_without_end_is_refused() {
    let endless = ConfigFile::read(Path::new("/dev/zero"), FileKeys::Serve);
    assert!(matches!(endless, Err(Failure::Usage(_))), "{endless:?}");
    let text = format!("#{}\n", "x".repeat(16 << 20));
    let error = read(&text).unwrap_err();
    assert!(error.contains("it has more than 16777216 bytes"), "{error}");
}

#[test]
fn paths_start_at_the_file() {
    let file =
        read("dir = 'www'\nlisten = '[::1]:443'\naccess-log = '-'\ncc = 'bbr'\nprofile = 'rfc'")
            .unwrap();
    assert!(file.dir.unwrap().is_absolute());
    assert_eq!(file.access_log, Some(LogOutput::Stdout));
    let mut transport = TransportConfig::default();
    let settings = TransportConfig::SETTINGS;
    file.transport.apply(settings, &mut transport).unwrap();
    assert_eq!(transport.controller.spec().name(), "bbr");
    assert_eq!(file.profile, Some(Profile::Rfc));
}

#[test]
fn every_key_has_both_spellings() {
    for log in ["access-log", "access_log"] {
        let file = read(&format!("{log} = '-'\n[http]\nheader-timeout = '3s'")).unwrap();
        assert_eq!(file.access_log, Some(LogOutput::Stdout));
        assert_eq!(file.limits.header_timeout.as_secs(), 3);
    }
    let error = read("access-log = '-'\naccess_log = 'x'").unwrap_err();
    assert!(error.contains("there twice"), "{error}");
}

#[test]
fn limits_and_the_endpoint_are_tables() {
    let file = read("[http]\nmax_connections = 5\n[endpoint]\nconnection_id_len = 12").unwrap();
    let expected = ServerLimits {
        max_connections: 5,
        ..ServerLimits::default()
    };
    assert_eq!(file.limits, expected);
    let mut endpoint = EndpointConfig::from_seed([0; 32]);
    let written = file.endpoint.unwrap();
    let settings = EndpointConfig::SETTINGS;
    written.apply(settings, &mut endpoint).unwrap();
    assert_eq!(endpoint.connection_id_len, 12);
    for (text, words) in [
        ("[http]\nidle = '1s'", "http.idle: unknown key \"idle\""),
        (
            "[http]\nmax_header_bytes = '1MB'",
            "http.max_header_bytes: this must be a size from 8KiB to 64KiB, not \"1MB\"",
        ),
        ("[endpoint]\nid_len = 8", "known: connection_id_len"),
        (
            "[endpoint]\nconnection_id_len = 3",
            "endpoint.connection_id_len: this must be an integer from 4 to 20, not 3",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(
            error.contains("site.toml:2: ") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn what_only_scenarios_write_is_refused_with_what_to_write() {
    for (text, words) in [
        (
            "initial_window = 'careful'",
            "site.toml:1: initial_window: \"careful\" needs a store of history; write policy = \"careful\" in the table [history]",
        ),
        (
            "initial-window = 'history'",
            "write policy = \"average\" in the table [history]",
        ),
        (
            "initial_window = 10",
            "write initial_window=\"fixed(packets=10)\"",
        ),
        (
            "hybrid.factor = 0.5",
            "site.toml:1: \"hybrid\" is not a key but a value of slow_start_exit; \
             write slow_start_exit=\"hybrid(factor=0.5)\"",
        ),
        (
            "[ecf]\nbeta = 0.5",
            "write multipath.scheduler=\"ecf(beta=0.5)\"",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    for text in [
        "[history]\npolicy = 'careful'",
        "initial_window = 'fixed(packets=10)'",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

#[test]
fn keys_of_other_servers_are_answered_with_what_to_write() {
    for (text, words) in [
        ("[[site]]\nproxy_pass = 'http://a:1'", "write to = "),
        ("[[site]]\nserver_name = 'a'", "write names = "),
        ("[[site]]\nroot = '.'", "write dir = "),
        (
            "[[site]]\nlisten = 443",
            "write listen at the top of the file",
        ),
        ("[[site]]\nssl-certificate = 'a'", "write cert = "),
        ("[[site]]\ntry_files = 'a'", "write try = "),
        (
            "[[site]]\n[[site.location]]\npath = '/'",
            "write [[site.route]]",
        ),
        (
            "[http]\nkeepalive_timeout = '5s'",
            "write idle_timeout in [http]",
        ),
        ("dir = '.'\nencode = 'gzip'", "write compress = "),
        ("dir = '.'\nreverse_proxy = 'a:1'", "write to = "),
        (
            "[[site]]\nproxy_cache = 'a'",
            "marline has no cache of responses",
        ),
        (
            "[[site]]\nlimit_rate = '1MB'",
            "marline does not limit bytes per second",
        ),
        ("[[site]]\nstub_status = true", "write metrics = "),
        ("[[site]]\nfastcgi_pass = 'a:1'", "marline has no FastCGI"),
        ("dir = '.'\nauto_https = 'off'", "redirect_http = "),
        (
            "dir = '.'\nprotocols = ['h1', 'h2']",
            "HTTP/1.1, 2 and 3 are always served",
        ),
        ("dir = '.'\nssl_early_data = true", "write zero_rtt = "),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains("site.toml:2: "), "{text}: {error}");
        assert!(
            error.contains("unknown key") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn a_key_in_the_wrong_table_is_answered_with_the_right_one() {
    let top = "it belongs to the top of the file, before the first table";
    for (text, belongs) in [
        ("[[site]]\naccess_log = 'a'", top),
        ("[[site]]\ntls_min = '1.3'", top),
        ("[http]\npid_file = 'p'", top),
        ("[endpoint]\nstate = 's'", top),
        ("dir = '.'\nmax_connections = 5", "it belongs to [http]"),
        (
            "dir = '.'\nredirect = '/x'",
            "it belongs to [[site]], or [[site.route]]",
        ),
        (
            "dir = '.'\nhealth_path = '/up'",
            "it belongs to [site.proxy], or [site.route.proxy]",
        ),
        ("[proxy]\nmax_connections = 5", "it belongs to [http]"),
        ("[[site]]\nmethod = 'GET'", "it belongs to [[site.route]]"),
        (
            "dir = '.'\nconnection_id_len = 8",
            "it belongs to [endpoint]",
        ),
    ] {
        let verb = match text.starts_with("[proxy]") {
            true => FileKeys::Proxy,
            false => FileKeys::Serve,
        };
        let error = ConfigFile::parse("site.toml", text, Path::new(""), verb).unwrap_err();
        assert!(
            error.starts_with("site.toml:2: ") && error.contains(belongs),
            "{text}: {error}"
        );
    }
}

#[test]
fn applications_of_routes_have_the_settings_of_their_site() {
    let route = "[[site.route]]\npath = '/a'\nto = 'http://a:1'\n";
    let own = "[site.route.proxy]\nretries = 0\nconnect_timeout = '5s'\n";
    let of_site = "[site.proxy]\nretries = 7\nconnect_timeout = '3s'\nhealth_path = '/up'\n";
    let file = read(&format!(
        "[[site]]\ndir = '.'\n{of_site}{route}{route}{own}"
    ))
    .unwrap();
    let site = &file.sites[0];
    assert!(site.rules.proxy.is_none(), "it is for the routes");
    let proxies = site
        .routes
        .iter()
        .map(|route| route.rules.proxy.as_ref().unwrap());
    let settings: Vec<_> = proxies
        .map(|proxy| {
            assert_eq!(proxy.upstreams.len(), 1);
            assert!(proxy.health_path.is_some());
            (proxy.retries, proxy.connect_timeout.as_secs())
        })
        .collect();
    assert_eq!(settings, [(7, 3), (0, 5)]);
    let file = read(&format!("[[site]]\ndir = '.'\n{of_site}")).unwrap();
    let metrics = marline_http::proxy::UpstreamMetrics::default();
    let clients = marline_site::SiteClients::default();
    let error = marline_site::sites(&file.sites, &clients, &metrics).unwrap_err();
    let error = error.to_string();
    let expected = "site.toml:3: proxy: the site without names has `proxy`, which needs `to`";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_a_site_lacks_is_named_with_its_line() {
    let site = "[[site]]\nnames = 'a'\nrespond = 'ok'\n";
    for (text, expected) in [
        (
            "[[site.route]]\npath = '/x'\nburst = 5\n",
            "site.toml:6: burst: ",
        ),
        ("redirect = '/y'\n", "site.toml:3: respond: "),
        ("error_pages.404 = 'none'\n", "site.toml:4: error_pages: "),
        ("basic_auth = 'none'\n", "site.toml:4: basic_auth: "),
        (
            "[[site.route]]\npath = '/x'\ndir = 'none'\n",
            "site.toml:6: dir: ",
        ),
        ("[[site]]\nnames = 'b'\n", "site.toml:4: "),
        (
            "[[site]]\nrespond = 'ok'\nnames = 'a'\n",
            "site.toml:6: names: ",
        ),
    ] {
        let file = read(&format!("{site}{text}")).unwrap();
        let metrics = marline_http::proxy::UpstreamMetrics::default();
        let clients = marline_site::SiteClients::default();
        let error = marline_site::sites(&file.sites, &clients, &metrics)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let file = read(&format!("{site}cert = 'a.pem'\n")).unwrap();
    let error = marline_site::identities(&file.sites)
        .unwrap_err()
        .to_string();
    let expected = "site.toml:4: cert: the site a has `cert`, which needs `key`";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn unknown_keys_are_refused_by_name_and_line() {
    let error = read("dir = 'www'\n\nlissen = '[::1]:443'\n").unwrap_err();
    assert!(
        error.contains("site.toml:3:") && error.contains("lissen"),
        "{error}"
    );
    let error = read("dir = 'www'\n[proxy]\nto = 'http://a:1'\n").unwrap_err();
    assert!(error.contains("marline proxy --config"), "{error}");
    let error = read("profile = 'multipaths'").unwrap_err();
    assert!(error.contains("did you mean multipath?"), "{error}");
    let error = read("listen = 'here'").unwrap_err();
    assert!(error.contains("an address with a port"), "{error}");
    let error = read("dir = 5").unwrap_err();
    assert!(error.contains("site.toml:1:"), "{error}");
    assert!(!error.contains('\n'));
}
