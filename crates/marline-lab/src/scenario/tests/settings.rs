//! Settings of ends: every key, policies with parameters, former names of keys.

use marline::settings::{RawValue, Shown, Value as Setting, show};
use marline::{MultipathConfig, TransportConfig};

use super::*;

fn server(text: &str) -> TransportConfig {
    read(&with(text)).cells[0].settings.server.transport()
}

/// A setting as written in a scenario.
fn toml(written: &RawValue) -> String {
    match written {
        RawValue::Text(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

#[test]
fn every_setting_is_read_and_serialized() {
    for setting in TransportConfig::SETTINGS {
        let key = setting.key();
        for sample in setting.samples() {
            let text = with(&format!("{key} = {}", toml(&sample)));
            let experiment = read(&text);
            let settings = &experiment.cells[0].settings;
            let mut expected = TransportConfig::default();
            setting.set(&mut expected, &sample).unwrap();
            let Some(expected) = setting.show(&expected) else {
                panic!("{key} does not apply");
            };
            let is = setting.show(&settings.server.transport());
            if key != "multipath" {
                assert_eq!(is.as_ref(), Some(&expected), "{text}");
            }
            let json = serde_json::to_value(&**settings).unwrap();
            match expected {
                Shown::Value(Setting::Word(word)) => assert_eq!(json["server"][key], word),
                Shown::Value(Setting::Integer(number)) => {
                    assert_eq!(json["server"][key], number, "{text}");
                }
                _ => assert!(!json["server"][key].is_null(), "{text}"),
            }
        }
    }
}

#[test]
fn parameters_of_policies_are_set_and_varied() {
    let config = server(
        "slow_start_exit = 'hybrid(factor=0.25, max_rise=none)'\nloss_detection = 'rfc9002(packets=10)'\n\
         ack = 'decimation(packets=20, start_after=0, rtt_fraction=0.5)'\nreceive_window = '4MiB'\n\
         multipath.on = true\nmultipath.scheduler = 'ecf(beta=0.5, variant=paper)'",
    );
    let exit = (config.slow_start_exit)().spec().to_string();
    assert_eq!(exit, "hybrid(factor=0.25, max_rise=none)");
    assert_eq!((config.loss_detector)().packet_threshold(), Some(10));
    let ack = (config.ack_policy)().spec().to_string();
    assert_eq!(
        ack,
        "decimation(packets=20, start_after=0, rtt_fraction=0.5)"
    );
    assert_eq!(config.receive_window, Some(4 << 20));
    let scheduler = config.multipath.unwrap().scheduler;
    assert_eq!(
        scheduler().spec().to_string(),
        "ecf(beta=0.5, variant=paper)"
    );
    let swept = read(&with(
        "[sweep]\nslow_start_exit = ['hybrid', 'hybrid(factor=0.25)']\n'server.send_buffer' = ['64kB']",
    ));
    let exits = swept.cells.iter().map(|cell| {
        let config = cell.settings.client.transport();
        (config.slow_start_exit)().spec().to_string()
    });
    assert_eq!(exits.collect::<Vec<_>>(), ["hybrid", "hybrid(factor=0.25)"]);
    assert_eq!(
        swept.cells[0].settings.server.transport().send_buffer,
        64_000
    );
}

#[test]
fn older_spellings_of_keys_are_accepted() {
    let settings = |text: &str| show(TransportConfig::SETTINGS, &server(text));
    for (old, new) in [
        ("ack = 'every 10'", "ack = 'peer_requested(packets=10)'"),
        (
            "multipath = true\npath_scheduler = 'hbes_free_window'",
            "multipath.on = true\nmultipath.scheduler = 'hbes(queue_model=free_window)'",
        ),
        (
            "multipath = true\nreinjection = false\nsame_tuple_paths = 3\nbundle_paths = 'published'",
            "[multipath]\non = true\nreinjection = 0\nsame_tuple_paths = 3\nbundle_paths.base = 'published'",
        ),
        (
            "initial_window = 32",
            "initial_window = 'fixed(packets=32)'",
        ),
        ("multipath = false", "multipath.on = false"),
        ("path_scheduler = 'rr'", "multipath.scheduler = 'rr'"),
    ] {
        assert_eq!(settings(old), settings(new), "{old}");
    }
    let multipath = |text| server(text).multipath.unwrap().max_paths;
    assert_eq!(multipath("multipath = true"), 16);
    assert_eq!(multipath("multipath.on = true\nmultipath.max_paths = 3"), 3);
    assert_eq!(multipath("profile = 'multipath'\npath_scheduler = 'rr'"), 4);
    let varied = "path_scheduler = 'lrf'\n[variant.a]\nmultipath = true\n[variant.b]\nmultipath = true\n\
                  multipath.scheduler = 'rr'";
    assert!(
        read_with(&with(varied), &[]).is_err(),
        "TOML has a key once"
    );
    let varied = "path_scheduler = 'lrf'\nserver.multipath = true\n[variant.a]\n[variant.b]\n\
                  path_scheduler = 'rr'";
    let cells = read(&with(varied)).cells;
    let schedulers = cells.iter().map(|cell| {
        let config = cell.settings.server.transport().multipath.unwrap();
        (config.scheduler)().name()
    });
    assert_eq!(schedulers.collect::<Vec<_>>(), ["lrf", "rr"]);
}

#[test]
fn wrong_values_name_line_key_and_what_is_allowed() {
    for (text, expected) in [
        (
            "slow_start_exit = 'hybrid(factor=11)'",
            "train.toml:4: slow_start_exit: hybrid: factor: this must be a number from 0 to 10, not 11",
        ),
        (
            "\n[server]\nreceive_window = '0B'",
            "train.toml:6: [server] receive_window: this must be a size from 1B to 16GiB, or \"by_role\", not \"0B\"",
        ),
        (
            "[multipath]\non = true\nmax_paths = 17",
            "train.toml:6: [multipath] max_paths: this must be an integer from 1 to 16, not 17",
        ),
        (
            "[variant.a]\nsame_tuple_paths = 17",
            "train.toml:5: [variant.a] same_tuple_paths: this must be an integer from 1 to 16, not 17",
        ),
        (
            "recieve_window = '1MB'",
            "train.toml:4: recieve_window: unknown key \"recieve_window\"; did you mean receive_window?",
        ),
    ] {
        let error = error(&with(text));
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    let set = read_with(&with(""), &["hybrid.factor=0.5"]).unwrap_err();
    let words = "--set hybrid.factor=0.5: \"hybrid\" is not a key but a value of slow_start_exit; \
                 write slow_start_exit=\"hybrid(factor=0.5)\"";
    assert_eq!(set, words);
    let set = read_with(&with(""), &["ack=decimation(packets=0)"]).unwrap_err();
    let words =
        "--set ack=decimation(packets=0): decimation: packets: this must be an integer from 1";
    assert!(set.contains(words), "{set}");
}

#[test]
fn a_dash_may_stand_for_each_underscore_as_in_the_servers_file() {
    let dashed = "receive-window = '4MiB'\ntime-limit = '7s'\npath-scheduler = 'rr'\n\
                  multipath.bundle-paths.floor-packets = 3\ninitial-window.per-server-name = false\n\
                  initial-window.history = 'default'\n\
                  [server]\nkeep-alive = '2s'\n[variant.one-way]\nclient.receive-window = '1MiB'\n";
    let read = |text: &str| {
        let experiment = read(&with(text));
        assert_eq!(&*experiment.variants[0], "one-way", "names stay");
        let settings = &experiment.cells[0].settings;
        serde_json::to_value(&**settings).unwrap()
    };
    let snake = dashed.replace('-', "_").replace("one_way", "one-way");
    let is = read(dashed);
    assert_eq!(is, read(&snake));
    assert_eq!(is["client"]["receive_window"], 1 << 20);
    assert_eq!(is["server"]["receive_window"], 4 << 20);
    let set = |set: &str| {
        let text = with("receive-window = '4MiB'");
        let experiment = Experiment::parse(&text, "x.toml", &[set.to_owned()]).unwrap();
        let config = experiment.cells[0].settings.server.transport();
        config.receive_window
    };
    assert_eq!(set("receive_window=2MiB"), Some(2 << 20));
    assert_eq!(set("receive-window=2MiB"), Some(2 << 20));
    assert_eq!(set("server.receive-window=2MiB"), Some(2 << 20));
}

#[test]
fn a_key_in_both_spellings_is_refused_with_both_lines() {
    for (text, second, first) in [
        ("keep_alive = '1s'\nkeep-alive = '2s'", 5, 4),
        ("time-limit = '1s'\ntime_limit = '2s'", 5, 4),
        ("max-idle_timeout = '1s'\nmax_idle-timeout = '2s'", 5, 4),
        ("[server]\nkeep_alive = '1s'\nkeep-alive = '2s'", 6, 5),
        ("[multipath]\nmax-paths = 3\nmax_paths = 4", 6, 5),
        ("path_scheduler = 'rr'\nmultipath.scheduler = 'lrf'", 5, 4),
        ("path_scheduler = 'rr'\npath-scheduler = 'lrf'", 5, 4),
        ("[variant.a]\nkeep_alive = '1s'\nkeep-alive = '2s'", 6, 5),
        (
            "[variant.a]\nclient.keep_alive = '1s'\n'client.keep-alive' = '2s'",
            6,
            5,
        ),
        (
            "[variant.a]\npath_scheduler = 'rr'\nmultipath.scheduler = 'lrf'",
            6,
            5,
        ),
        ("[sweep]\nkeep_alive = ['1s']\nkeep-alive = ['2s']", 6, 5),
        (
            "[sweep]\nclient.keep_alive = ['1s']\n'client.keep-alive' = ['2s']",
            6,
            5,
        ),
        (
            "[sweep.place.near]\nkeep_alive = '1s'\nkeep-alive = '2s'",
            6,
            5,
        ),
        (
            "[sweep]\nkeep_alive = ['1s']\nplace.near = { keep-alive = '2s' }",
            6,
            5,
        ),
        (
            "[sweep]\npoints = [{ keep_alive = '1s', keep-alive = '2s' }]",
            5,
            5,
        ),
        (
            "[[background]]\nkind = 'flows'\nkeep_alive = '1s'\nkeep-alive = '2s'",
            7,
            6,
        ),
    ] {
        let error = error(&with(text));
        let words = format!("this key is there twice, in line {first} as well; keep one of them");
        let place = format!("train.toml:{second}: ");
        assert!(
            error.contains(&words) && error.contains(&place),
            "{text}\n{error}"
        );
    }
    let elsewhere = "multipath.max-paths = 3\n[client]\nmultipath.max_paths = 4";
    let experiment = read(&with(elsewhere));
    let settings = &experiment.cells[0].settings;
    let most = |end: &EndpointSettings| end.transport().multipath.unwrap().max_paths;
    assert_eq!((most(&settings.client), most(&settings.server)), (4, 3));
}

#[test]
fn a_key_of_multipath_switches_it_on_as_in_a_servers_file() {
    let is_on = |text: &str| server(text).multipath.is_some();
    for text in [
        "multipath = { scheduler = 'rr' }",
        "multipath.scheduler = 'rr'",
        "path_scheduler = 'rr'",
        "[server]\nmultipath.scheduler = 'rr'",
        "[multipath]",
        "same_tuple_paths = 3",
    ] {
        assert!(is_on(text), "{text}");
        let config = server(text).multipath.unwrap();
        assert_eq!(config.max_paths, MultipathConfig::MAX_PATHS, "{text}");
    }
    for text in [
        "multipath = { on = false, scheduler = 'rr' }",
        "path_scheduler = 'rr'\nmultipath = false",
        "path_scheduler = 'rr'\n[server]\nmultipath = false",
        "[client]\nmultipath.scheduler = 'rr'",
    ] {
        assert!(!is_on(text), "{text}");
    }
}

#[test]
fn a_date_is_no_text() {
    for text in [
        "shows = 1979-05-27",
        "paper = 1979-05-27",
        "backend = 1979-05-27",
        "cc = 1979-05-27",
        "keep_alive = 07:32:00",
        "metrics = [1979-05-27]",
        "[sweep]\n'link.loss' = [1979-05-27]",
    ] {
        let error = error(&with(text));
        assert!(
            error.contains("date or time") && error.contains("train.toml:"),
            "{error}"
        );
    }
    let date = read_with(&with(""), &["shows=1979-05-27"]).unwrap_err();
    assert!(
        date.starts_with("--set shows=1979-05-27: a date or time is not text"),
        "{date}"
    );
    let error = error(&with("paper = true"));
    assert!(
        error.contains("true or false is not text; write it in quotes"),
        "{error}"
    );
}

#[test]
fn an_integer_that_is_too_large_is_refused_where_it_is_written() {
    let large = "9".repeat(40);
    for key in ["repeats", "path", "link.buffer", "workload.seed", "x"] {
        let set = format!("{key}={large}");
        let error = read_with(&with(""), &[&set]).unwrap_err();
        let expected = format!("--set {set}: the integer is larger than 9223372036854775807");
        assert_eq!(error, expected);
        let list = format!("{key}=[1, {large}]");
        let error = read_with(&with(""), &[&list]).unwrap_err();
        assert!(error.starts_with("--set "), "{error}");
    }
    let error = error(&with(&format!("repeats = {large}")));
    assert!(
        error.contains("train.toml:4: repeats: the integer is larger than 9223372036854775807"),
        "{error}"
    );
}

#[test]
fn long_and_many_keys_are_refused_in_a_short_message() {
    let long = "long".repeat(100_000);
    let keys: String = (0..2000)
        .map(|number| format!("key{number} = 1\n"))
        .collect();
    for (text, words) in [
        (
            format!("{long} = 1"),
            "the key has 400000 bytes, more than 1000",
        ),
        (
            format!("[{long}]\n{keys}"),
            "the key has 400000 bytes, more than 1000",
        ),
        (
            format!("[variant.a]\n{keys}"),
            "there are more than 1000 keys",
        ),
        (
            format!("[sweep.place.near]\n{keys}"),
            "there are more than 1000 keys",
        ),
        (
            format!("[sweep]\n{}", keys.replace("= 1", "= [1]")),
            "these are more than 100 parameters",
        ),
        (
            format!("[variant]\n{}", keys.replace("= 1", "= {}")),
            "there are more than 1000 variants",
        ),
        (keys, "train.toml:4: key0: unknown key \"key0\""),
        (format!("cc = '{long}'"), "unknown controller \"long"),
    ] {
        let error = error(&with(&text));
        assert!(error.contains(words) && error.len() < 3000, "{error:.3000}");
    }
}
