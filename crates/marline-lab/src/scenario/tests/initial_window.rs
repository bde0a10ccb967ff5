use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::{Average, HistoryConfig, PathScope, ZeroRtt};

use super::{error, read, read_with, with};
use crate::scenario::{InitialWindow, Learnt};

fn initial_window(text: &str, sets: &[&str]) -> InitialWindow {
    let experiment = read_with(&with(text), sets).unwrap();
    let settings = &experiment.cells[0].settings;
    settings.server.initial_window.clone().unwrap()
}

fn history(history: HistoryConfig) -> Option<Box<Learnt>> {
    Some(Box::new(Learnt {
        history,
        careful: None,
    }))
}

#[test]
fn switches_of_history_are_set_one_by_one() {
    let every = r#"
[initial_window]
fallback = 32
history = "published"
average = "window"
window = 4
scope = "global"
per_server_name = true
zero_rtt = "default"
cap = "240kB"
raise_only_when_limited = true
lifetime = "10min"
"#;
    let expected = HistoryConfig {
        average: Average::Window(4),
        scope: PathScope::Global,
        per_server_name: true,
        zero_rtt: ZeroRtt::Default,
        cap: Some(240_000),
        raise_only_when_limited: true,
        lifetime: std::time::Duration::from_secs(600),
    };
    let window = initial_window(every, &[]);
    assert_eq!(window.fallback, Some(32));
    assert_eq!(window.learnt, history(expected));
    let experiment = read(&with(every));
    let json = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
    let server = &json["server"];
    assert_eq!(server["initial_window_packets"], 32);
    assert_eq!(server["initial_window_learnt"]["average"], "window");
    assert_eq!(server["initial_window_learnt"]["window"], 4);
    assert_eq!(server["initial_window_learnt"]["cap"], 240_000);
    assert_eq!(server["initial_window_learnt"]["lifetime"], 600.0);
    let plain = read(&with("initial_window = 60"));
    let json = serde_json::to_value(&*plain.cells[0].settings).unwrap();
    assert!(json["server"].get("initial_window_learnt").is_none());
}

#[test]
fn an_initial_window_is_a_number_a_word_or_a_table() {
    let fallback = |packets| InitialWindow {
        fallback: Some(packets),
        learnt: None,
    };
    assert_eq!(initial_window("initial_window = 60", &[]), fallback(60));
    let word = initial_window("initial_window = 'history'", &[]);
    assert_eq!(word.learnt, history(HistoryConfig::default()));
    assert_eq!(word.fallback, None);
    let careful = initial_window(
        "server.initial_window = { careful = 'default', history = 'published', max_jump = '60kB', beta = 0.7 }",
        &[],
    );
    let expected = CarefulResumeConfig {
        max_jump: Some(60_000),
        beta: 0.7,
        lifetime: std::time::Duration::MAX,
        ..CarefulResumeConfig::default()
    };
    let learnt = careful.learnt.unwrap();
    assert_eq!(learnt.careful, Some(expected));
    assert_eq!(learnt.history, HistoryConfig::published());
    let carried = "[initial_window]\ncareful = 'tokens'\nlifetime = '5min'";
    let expected = CarefulResumeConfig {
        lifetime: std::time::Duration::from_secs(300),
        tokens: true,
        ..CarefulResumeConfig::default()
    };
    let learnt = initial_window(carried, &[]).learnt.unwrap();
    assert_eq!(learnt.careful, Some(expected));
    let experiment = read(&with(carried));
    let json = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
    let described = &json["server"]["initial_window_learnt"]["careful"];
    assert_eq!(described["tokens"], true);
    // Single switches, by variants and beside the file.
    let varied =
        "[variant.a]\ninitial_window = 'history'\n[sweep]\n'initial_window.fallback' = [10]";
    let varied = initial_window(varied, &["initial_window.average=mean"]);
    assert_eq!(varied.fallback, Some(10));
    assert_eq!(varied.learnt.unwrap().history.average, Average::Mean);
    let set = initial_window("initial_window = 'history'", &["initial_window=20"]);
    assert_eq!(set, fallback(20));
    // Flows in the background have keys of their own.
    let flows = "[[background]]\nkind = 'flows'\ninitial_window = 12";
    let experiment = read(&with(flows));
    let json = serde_json::to_value(&*experiment.cells[0].settings).unwrap();
    let ends = &json["background"][0]["traffic"]["flows"]["ends"];
    assert_eq!(ends["initial_window_packets"], 12);
}

#[test]
fn errors_in_initial_windows_name_line_and_key() {
    for (text, expected) in [
        (
            "initial_window = 'histery'",
            "train.toml:4: initial_window: unknown initial window \"histery\"; known: rfc9002, fixed; or write a number",
        ),
        ("initial_window = 1.5", "a number is not an initial window"),
        (
            "[initial_window]\nhistory = 'publishd'",
            "train.toml:5: [initial_window] history: unknown history \"publishd\"; did you mean published?",
        ),
        (
            "[initial_window]\nhistory = 'default'\nweight = 2",
            "train.toml:6: [initial_window] weight: this must be a number above 0",
        ),
        (
            "[initial_window]\nhistory = 'default'\naverage = 'window'\nwindow = 33",
            "this must be an integer from 1 to 32",
        ),
        (
            "[initial_window]\nhistory = 'default'\ncap = 'most'",
            "train.toml:6: [initial_window] cap:",
        ),
        ("initial_window.average = 'mean'", "unknown key \"average\""),
        (
            "initial_window = { careful = 'default', beta = 0.2 }",
            "beta: this must be a number from 0.5 to 1",
        ),
    ] {
        let error = error(&with(text));
        assert!(error.contains(expected), "{text}: {error}");
    }
}
