use marline::observe::events::BundlePhase;

use super::*;

fn member(make: &MakeObserver) -> Box<dyn Observer> {
    let connection = marline::ConnectionInfo {
        side: marline::Side::Server,
        original_destination: marline::ConnectionId::default(),
        remote: ([192, 0, 2, 1], 4433).into(),
    };
    make(&connection).unwrap()
}

/// A kind of decision.
#[derive(Clone, Copy)]
struct Decision {
    trigger: BundleTrigger,
    action: BundleAction,
}

fn report(member: &mut dyn Observer, bundle: u64, decision: Decision, own: usize) {
    let event = Event::BundleUpdated(BundleUpdated {
        bundle,
        path: None,
        trigger: decision.trigger,
        action: decision.action,
        phase: BundlePhase::SlowStart,
        affected: None,
        own,
        gamma: 1.5,
        fluctuations: 0,
        before: &[],
        after: &[],
    });
    member.on_event(Instant::EPOCH, &event);
}

/// The lines with values.
fn values(metrics: &BundleMetrics) -> Vec<String> {
    let mut text = String::new();
    metrics.write(&mut text).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.replacen("marline_bundle", "", 1))
        .collect()
}

const JOINED: Decision = Decision {
    trigger: BundleTrigger::Joined,
    action: BundleAction::Split,
};
const LOSS: Decision = Decision {
    trigger: BundleTrigger::Loss,
    action: BundleAction::Synchronized,
};

#[test]
fn members_are_counted_while_they_are_at_least_two() {
    let metrics = Arc::new(BundleMetrics::default());
    let make = metrics.observers();
    let mut members: Vec<_> = (0..4).map(|_| member(&make)).collect();
    assert_eq!(values(&metrics), ["s 0", "_members 0"]);
    for (member, bundle) in members.iter_mut().zip([0, 0, 0, 1]) {
        report(&mut **member, bundle, JOINED, 0);
    }
    let split = "_decisions_total{trigger=\"joined\",action=\"split\"} 4";
    assert_eq!(values(&metrics), ["s 1", "_members 3", split]);
    members.swap_remove(0);
    assert_eq!(values(&metrics), ["s 1", "_members 2", split]);
    members.pop();
    assert_eq!(values(&metrics), ["s 0", "_members 0", split]);
    drop(members);
    assert!(metrics.with_members(|members| members.is_empty()));
}

#[test]
fn a_decision_is_counted_once_for_all_members() {
    let metrics = Arc::new(BundleMetrics::default());
    let make = metrics.observers();
    let mut members = [member(&make), member(&make)];
    for _ in 0..3 {
        for (own, member) in members.iter_mut().enumerate() {
            report(&mut **member, 9, LOSS, own);
        }
    }
    let loss = "_decisions_total{trigger=\"loss\",action=\"synchronized\"} 3";
    assert_eq!(values(&metrics), ["s 1", "_members 2", loss]);
}
