//! Mistakes in a scenario are reported with their place.

use super::*;

#[test]
fn a_duplicate_key_is_named_with_its_line() {
    let error = read_with(
        "title = 'x'\nlink = 'lte-a'\n[workload]\nobjects = '1MB'\nobjects = '2MB'\n",
        &[],
    );
    let error = error.unwrap_err();
    assert!(
        error.starts_with("train.toml:5: objects: duplicate key"),
        "{error}"
    );
}

#[test]
fn nothing_to_measure_is_named_with_the_line_of_the_connections() {
    let error = error(
        "title = 'x'\nlink = 'lte-a'\n[workload]\nmeasure = { after = '1s', until = '2s' }\n[http]\nconnections = 0",
    );
    let expected = "train.toml:6: [http] connections: there is nothing to measure";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn flows_between_named_hosts_say_which_way_they_send() {
    let with = |more: &str| {
        format!(
            "title = 'x'\nlink = 'lte-a'\nworkload.objects = '1MB'\n[[background]]\nkind = 'flows'\nfrom = 'client'\n{more}"
        )
    };
    let error = error(&with(""));
    assert!(
        error.contains("client opens the flows to server")
            && error.contains("direction = \"down\" (to client)"),
        "{error}"
    );
    assert!(read_with(&with("direction = 'up'"), &[]).is_ok());
}

#[test]
fn a_browser_gets_no_settings_that_it_would_ignore() {
    let with = |more: &str| {
        let readable = if more.is_empty() {
            ""
        } else {
            "workload.readable = true\n"
        };
        error(&format!(
            "title = 'x'\nlink = 'lte-a'\nbackend = 'emu'\nhttp.client = 'chromium'\n\
             workload.page = 'cloned/google'\n{readable}{more}"
        ))
    };
    for (more, expected) in [
        (
            "",
            "train.toml:4: [http] client: Chromium finds the objects of a page in its content; add workload.readable = true",
        ),
        (
            "http.version = '2-parallel'",
            "train.toml:7: [http] version: Chromium has one TCP connection of HTTP/2 to a host",
        ),
        (
            "http.connections = 2",
            "train.toml:7: [http] connections: this is for marline's client",
        ),
        (
            "http.pipes = 'cba'",
            "train.toml:7: [http] pipes: this is for marline's client",
        ),
        (
            "http.gateway = true\nhttp.version = '2'",
            "train.toml:8: [http] version: the gateway fetches over HTTP/3",
        ),
        (
            "http.gateway = true\nhttp.split = '1MB'",
            "train.toml:8: [http] split: this is for marline's client",
        ),
        (
            "workload.loads = 2",
            "train.toml:4: [http] client: Chromium has a new profile for each load",
        ),
        (
            "client.cc = 'bbr'",
            "train.toml:7: client: [client] sets marline's client",
        ),
    ] {
        let error = with(more);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn variants_that_results_could_not_tell_apart_are_refused() {
    for (text, expected) in [
        (
            "[variant.'']",
            "a variant has a name of a character or more",
        ),
        (
            "[variant.'a b']\n[variant.a-b]",
            "files of \"a-b\" would have the names of those of \"a b\"; rename one",
        ),
        (
            "[variant.a]\n[variant.b]\n[[comparison]]\na = 'a'\nb = 'b'\n[[comparison]]\na = 'a'\nb = 'b'",
            "a and b are compared at one point twice; leave one out",
        ),
        (
            "seed = -1",
            "this must be an integer from 0 to 9223372036854775807",
        ),
    ] {
        let error = error(&with(text));
        assert!(error.contains(expected), "{error}");
    }
}

/// Each error names the file, the line, the key, the problem and the remedy.
#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        (
            "cc = 'bbrr'",
            "train.toml:4: cc: unknown controller \"bbrr\"; did you mean bbr? known: newreno, cubic, bbr, bbr3, wireless, olia",
        ),
        ("cc = bbr", "train.toml:4: cc: string values must be quoted"),
        (
            "[http]\nversion = '2'\nbundle = true",
            "train.toml:4: http: connections over TCP are not a bundle; leave http.bundle out",
        ),
        (
            "[http]\nversion = '2'\nown_sockets = true",
            "train.toml:4: http: each connection over TCP has a socket of its own; leave http.own_sockets out",
        ),
        (
            "[http]\nversion = '2'\npipes = 'cba'",
            "train.toml:4: http: pipes are connections of HTTP/3; leave http.pipes out (\"none\" in a variant), or http.version",
        ),
        (
            "http.client = 'firefox'",
            "train.toml:4: [http] client: unknown client \"firefox\"; known: marline, chromium",
        ),
        (
            "http.client = 'chromium'",
            "train.toml:4: [http] client: Chromium runs in real time; add backend = \"emu\"",
        ),
        (
            "http.gateway = true",
            "train.toml:4: [http] gateway: marline's client needs no gateway; add http.client = \"chromium\"",
        ),
        (
            "backend = 'emu'\nhttp.client = 'chromium'",
            "train.toml:5: [http] client: Chromium loads pages; write the workload as page = \"cloned/amazon\"",
        ),
        (
            "http.server = 'nginx'",
            "train.toml:4: [http] server: a program needs a kernel; add backend = \"kernel\" or backend = \"emu\"",
        ),
        (
            "backend = 'emu'\nhttp.server = 'nginx'\nhttp.version = '2-mptcp'",
            "train.toml:6: [http] version: only marline's server is told to use Multipath TCP",
        ),
        (
            "backend = 'kernel'\nhttp.server = 'quic-go'\nserver.cc = 'bbr'",
            "train.toml:6: server: [server] sets marline's server",
        ),
        (
            "[variant.bbr]\ncc = 'bbrr'",
            "train.toml:5: [variant.bbr] cc: unknown controller \"bbrr\"",
        ),
        (
            "[variant.a]\nlink.loss = '1%'\nrepeets = 3",
            "train.toml:6: [variant.a] repeets: unknown key \"repeets\"; did you mean repeats?",
        ),
        (
            "[http]\nconections = 3",
            "train.toml:5: [http] conections: unknown key \"conections\"; did you mean connections?",
        ),
        (
            "[variant.a]\n[variant.b]\n[variant.a]",
            "train.toml:6: a: duplicate key: a variant, table or key is there twice",
        ),
        ("repeats = ", "train.toml:4:"),
        (
            "repeats = 0",
            "train.toml:4: repeats: this must be an integer from 1 to 100000",
        ),
        (
            "time_limit = '30'",
            "train.toml:4: time_limit: \"30\" has no unit; write 30ns, 30us, 30ms, 30s, 30min",
        ),
        ("time_limit = 30", "\"30\" has no unit"),
        (
            "pacing = 'on'",
            "pacing: this must be true or false, not \"on\"",
        ),
        (
            "backoff = 1.5",
            "backoff: this must be a number above 0 and below 1",
        ),
        (
            "ack = 'every'",
            "unknown acknowledgment policy \"every\"; did you mean every_n?",
        ),
        ("initial_window = 1", "this must be an integer from 2"),
        (
            "mtu = 1100",
            "this must be a size from 1200B to 9kB, not 1100",
        ),
        (
            "profile = 'multipth'",
            "unknown profile \"multipth\"; did you mean multipath?",
        ),
        ("http = 3", "http: an integer is not a table"),
        (
            "http.ranges = 'even'",
            "train.toml:4: [http] ranges: unknown kind of ranges \"even\"; known: auto, equal, handed",
        ),
        (
            "http.bundle = 3",
            "[http] bundle: an integer is not true or false",
        ),
        (
            "bundle = 'publishd'",
            "train.toml:4: bundle: unknown bundle \"publishd\"; did you mean published?",
        ),
        (
            "bundle = 3",
            "bundle: this must be true, false, \"default\", \"published\", \"published-every-event\" or a table, not 3",
        ),
        (
            "[server.bundle]\nsync_stat = true",
            "train.toml:5: [server.bundle] sync_stat: unknown key \"sync_stat\"; did you mean sync_state?",
        ),
        (
            "bundle.backoff = 'measurd'",
            "[bundle] backoff: this must be a number above 0 and below 1, or \"measured\", not \"measurd\"",
        ),
        (
            "bundle.slow_start_growth = 0.5",
            "this must be a number from 1 to 100",
        ),
        (
            "bundle.scope = 'some'",
            "unknown scope \"some\"; known: all, active",
        ),
        (
            "http.connections = 0",
            "[http] connections: this must be an integer from 1 to 1000",
        ),
        (
            "stress.clint = 4",
            "[stress] clint: unknown host \"clint\"; did you mean client?",
        ),
        ("stress.client = 65", "this must be an integer from 0 to 64"),
        ("stress = 4", "stress is a table; write stress.client = 4"),
        (
            "stress.client = 4\nstress.server = 4",
            "only one host can be stressed",
        ),
        (
            "[stress]\nclient = 4",
            "train.toml:5: [stress] client: in virtual time hosts have no processor to stress; add backend = \"emu\"",
        ),
        (
            "bundle.connections = 17",
            "this must be an integer from 1 to 16",
        ),
        (
            "[variant.a]\nbundle.fair = 1",
            "train.toml:5: [variant.a.bundle] fair: this must be true or false, not 1",
        ),
        (
            "id = 'other'",
            "the file's name makes this experiment \"train\"",
        ),
        ("[sweep]", "train.toml:4: sweep: the sweep is empty; add"),
        (
            "[sweep]\ncc = []",
            "train.toml:5: [sweep] cc: the sweep is empty",
        ),
        (
            "[sweep]\ncc = 'bbr'",
            "text is one value; a sweep has a list of them",
        ),
        (
            "[sweep]\ncc = ['bbr', 'cubi']",
            "train.toml:5: [sweep] cc: unknown controller \"cubi\"",
        ),
        (
            "[variant.a]\ncc = 'bbr'\n[sweep]\ncc = ['bbr']",
            "train.toml:7: [sweep] cc: variant a sets cc too",
        ),
        ("variant = {}", "there are no variants"),
        ("links = []", "there is `link` already"),
        (
            "hosts = ['x']",
            "train.toml:4: hosts: only links with names have hosts",
        ),
        (
            "[[background]]\nrate = '1mbps'",
            "kind is missing; add kind = \"flows\"",
        ),
        (
            "[[background]]\nkind = 'flow'",
            "unknown kind of background \"flow\"; did you mean flows?",
        ),
        (
            "[[background]]\nkind = 'flows'\nfrom = 'serve'",
            "unknown host \"serve\"; did you mean server?",
        ),
        (
            "[[background]]\nkind = 'flows'\nfrom = 'server'",
            "from and to are both \"server\"",
        ),
        (
            "[[background]]\nkind = 'flows'\ncc = 'cubi'",
            "train.toml:6: [background] cc: unknown controller \"cubi\"; did you mean cubic?",
        ),
        (
            "[[background]]\nkind = 'poisson'\nrate = '1mbps'\nsize = '2kB'",
            "a packet carries 1 to 1472 bytes",
        ),
        ("[[comparison]]\na = 'base'", "b is missing; add"),
        (
            "[[comparison]]\na = 'base'\nb = 'bass'",
            "unknown variant \"bass\"; did you mean base?",
        ),
        (
            "[[comparison]]\na = 'base'\nb = 'base'\nstatistic = 'std'",
            "unknown statistic \"std\"",
        ),
        (
            "[[published]]\nfile = 'no.csv'\nvalue = 'x'",
            "there is no table \"no.csv\"",
        ),
        (
            "workload.page = 'small'",
            "train.toml:4: [workload] page: there is objects and page",
        ),
    ] {
        let error = error(&with(text));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    for (text, expected) in [
        (
            "link = 'rtt=1ms'\nworkload.page = 'x'",
            "train.toml: title is missing; add title =",
        ),
        (
            "title = 'x'\nworkload.page = 'x'",
            "train.toml: link is missing; add link =",
        ),
        (
            "title = 'x'\nlink = ''\nworkload.page = 'x'",
            "train.toml:2: link: the link is empty",
        ),
        (
            "title = 'x'\nlink = 3\nworkload.page = 'x'",
            "train.toml:2: link: an integer is not a link",
        ),
        (
            "title = 'x'\nlinks = []\nworkload.page = 'x'",
            "train.toml:2: links: there are no links",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'",
            "train.toml: workload is missing; add [workload]",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'\n[workload]",
            "train.toml:3: workload: what to do is missing",
        ),
        (
            "title = 'x'\nlink = 'rtt=1ms'\nworkload.objects = []",
            "the list is empty",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn truncated_scenarios_do_not_panic() {
    for cut in 0..TRAIN.len() {
        if TRAIN.is_char_boundary(cut) {
            read_with(&TRAIN[..cut], &[]).ok();
        }
    }
    assert!(error("\u{0}").starts_with("train.toml:1:"));
}

#[test]
fn keys_with_too_many_parts_are_refused() {
    let deep = format!("{}x=1", "a.".repeat(12_000));
    let refused = read_with(TRAIN, &[&deep]).unwrap_err();
    assert!(refused.contains("more than 32 parts"));
    let variant = format!("{TRAIN}\n[variant.deep]\n\"{}x\" = 1\n", "a.".repeat(300));
    let refused = read_with(&variant, &[]).unwrap_err();
    assert!(refused.contains("more than 32 parts"));
}

#[test]
fn a_key_of_another_workload_is_named_with_the_workloads_that_have_it() {
    for (workload, expected) in [
        (
            "transfer = '1MB'\norder = 'at-once'",
            "train.toml:5: [workload] order: order belongs to objects, and this workload is transfer; leave it out",
        ),
        (
            "page = 'today/small'\nwarm = true",
            "train.toml:5: [workload] warm: warm belongs to objects, files, streams, transfer, and this workload is page",
        ),
        (
            "call = { rate = '1mbps', length = '2s' }\nloads = 2",
            "train.toml:5: [workload] loads: loads belongs to page, and this workload is call",
        ),
    ] {
        let error = error(&format!(
            "title = 'x'\nlink = 'lte-a'\n[workload]\n{workload}"
        ));
        assert!(error.starts_with(expected), "{error}");
    }
}

/// They were found when the first run began, without a place, or not at all.
#[test]
fn a_change_that_a_link_cannot_make_is_named_with_its_place() {
    for (link, change, expected) in [
        (
            "model=wifi",
            "link.rate = '1mbps'",
            "train.toml:6: [change.link] rate: the link is a radio alone",
        ),
        (
            "model=wifi, rtt=20ms",
            "link = { rtt = '0ms', wifi.mcs = 3 }",
            "train.toml:6: [change] link: a change does not remove the wire",
        ),
        (
            "rate=1mbps, rtt=20ms",
            "link.model = 'wifi'",
            "train.toml:6: [change.link] model: a change neither adds nor removes a radio",
        ),
        (
            "model=wifi, wifi.hops=2, wifi.shared=off, rtt=20ms",
            "link.wifi.hops = 3",
            "train.toml:6: [change.link.wifi] hops: a change neither adds nor removes a radio, its hops",
        ),
        (
            "model=wifi, rtt=20ms",
            "link.wifi.cable = '100mbps'",
            "train.toml:6: [change.link.wifi] cable: a change neither adds nor removes a radio, its hops or its cable",
        ),
        (
            "rate=1mbps, rtt=20ms, nat=30s",
            "link.nat = '10s'",
            "train.toml:6: [change.link] nat: a NAT does not change during a run",
        ),
        (
            "rate=1mbps, rtt=20ms",
            "link.wifi.mcs = 3",
            "train.toml:6: [change.link.wifi] mcs: ",
        ),
        (
            "rate=1mbps, rtt=20ms",
            "link.between = ['client', 'server']",
            "train.toml:6: [change.link] between: only a link as [links.NAME]",
        ),
    ] {
        let error = error(&format!(
            "title = 'x'\nlink = '{link}'\nworkload.objects = '1MB'\n[[change]]\nat = '1s'\n{change}"
        ));
        assert!(error.starts_with(expected), "{error}");
    }
    let fitting = "title = 'x'\nlink = 'model=wifi, rtt=20ms'\nworkload.objects = '1MB'\n[[change]]\nat = '1s'\nlink.rate = '1mbps'";
    assert!(read_with(fitting, &[]).is_ok());
}

#[test]
fn a_link_that_is_the_only_one_joins_client_and_server() {
    let error = error(
        "title = 'x'\nworkload.objects = '1MB'\n[link]\nrate = '1mbps'\nbetween = ['client', 'router']",
    );
    let expected = "train.toml:5: [link] between: only a link as [links.NAME] says whom it joins";
    assert!(error.starts_with(expected), "{error}");
}
