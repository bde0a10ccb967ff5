//! Steps applied to real controllers.

use std::time::Duration;

use super::*;
use crate::Instant;
use crate::congestion::{Algorithm, Controller, ControllerConfig, ControllerFactory};
use crate::samples::{AckSample, RateSample, RttView};

const DATAGRAM: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// A controller that had a window of ten datagrams acknowledged in one round trip.
fn controller(algorithm: Algorithm) -> Box<dyn Controller> {
    let mut controller = algorithm.build(ControllerConfig::new(DATAGRAM));
    let now = Instant::EPOCH + RTT;
    let ack = AckSample {
        bytes: 10 * DATAGRAM,
        bytes_in_flight: 0,
        prior_in_flight: 10 * DATAGRAM,
        largest_acked: 9,
        largest_sent: 9,
        largest_acked_sent_at: Instant::EPOCH,
        rtt: RttView {
            latest: RTT,
            adjusted: RTT,
            smoothed: RTT,
            min: RTT,
            variance: Duration::ZERO,
        },
        rtt_updated: true,
        rate: Some(RateSample {
            delivered: 10 * DATAGRAM,
            interval: RTT,
            prior_delivered: 0,
            delivered_total: 10 * DATAGRAM,
            in_flight_at_send: 0,
            lost: 0,
            app_limited: false,
        }),
        app_limited: false,
    };
    controller.on_ack(now, &ack);
    controller
}

#[test]
fn only_a_jump_makes_a_window_larger() {
    for algorithm in Algorithm::ALL {
        let mut controller = controller(algorithm);
        let mut set = |window| {
            let step = ResumeStep {
                window: Some(window),
                ..ResumeStep::default()
            };
            step.apply(controller.as_mut());
            controller.window()
        };
        assert_eq!(set(ResumeWindow::To(150_000)), 150_000);
        assert_eq!(set(ResumeWindow::AtMost(150_001)), 150_000);
        assert_eq!(set(ResumeWindow::AtMost(50_000)), 50_000);
        assert_eq!(set(ResumeWindow::AtMost(u64::MAX)), 50_000);
        assert!(set(ResumeWindow::AtMost(0)) > 0, "the minimum window");
    }
}

#[test]
fn retreat_and_its_end_apply_to_every_controller() {
    for algorithm in Algorithm::ALL {
        let mut controller = controller(algorithm);
        let rate = controller.bandwidth();
        let faster = ResumeStep {
            bandwidth: Some(200_000),
            ..ResumeStep::default()
        };
        faster.apply(controller.as_mut());
        assert_eq!(controller.bandwidth(), rate, "no estimate becomes larger");
        let retreat = ResumeStep {
            exit_slow_start: true,
            bandwidth: Some(50_000),
            window: Some(ResumeWindow::AtMost(5000)),
            ..ResumeStep::default()
        };
        retreat.apply(controller.as_mut());
        assert_eq!(controller.bandwidth(), rate.map(|_| 50_000));
        assert_eq!(controller.window(), 5000);
        assert!(!controller.in_slow_start());

        let exit = ResumeStep {
            ssthresh: Some(40_000),
            ..ResumeStep::default()
        };
        exit.apply(controller.as_mut());
        assert_eq!(controller.window(), 5000);
        let searches = controller.ssthresh() == Some(40_000);
        assert_eq!(controller.in_slow_start(), searches);
        assert_eq!(searches, !controller.is_rate_based());
    }
}

#[test]
fn an_empty_step_changes_nothing() {
    for algorithm in Algorithm::ALL {
        let mut controller = controller(algorithm);
        let seen = |c: &dyn Controller| (c.window(), c.ssthresh(), c.phase(), c.bandwidth());
        let before = seen(controller.as_ref());
        ResumeStep::default().apply(controller.as_mut());
        assert_eq!(seen(controller.as_ref()), before);
    }
}
