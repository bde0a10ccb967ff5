use marline::coordination::bundle::{BundleConfig, BundleScope, Coalesce, RateBasedShare};

use super::{read, read_with, with};

#[test]
fn switches_of_a_bundle_are_set_one_by_one() {
    let every = r#"
[bundle]
base = "published"
split_initial_window = false
sync_windows = false
sync_state = false
backoff = "measured"
slow_start_growth = 2
avoidance_growth = 1.1
affected_growth = 1.05
imbalance = 1.25
rate_imbalance = 3
backoff_on_delay = false
scope = "active"
coalesce = "member"
corroborated_by = 2
floor_packets = 4
fair = true
rate_based_share = "one"
connections = 6
match_addresses = true
"#;
    let experiment = read(&with(every));
    let settings = &experiment.cells[0].settings;
    let expected = BundleConfig {
        split_initial_window: false,
        sync_windows: false,
        sync_state: false,
        backoff: None,
        slow_start_growth: Some(2.0),
        avoidance_growth: 1.1,
        affected_growth: 1.05,
        imbalance: 1.25,
        rate_imbalance: 3.0,
        backoff_on_delay: false,
        scope: BundleScope::Active,
        coalesce: Coalesce::Member,
        corroborated_by: Some(2),
        floor_packets: 4,
        fair: true,
        rate_based_share: RateBasedShare::One,
        connections: 6,
        match_addresses: true,
    };
    assert_eq!(
        settings.server.transport().bundle.as_deref(),
        Some(&expected)
    );
    assert_eq!(settings.client, settings.server);
    let json = serde_json::to_value(&**settings).unwrap();
    let described = &json["server"]["bundle"];
    assert_eq!(described["backoff"], "measured");
    assert_eq!(described["slow_start_growth"], 2.0);
    assert_eq!(described["scope"], "active");
    assert_eq!(described["coalesce"], "member");
    assert_eq!(described["fair"], true);
    assert_eq!(described["corroborated_by"], 2);
    let read_plain = read(&with("http.bundle = true"));
    let json = serde_json::to_value(&*read_plain.cells[0].settings).unwrap();
    assert_eq!(json["server"]["bundle"], false);
    assert_eq!(json["http"]["bundle"], true);
    assert_eq!(json["http"]["ranges"], "auto");
}

#[test]
fn a_bundle_is_varied() {
    let bundles = |text: &str, sets: &[&str]| -> Vec<BundleConfig> {
        let experiment = read_with(&with(text), sets).unwrap();
        let cells = experiment.cells.iter();
        cells
            .map(|cell| cell.settings.server.transport().bundle.unwrap())
            .map(|bundle| BundleConfig::clone(&bundle))
            .collect()
    };
    let default = BundleConfig::default;
    let published = BundleConfig::published;
    let varied = bundles(
        "bundle = 'published'\n[variant.a]\nbundle.sync_state = false\n[variant.b]\nbundle = 'default'\n\
         [variant.c.bundle]\nbase = 'default'\nscope = 'all'\n[sweep]\n'bundle.fair' = [false, true]",
        &[],
    );
    let expected = |fair| {
        [
            BundleConfig {
                sync_state: false,
                fair,
                ..published()
            },
            BundleConfig { fair, ..default() },
            BundleConfig {
                scope: BundleScope::All,
                fair,
                ..default()
            },
        ]
    };
    assert_eq!(varied, [expected(false), expected(true)].concat());
    // Without a base, what stands above or in the profile is the base.
    let fair = |config| BundleConfig {
        fair: true,
        ..config
    };
    for (text, base) in [
        (
            "bundle = 'published'\nserver.bundle.fair = true",
            published(),
        ),
        (
            "profile = 'bundle'\nserver.bundle = { fair = true }",
            default(),
        ),
        ("server.bundle.fair = true", default()),
    ] {
        assert_eq!(bundles(text, &[]), [fair(base)], "{text}");
    }
    // A setting for both ends replaces that of one end.
    let text = "server.bundle = { base = 'published', fair = true, coalesce = 'member' }";
    let one = bundles(text, &["bundle.fair=false"]);
    assert_eq!((one[0].fair, one[0].coalesce), (false, Coalesce::Member));
    assert_eq!(bundles(text, &["bundle=default"]), [default()]);
    assert_eq!(bundles(text, &["server.bundle=published"]), [published()]);
}
