use std::time::Duration;

use marline::coordination::history::{Average, PathScope, ZeroRtt};

use super::super::tests::read;
use super::*;

fn table(text: &str) -> History {
    read(&format!("[history]\n{text}"))
        .unwrap()
        .history
        .unwrap()
}

#[test]
fn an_empty_table_is_the_default_in_memory() {
    assert_eq!(table(""), History::default());
    assert_eq!(History::default().location, StoreLocation::Memory);
    assert!(read("dir = 'www'").unwrap().history.is_none());
}

#[test]
fn every_key_sets_its_switch() {
    let text = "policy = 'average'\naverage = 'window'\nwindow = 5\nscope = 'prefix'\nv4-prefix = 20\n\
                v6-prefix = 56\nper-server-name = false\nzero-rtt = 'carry'\ncap = 100000\n\
                raise-only-when-limited = false\nlifetime = '2h'\nrecords = 1000\n\
                records-per-network = 10\n";
    let lifetime = Duration::from_secs(7200);
    let expected = History {
        policy: HistoryPolicy::Average,
        tokens: false,
        config: HistoryConfig {
            average: Average::Window(5),
            scope: PathScope::Prefix { v4: 20, v6: 56 },
            per_server_name: false,
            zero_rtt: ZeroRtt::Carry,
            cap: Some(100_000),
            raise_only_when_limited: false,
            lifetime,
        },
        limits: StoreLimits {
            records: 1000,
            lifetime,
            of_one_network: 10,
        },
        max_jump: Some(100_000),
        location: StoreLocation::Memory,
    };
    assert_eq!(table(text), expected);
    assert_eq!(table("policy = 'careful'").policy, HistoryPolicy::Careful);
    assert!(table("tokens = true").tokens);
    assert_eq!(table("cap = 'none'").config.cap, None);
    for (text, scope) in [
        ("scope = 'address'", PathScope::Address),
        ("scope = 'global'", PathScope::Global),
        ("v6-prefix = 64", PathScope::Prefix { v4: 24, v6: 64 }),
    ] {
        assert_eq!(table(text).config.scope, scope);
    }
    for (text, average) in [
        ("average = 'mean'", Average::Mean),
        ("average = 'window'", Average::Window(8)),
        (
            "average = 'moving'\nweight = 0.5",
            Average::Ewma { weight: 0.5 },
        ),
        ("weight = 1.0", Average::Ewma { weight: 1.0 }),
    ] {
        assert_eq!(table(text).config.average, average);
    }
    for (text, seconds) in [("90s", 90), ("15min", 900), ("1h", 3600), ("7 d", 604_800)] {
        let lifetime = table(&format!("lifetime = '{text}'")).config.lifetime;
        assert_eq!(lifetime.as_secs(), seconds);
    }
    let sessions = table("zero-rtt = 'default'").config.zero_rtt;
    assert_eq!(sessions, ZeroRtt::Default);
}

#[test]
fn a_store_is_a_file_or_a_server() {
    match table("file = 'paths.redb'").location {
        StoreLocation::File(path) => assert!(path.is_absolute() && path.ends_with("paths.redb")),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        table("file = '/var/lib/paths.redb'").location,
        StoreLocation::File("/var/lib/paths.redb".into())
    );
    for (text, expected) in [("", NAMESPACE), ("namespace = 'web'", "web")] {
        match table(&format!("server = 'redis://h:6379'\n{text}")).location {
            StoreLocation::Server { url, namespace, .. } => {
                assert_eq!((&*url, &*namespace), ("redis://h:6379", expected));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn history_must_be_a_table() {
    let error = read("history = 'paths.redb'").unwrap_err();
    assert!(
        error.contains("site.toml:1:") && error.contains("the table [history]"),
        "{error}"
    );
}

#[test]
fn wrong_keys_and_values_are_refused_by_line() {
    for (text, line, words) in [
        ("polcy = 'careful'", 3, "did you mean policy?"),
        ("policy = 'bold'", 3, "known: average, careful"),
        (
            "file = 5",
            3,
            "history.file: this must be the path of a file, not 5",
        ),
        ("file = ''", 3, "no name"),
        ("namespace = 'web'", 3, "`server`"),
        (
            "file = 'a'\n\nserver = 'redis://h'",
            5,
            "site.toml:3) are two locations",
        ),
        ("average = 'median'", 3, "known: mean, window, ewma"),
        (
            "average = 'mean'\nweight = 0.5",
            4,
            "weight needs average = \"ewma\"",
        ),
        ("window = 3", 3, "window needs average = \"window\""),
        ("average = 'window'\nwindow = 0", 4, "from 1 to 32, not 0"),
        ("average = 'window'\nwindow = 33", 4, "not 33"),
        ("weight = 0.0", 3, "above 0 and at most 1, not 0"),
        ("weight = 1.5", 3, "not 1.5"),
        ("weight = nan", 3, "not NaN"),
        ("scope = 'city'", 3, "known: prefix, address, global"),
        (
            "scope = 'address'\nv4-prefix = 24",
            4,
            "needs scope = \"prefix\"",
        ),
        ("v4-prefix = 33", 3, "from 1 to 32, not 33"),
        ("v6-prefix = 0", 3, "from 1 to 128, not 0"),
        ("per-server-name = 1", 3, "true or false, not 1"),
        ("zero-rtt = 'never'", 3, "known: carry, history, default"),
        ("cap = 0", 3, "from 1B to 4GiB, or \"none\", not 0"),
        ("cap = -1", 3, "not -1"),
        ("cap = 'much'", 3, "not \"much\""),
        ("cap = 1.5", 3, "or \"none\", not 1.5"),
        ("lifetime = '1 hour'", 3, "unknown unit \"hour\""),
        ("lifetime = '0s'", 3, "not \"0s\""),
        ("lifetime = '400d'", 3, "from 1ms to 365d"),
        ("lifetime = '99999999999999999999d'", 3, "not \"9"),
        (
            "lifetime = 3600",
            3,
            "a time from 1ms to 365d, or \"none\", not 3600",
        ),
        ("records = 0", 3, "from 1 to 100000000, not 0"),
        ("records-per-network = -5", 3, "not -5"),
    ] {
        let error = read(&format!("cc = 'cubic'\n[history]\n{text}\n")).unwrap_err();
        let place = format!("site.toml:{line}: ");
        assert!(error.contains(&place) && error.contains(words), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
