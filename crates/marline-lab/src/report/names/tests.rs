use serde_json::json;

use super::*;

#[test]
fn units_follow_from_the_suffix_of_names() {
    let text = |name: &str, value: f64| {
        let quantity = Quantity::of(name);
        format!("{}: {}", quantity.name, quantity.text(value)).replace('\u{a0}', " ")
    };
    assert_eq!(text("completion_s", 0.28), "completion time: 280 ms");
    assert_eq!(text("first_paint_ms", 1500.0), "first paint: 1.5 s");
    assert_eq!(text("content_kb", 2400.0), "content size: 2.4 MB");
    assert_eq!(text("goodput_mbps", 65.9), "goodput: 65.9 Mbit/s");
    assert_eq!(text("loss_ratio", 0.0009), "packet loss: 0.09 %");
    assert_eq!(text("share", 0.75), "share of all goodput: 75 %");
    assert_eq!(text("upload_share", 0.25), "upload: 25 %");
    assert_eq!(
        text("background_share_of_fair", 0.5),
        "share of its fair rate that a background flow gets: 50 %"
    );
    assert_eq!(text("jain_index", 0.8), "fairness (Jain): 0.8");
    assert_eq!(text("fluctuations", 3.0), "network fluctuations: 3");
    assert_eq!(text("objects_done", 3.0), "objects done: 3");
    let cov = Quantity::of_statistic("completion_s", Statistic::Cov);
    assert_eq!(cov.text(0.36), "0.36");
}

#[test]
fn intervals_have_a_common_unit_once() {
    let text = |low, high| {
        let text = Quantity::of("completion_s").interval(Some([low, high]));
        text.replace('\u{a0}', " ")
    };
    assert_eq!(text(0.7, 0.8), "700 to 800 ms");
    assert_eq!(text(0.7, 1.1), "700 ms to 1.1 s");
    assert_eq!(text(0.7, 0.7), "700 ms");
    assert_eq!(
        Quantity::of("fluctuations").interval(Some([1.0, 2.0])),
        "1 to 2"
    );
    assert_eq!(Quantity::of("fluctuations").interval(None), "\u{2013}");
}

#[test]
fn parameters_have_names_without_underscores() {
    assert_eq!(parameter("link.loss"), "loss");
    assert_eq!(parameter("link.rtt"), "round-trip time");
    assert_eq!(parameter("server.initial_window"), "server initial window");
    let text = |key, value: Value| self::value(key, &value).replace('\u{a0}', " ");
    assert_eq!(text("link.loss", json!("1%")), "1 %");
    assert_eq!(text("link.rate", json!("7mbps")), "7 Mbit/s");
    assert_eq!(text("link.loss", json!(0.0005)), "0.0005");
    assert_eq!(
        text("workload.objects", json!(["500kB", "1MB"])),
        "500 kB, 1 MB"
    );
    assert_eq!(text("place", json!("far, lossy")), "far, lossy");
    assert_eq!(text("place", json!("far_high_loss")), "far high loss");
    assert_eq!(text("warm", json!(true)), "true");
    assert_eq!(text("cc", json!("h3x2")), "h3x2");
}
