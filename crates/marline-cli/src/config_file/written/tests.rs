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
fn toml(written: &Written) -> String {
    match written {
        Written::Text(text) => format!("'{text}'"),
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
                let read = of(applied(&text, Profile::Plain));
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
    for profile in Profile::ALL {
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
    ] {
        let error = read(&format!("cc = 'cubic'\n{text}\n")).unwrap_err();
        let place = format!("site.toml:{line}: ");
        assert!(error.contains(&place) && error.contains(words), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
