//! Enabling a product does no harm: a sample of `combine/*`, in the simulator.

use std::error::Error;

use marline_lab::run::{Options, run};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;

/// Presets of each kind: mobile, wide-area with losses, public Wi-Fi, several hops of Wi-Fi.
const SAMPLE: &str = r#"
    [sweep.over]
    lte-a = { link = "lte-a" }
    lte-a-international-lossy = { link = "lte-a-international-lossy" }
    wan-100-bad = { link = "wan-100-bad" }
    wifi-7 = { link = "wifi-7" }
    mesh-2-slow = { link = "mesh-2-slow" }
"#;

/// Runs `scenario`, and asserts that the measured values meet each of its claims: the repeats are too few for intervals.
fn assert_holds(scenario: &str) -> Result<(), Box<dyn Error>> {
    let experiment = Experiment::parse(scenario, "products.toml", &[])?;
    let finished = run(&experiment, &Simulator, &Options::default(), &mut |_| {})?;
    assert_eq!(finished.failed, 0);
    let results = finished.results.ok_or("no results")?;
    assert!(!results.must.is_empty());
    for claim in &results.must {
        assert!(
            claim.of > 0 && claim.met_by_value >= claim.needed,
            "{claim}"
        );
    }
    Ok(())
}

/// The claim that each of `products` is at most 3 % slower than `than` at the median.
fn never_loses(products: &str, than: &str) -> String {
    format!(
        "[[comparison]]\na = {products}\nb = '{than}'\n\
         [[must]]\ntext = \"{products} against {than}\"\na = {products}\nb = '{than}'\nnever_worse_than_percent = 3\n"
    )
}

/// The bundle is that of `marline get --bundle`, which fetches objects of up to 16 MiB over one connection.
#[test]
fn a_first_visit_with_a_product_is_as_fast_as_without() {
    for size in ["100kB", "1MB"] {
        assert_holds(&format!(
            r#"
            title = "A first visit"
            repeats = 7
            link = "lte-a"
            workload.objects = ["{size}"]

            [variant.default]

            [variant.history]
            profile = "history"

            [variant.multipath]
            profile = "multipath"

            [variant.bundle]
            profile = "bundle"
            http = {{ connections = 3, split = "16MiB", bundle = true, whole_on_first = true }}

            {SAMPLE}
            {claim}
            "#,
            claim = never_loses("['history', 'multipath', 'bundle']", "default"),
        ))
        .unwrap();
    }
}

#[test]
fn a_second_visit_with_history_is_as_fast_as_without() {
    for size in ["100kB", "1MB"] {
        assert_holds(&format!(
            r#"
            title = "A second visit"
            repeats = 7
            link = "lte-a"
            workload.visits = [{{ size = "{size}", times = 2 }}]

            [variant.default]

            [variant.history]
            profile = "history"

            {SAMPLE}
            {claim}
            "#,
            claim = never_loses("'history'", "default"),
        ))
        .unwrap();
    }
}

#[test]
fn two_paths_are_as_fast_as_the_better_one() {
    for size in ["100kB", "1MB"] {
        assert_holds(&format!(
            r#"
            title = "Wi-Fi and LTE"
            repeats = 7
            hosts = ["idle"]
            routers = ["internet"]
            workload.objects = ["{size}"]

            [links.wifi]
            between = ["client", "internet"]
            spec = "rate=20mbps, rtt=25ms, buffer=60ms"

            [links.mobile]
            between = ["client", "internet"]
            spec = "rate=10mbps, rtt=55ms, buffer=100ms"

            [links.server]
            between = ["internet", "server"]
            spec = "rate=1gbps, rtt=5ms"

            # In the variant with one path, another host has the second network.
            [links.idle]
            between = ["idle", "internet"]
            spec = "rtt=1ms"

            [variant.wifi]
            links.mobile.between = ["idle", "internet"]

            [variant.both]
            profile = "multipath"

            [sweep.losses]
            none = {{}}
            some = {{ "links.wifi.loss" = "1%", "links.mobile.loss" = "1%" }}

            {claim}
            "#,
            claim = never_loses("'both'", "wifi"),
        ))
        .unwrap();
    }
}
