//! Settings of ends: every key, policies with parameters, keys that were written otherwise once.

use marline::TransportConfig;
use marline::settings::{Shown, Value as Setting, Written, show};

use super::*;

fn server(text: &str) -> TransportConfig {
    read(&with(text)).cells[0].settings.server.transport()
}

/// A setting as it is written in a scenario.
fn toml(written: &Written) -> String {
    match written {
        Written::Text(text) => format!("'{text}'"),
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
    assert_eq!(config.receive_window, 4 << 20);
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
        ("ack = 'every 10'", "ack = 'as_asked(packets=10)'"),
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
        ("path_scheduler = 'rr'", ""),
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
            "train.toml:6: [server] receive_window: this must be a size from 1B to 16GiB, not \"0B\"",
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
    assert_eq!(set("receive_window=2MiB"), 2 << 20);
    assert_eq!(set("receive-window=2MiB"), 2 << 20);
    assert_eq!(set("server.receive-window=2MiB"), 2 << 20);
}

#[test]
fn a_key_in_both_spellings_is_refused() {
    let text = with("keep_alive = '1s'\nkeep-alive = '2s'");
    let error = Experiment::parse(&text, "x.toml", &[]).unwrap_err();
    assert!(error.to_string().contains("there twice"), "{error}");
}
