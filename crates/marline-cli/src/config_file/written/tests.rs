//! Keys of files, and messages about them.

use marline::coordination::bundle::BundleConfig;
use marline::{MultipathConfig, Profile, TransportConfig};

use super::super::tests::read;
use super::*;

fn applied(text: &str, profile: Profile) -> TransportConfig {
    let mut transport = profile.config();
    let file = read(text).unwrap();
    let settings = TransportConfig::SETTINGS;
    file.transport.apply(settings, &mut transport).unwrap();
    transport
}

/// A value as it is written in a file.
fn toml(written: &RawValue) -> String {
    match written {
        RawValue::Text(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

/// Reads every key of `settings` with its smallest and largest values, in the table `head`.
fn every_key<C: Clone>(
    head: &str,
    settings: Settings<C>,
    default: &C,
    of: impl Fn(TransportConfig) -> C,
) {
    for setting in settings {
        for sample in setting.samples() {
            let mut expected = default.clone();
            setting.set(&mut expected, &sample).unwrap();
            for key in [setting.key().to_owned(), setting.key().replace('_', "-")] {
                let text = format!("{head}{key} = {}\n", toml(&sample));
                let read = of(applied(&text, Profile::Default));
                assert_eq!(setting.show(&read), setting.show(&expected), "{text}");
            }
        }
    }
}

#[test]
fn every_key_of_a_connection_is_read() {
    let default = TransportConfig::default();
    every_key("", TransportConfig::SETTINGS, &default, |config| config);
    every_key(
        "[bundle]\n",
        BundleConfig::SETTINGS,
        &BundleConfig::default(),
        |config| BundleConfig::clone(&config.bundle.unwrap()),
    );
    every_key(
        "[multipath]\n",
        MultipathConfig::SETTINGS,
        &MultipathConfig::default(),
        |config| config.multipath.unwrap(),
    );
}

#[test]
fn tables_switch_on_what_they_are_about_under_any_profile() {
    for profile in [
        Profile::Default,
        Profile::History,
        Profile::Rfc,
        Profile::Gquic,
    ] {
        let config = applied("[bundle]\n[multipath]\n", profile);
        assert_eq!(config.bundle.as_deref(), Some(&BundleConfig::default()));
        let paths = config.multipath.unwrap();
        assert_eq!(paths.max_paths, MultipathConfig::default().max_paths);
        assert!(applied("bundle = false\n", profile).bundle.is_none());
    }
}

#[test]
fn wrong_keys_and_values_are_refused_by_file_line_and_key() {
    for (text, line, words) in [
        (
            "[bundle]\nfiar = true",
            3,
            "bundle.fiar: unknown key \"fiar\"; did you mean fair?",
        ),
        (
            "[bundle]\nfair = 'yes'",
            3,
            "bundle.fair: this must be true or false, not \"yes\"",
        ),
        (
            "[bundle]\nfair = true\nconnections = 17",
            4,
            "bundle.connections: this must be an integer from 1 to 16, not 17",
        ),
        ("[bundle]\nconnections = -1", 3, "not -1"),
        (
            "[bundle]\nsync-state = true\nscope = 'some'",
            4,
            "known: all, active",
        ),
        (
            "[bundle]\ncorroborated-by = 'all'",
            3,
            "bundle.corroborated-by: this must be an integer from 1 to 16, or \"never\", not \"all\"",
        ),
        ("[multipath]\nmax-path = 3", 3, "did you mean max_paths?"),
        (
            "[multipath]\nscheduler = 'rr'\nmax-paths = 0",
            4,
            "from 1 to 16, not 0",
        ),
        ("[multipath]\nscheduler = 'best'", 3, "known: rr, lrf"),
        (
            "[multipath]\nscheduler = 'ecf(beta=11)'",
            3,
            "beta: this must be a number from 0 to 10",
        ),
        (
            "[multipath]\nprobe-interval = 'never'",
            3,
            "a time from 1ms to 1d",
        ),
        ("[multipath]\ngive-up-after = '30'", 3, "has no unit"),
        (
            "[multipath]\nkeep-alive = '999999min'",
            3,
            "a time from 1ms to 1d",
        ),
        (
            "[multipath]\nreinjection = 1.5",
            3,
            "a number from 0 to 1, true, false or \"none\", not 1.5",
        ),
        (
            "[multipath.bundle-paths]\nfloor-packets = 0",
            3,
            "from 1 to 1000, not 0",
        ),
        ("receive_window = '4m'", 2, "unknown unit \"m\""),
        ("slow-start-exit = 'hybird'", 2, "did you mean hybrid?"),
        (
            "receive_window = '''as\nis'''",
            2,
            "\"as\\nis\" is not a size",
        ),
    ] {
        let error = read(&format!("cc = 'cubic'\n{text}\n")).unwrap_err();
        let place = format!("site.toml:{line}: ");
        assert!(error.contains(&place) && error.contains(words), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// A table with many keys and a long name: neither its lines nor its names may be kept once for each key.
#[test]
fn the_size_of_what_is_kept_of_a_file_is_bounded_by_the_file() {
    fn names(keys: &Keys) -> usize {
        let keys = keys.0.iter();
        keys.map(|(name, key)| name.len() + names(&key.inside))
            .sum()
    }
    let long = "long".repeat(10_000);
    let mut text = format!("[{long}]\n");
    for number in 0..100_000 {
        text.push_str(&format!("key{number} = 1\n"));
    }
    let table = WrittenTable::read("site.toml", &text).unwrap();
    assert!(names(&table.keys) < text.len());
    assert_eq!(table.line_of(&[&long, "key99999"]), Some(100_001));
    let error = read(&text).unwrap_err();
    assert!(error.contains("site.toml:1: unknown key \"long"), "{error}");
    assert!(error.len() < 1000, "{} bytes", error.len());
}

#[test]
fn of_many_unknown_keys_the_first_is_refused() {
    let numbers = (0..100_000).rev();
    let text: String = numbers.map(|number| format!("key{number} = 1\n")).collect();
    let error = read(&text).unwrap_err();
    assert!(
        error.contains("site.toml:1: unknown key \"key99999\""),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    let error = read(&format!("[multipath]\n{text}")).unwrap_err();
    let words = "site.toml:2: multipath.key99999: unknown key";
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_key_in_both_spellings_is_refused_with_both_lines() {
    let error = read("[multipath]\nmax-paths = 3\nscheduler = 'rr'\nmax_paths = 4").unwrap_err();
    let words = "site.toml:4: multipath.max_paths: this key is there twice, in line 2 as well";
    assert!(error.contains(words), "{error}");
}

#[test]
fn what_is_no_toml_is_refused_with_its_key() {
    let error = read("grease = true\ntail_duplication = maybe").unwrap_err();
    assert!(error.contains("site.toml:2: tail_duplication: "), "{error}");
    let error = read("grease = true\ntail_duplication").unwrap_err();
    assert!(error.contains("site.toml:2: key with no value"), "{error}");
}

#[test]
fn only_text_in_quotes_is_text() {
    for (value, words) in [
        ("1979-05-27", "not the date or time 1979-05-27"),
        ("07:32:00", "not the date or time 07:32:00"),
        ("5", "not 5"),
        ("5.5", "not 5.5"),
        ("true", "not true"),
        ("99999999999999999999", "not 100000000000000000000"),
        ("0xffffffffffffffffff", "not inf"),
        ("['www']", "not a list"),
    ] {
        for key in ["dir", "access_log", "history.namespace", "cc"] {
            let Err(error) = read(&format!("{key} = {value}")) else {
                panic!("{key} = {value} is accepted");
            };
            assert!(error.contains(words), "{key}: {error}");
        }
    }
}
