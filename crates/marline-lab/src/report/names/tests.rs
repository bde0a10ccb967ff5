use serde_json::json;

use super::*;

#[test]
fn names_end_in_units() {
    let told = |name: &str, value: f64| {
        let quantity = Quantity::of(name);
        format!("{}: {}", quantity.name, quantity.text(value)).replace('\u{a0}', " ")
    };
    assert_eq!(told("completion_s", 0.28), "completion time: 280 ms");
    assert_eq!(told("first_paint_ms", 1500.0), "first paint: 1.5 s");
    assert_eq!(told("content_kb", 2400.0), "content size: 2.4 MB");
    assert_eq!(told("goodput_mbps", 65.9), "goodput: 65.9 Mbit/s");
    assert_eq!(told("loss_ratio", 0.0009), "packets lost: 0.09 %");
    assert_eq!(told("share", 0.75), "share of all goodput: 75 %");
    assert_eq!(told("upload_share", 0.25), "upload: 25 %");
    assert_eq!(
        told("background_share_of_fair", 0.5),
        "part of its fair share that a background flow gets: 50 %"
    );
    assert_eq!(told("jain_index", 0.8), "fairness (Jain): 0.8");
    assert_eq!(told("fluctuations", 3.0), "network fluctuations: 3");
    assert_eq!(told("objects_done", 3.0), "objects done: 3");
    let cov = Quantity::of_statistic("completion_s", Statistic::Cov);
    assert_eq!(cov.text(0.36), "0.36");
}

#[test]
fn intervals_say_a_shared_unit_once() {
    let told = |low, high| {
        let text = Quantity::of("completion_s").interval(Some([low, high]));
        text.replace('\u{a0}', " ")
    };
    assert_eq!(told(0.7, 0.8), "700 to 800 ms");
    assert_eq!(told(0.7, 1.1), "700 ms to 1.1 s");
    assert_eq!(told(0.7, 0.7), "700 ms");
    assert_eq!(
        Quantity::of("fluctuations").interval(Some([1.0, 2.0])),
        "1 to 2"
    );
    assert_eq!(Quantity::of("fluctuations").interval(None), "\u{2013}");
}

#[test]
fn parameters_read_like_words() {
    assert_eq!(parameter("link.loss"), "loss");
    assert_eq!(parameter("link.rtt"), "round-trip time");
    assert_eq!(parameter("server.initial_window"), "server initial window");
    let told = |key, value: Value| self::value(key, &value).replace('\u{a0}', " ");
    assert_eq!(told("link.loss", json!("1%")), "1 %");
    assert_eq!(told("link.rate", json!("7mbps")), "7 Mbit/s");
    assert_eq!(told("link.loss", json!(0.0005)), "0.0005");
    assert_eq!(
        told("workload.objects", json!(["500kB", "1MB"])),
        "500 kB, 1 MB"
    );
    assert_eq!(told("place", json!("far, lossy")), "far, lossy");
    assert_eq!(told("place", json!("far_high_loss")), "far high loss");
    assert_eq!(told("warm", json!(true)), "true");
    assert_eq!(told("cc", json!("h3x2")), "h3x2");
}
