//! Values that replace others.

use super::*;
use marline::EcnMode;

#[test]
fn a_value_that_a_sweep_or_every_variant_replaces_must_be_valid() {
    let head = "title = 'x'\nworkload.objects = '1MB'\n";
    for (text, line, word) in [
        (
            "link = 'rate=1mbps, rtt=20ms, loss=150%'\n[sweep]\n'link.loss' = ['0%', '1%']\n",
            ":3: link",
            "150%",
        ),
        (
            "[link]\nrate = '1mbps'\nloss = '150%'\n[sweep]\n'link.loss' = ['0%', '1%']\n",
            ":5: [link] loss",
            "150%",
        ),
        (
            "link = 'rate=1mbps'\ncc = 'cubik'\n[variant.a]\ncc = 'bbr'\n[variant.b]\ncc = 'cubic'\n",
            ":4: cc",
            "cubik",
        ),
        (
            "cc = 'cubik'\n[sweep]\nlink = ['rate=1mbps', 'rate=2mbps']\ncc = ['cubic', 'bbr']\n",
            ":3: cc",
            "cubik",
        ),
    ] {
        let error = read_with(&format!("{head}{text}"), &[]).unwrap_err();
        assert!(error.contains(line) && error.contains(word), "{error}");
    }
    // A value may be missing.
    read(&format!(
        "{head}[sweep]\nlink = ['rate=1mbps', 'rate=2mbps']\n"
    ));
    read(&format!(
        "{head}link = 'rtt=20ms'\n[sweep]\n'link.rate' = ['1mbps', '2mbps']\n"
    ));
}

#[test]
fn overrides_replace_single_values() {
    let text = with(
        "[variant.a]\nlink.delay = '5ms'\n[variant.b]\nlink.preset = 'wifi-7'\n[variant.c]\nlink = 'lte-a'\nserver.cc = 'bbr'\nworkload.transfer = '2MB'\n",
    );
    let experiment = read(&text);
    assert_eq!(spec(&experiment, 0), "rate=1mbps, delay=5ms");
    assert_eq!(spec(&experiment, 1), "wifi-7, rate=1mbps, rtt=20ms");
    assert_eq!(spec(&experiment, 2), "lte-a");
    let settings = &experiment.cells[2].settings;
    assert_eq!(
        (cc(&settings.client), cc(&settings.server)),
        ("wireless", "bbr")
    );
    assert!(matches!(
        settings.workload,
        Workload::Transfer {
            bytes: 2_000_000,
            ..
        }
    ));
}

#[test]
fn keys_of_the_experiment_are_not_of_variants_and_points() {
    for (text, words) in [
        (
            with("[variant.few]\nrepeats = 5"),
            "repeats is of the whole experiment; set it at the top of the file",
        ),
        (
            with("[variant.few]\nquick-repeats = 5"),
            "quick-repeats is of the whole experiment",
        ),
        (
            TRAIN.replace("[sweep]", "[sweep]\nseed = [1, 2]"),
            "seed is of the whole experiment",
        ),
    ] {
        let problem = read_with(&text, &[]).unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
    }
    assert!(read_with(&with("[variant.emulated]\nbackend = 'emu'"), &[]).is_ok());
}

#[test]
fn overrides_come_from_the_command_line() {
    let experiment = read_with(
        TRAIN,
        &[
            "repeats=5",
            "link.rate=5mbps",
            "server.ecn=false",
            "http.version=2",
            "workload.objects=['1kB']",
        ],
    )
    .unwrap();
    assert_eq!(experiment.repeats, 5);
    assert_eq!(
        spec(&experiment, 0),
        "rate=5mbps, rtt=80ms, loss=0%, buffer=200kB"
    );
    let settings = &experiment.cells[0].settings;
    assert_eq!(
        (
            settings.server.transport().ecn,
            settings.client.transport().ecn
        ),
        (EcnMode::Off, EcnMode::Classic)
    );
    assert_eq!(settings.http.version, HttpVersion::Http2);
    let both = read_with(&with("server.cc = 'bbr'"), &["cc=newreno"]).unwrap();
    assert_eq!(cc(&both.cells[0].settings.server), "newreno");
    for (set, words) in [
        (
            "link.loss=2%",
            "--set link.loss=2%: variants or the sweep set link.loss; change it there",
        ),
        (
            "lnk.rate=2mbps",
            "--set lnk.rate=2mbps: unknown key \"lnk\"; did you mean link?",
        ),
        ("repeats", "write KEY=VALUE"),
        (
            "repeats=none",
            "--set repeats=none: this must be an integer",
        ),
        ("links.1.rate=1mbps", "there is no such link"),
        ("title.x=1", "there is nothing in \"title\" to set"),
        (
            "background.1.count=3",
            "background is a list; begin each member with [[background]]",
        ),
    ] {
        let error = read_with(TRAIN, &[set]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn members_of_lists_are_counted_from_one() {
    let text = with("[[background]]\nkind = 'flows'\n[sweep]\n'background.1.count' = [1, 2, 4]");
    let experiment = read(&text);
    let counts: Vec<_> = experiment
        .cells
        .iter()
        .map(|cell| &cell.settings.background[0].traffic)
        .collect();
    assert!(matches!(counts[2], Traffic::Flows { count: 4, .. }));
    let missing = with("[[background]]\nkind = 'flows'\n[sweep]\n'background.2.count' = [1]");
    assert!(
        error(&missing).contains("\"background\" has no member \"2\"; they are counted from 1")
    );
}
