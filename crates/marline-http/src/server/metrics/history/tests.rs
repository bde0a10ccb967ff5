use marline::PathId;
use marline::observe::events::CarefulResumePhase::{self, *};
use marline::observe::events::CarefulResumeTrigger::{self, *};

use super::*;

fn watch() -> (Arc<HistoryMetrics>, Watch) {
    let metrics = Arc::<HistoryMetrics>::default();
    (Arc::clone(&metrics), Watch(metrics))
}

fn text(metrics: &HistoryMetrics) -> String {
    let mut text = String::new();
    metrics.write(&mut text).unwrap();
    text
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|have| have == *line), "{line}\nin\n{text}");
    }
}

#[test]
fn first_windows_are_counted_as_default_or_learnt() {
    let (metrics, mut watch) = watch();
    for window in [12_000, 15_000, 200_000, 5_000_000] {
        watch.on_event(
            Instant::EPOCH,
            &Event::InitialWindowChosen(InitialWindowChosen {
                path: PathId::INITIAL,
                window,
                default: 12_000,
            }),
        );
    }
    has(
        &text(&metrics),
        &[
            "marline_initial_windows_total{window=\"default\"} 1",
            "marline_initial_windows_total{window=\"learnt\"} 3",
            "marline_learnt_initial_window_bytes_bucket{le=\"15000\"} 1",
            "marline_learnt_initial_window_bytes_bucket{le=\"120000\"} 1",
            "marline_learnt_initial_window_bytes_bucket{le=\"240000\"} 2",
            "marline_learnt_initial_window_bytes_bucket{le=\"4000000\"} 2",
            "marline_learnt_initial_window_bytes_bucket{le=\"+Inf\"} 3",
            "marline_learnt_initial_window_bytes_sum 5215000",
            "marline_learnt_initial_window_bytes_count 3",
        ],
    );
}

#[test]
fn each_outcome_of_careful_resume_is_counted_once() {
    type Transitions = &'static [(CarefulResumePhase, Option<CarefulResumeTrigger>)];
    let cases: [(Transitions, &[CarefulResumeStep]); 6] = [
        (
            &[(Normal, Some(RttNotValidated))],
            &[CarefulResumeStep::GivenUp],
        ),
        (
            &[
                (Unvalidated, Some(CongestionWindowLimited)),
                (Normal, Some(RateLimited)),
            ],
            &[CarefulResumeStep::Jumped, CarefulResumeStep::Unused],
        ),
        (
            &[
                (Unvalidated, Some(CongestionWindowLimited)),
                (Validating, Some(LastUnvalidatedPacketSent)),
                (Normal, Some(LastUnvalidatedPacketAcknowledged)),
            ],
            &[CarefulResumeStep::Jumped, CarefulResumeStep::Confirmed],
        ),
        (
            &[
                (Unvalidated, Some(CongestionWindowLimited)),
                (SafeRetreat, Some(PacketLoss)),
                (Normal, Some(ExitRecovery)),
            ],
            &[CarefulResumeStep::Jumped, CarefulResumeStep::Retreated],
        ),
        (
            &[
                (Unvalidated, Some(CongestionWindowLimited)),
                (Validating, Some(RttExceeded)),
                (Normal, Some(PacketLoss)),
            ],
            &[CarefulResumeStep::Jumped, CarefulResumeStep::Retreated],
        ),
        (&[], &[]),
    ];
    for (transitions, steps) in cases {
        let (metrics, mut watch) = watch();
        let mut old = None;
        for (new, trigger) in [(Reconnaissance, None)].iter().chain(transitions) {
            let update = CarefulResumePhaseUpdated {
                path: PathId::INITIAL,
                old,
                new: *new,
                pipe_size: 0,
                first_unvalidated_packet: 0,
                last_unvalidated_packet: 0,
                congestion_window: None,
                ssthresh: None,
                restored: None,
                trigger: *trigger,
            };
            watch.on_event(Instant::EPOCH, &Event::CarefulResumePhaseUpdated(update));
            old = Some(*new);
        }
        let text = text(&metrics);
        has(
            &text,
            &["marline_careful_resume_total{step=\"remembered\"} 1"],
        );
        for (step, name) in [
            (CarefulResumeStep::GivenUp, "given_up"),
            (CarefulResumeStep::Jumped, "jumped"),
            (CarefulResumeStep::Unused, "unused"),
            (CarefulResumeStep::Confirmed, "confirmed"),
            (CarefulResumeStep::Retreated, "retreated"),
        ] {
            let count = u8::from(steps.contains(&step));
            let line = format!("marline_careful_resume_total{{step=\"{name}\"}} {count}");
            has(&text, &[&line]);
        }
    }
}

#[test]
fn all_statistics_of_the_store_are_written() {
    let store = StoreStatistics {
        records: 1,
        hits: 2,
        misses: 3,
        fetched: 4,
        writes: 5,
        dropped_writes: 6,
        errors: 7,
    };
    let mut text = String::new();
    write_store(&mut text, &store).unwrap();
    has(
        &text,
        &[
            "marline_path_records 1",
            "marline_path_lookups_total{result=\"hit\"} 2",
            "marline_path_lookups_total{result=\"miss\"} 3",
            "marline_path_store_fetched_total 4",
            "marline_path_store_writes_total 5",
            "marline_path_store_dropped_writes_total 6",
            "marline_path_store_errors_total 7",
        ],
    );
}
