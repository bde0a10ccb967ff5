//! Errors of runs that do not complete.

use std::future::pending;
use std::task::Poll;
use std::time::Duration;

use marline::{Instant, Runtime};
use marline_sim::fabric::Plan;
use marline_sim::{Sim, Stall};

use crate::link::Pipe;
use crate::transfer::sim;

fn small() -> Sim {
    let mut plan = Plan::new();
    let nodes = [plan.host("left"), plan.host("right")];
    let wire = Pipe::new(1, 1).duplex("wire");
    plan.join("wire", wire, &nodes).unwrap();
    sim(plan, 1)
}

#[test]
fn a_run_without_events_reports_what_waits() {
    let mut sim = small();
    let left = sim.host("left").unwrap();
    let socket = left.bind(left.at(7)).unwrap();
    left.run(async move {
        let mut meta = [Default::default()];
        std::future::poll_fn(|cx| {
            socket.poll_recv(cx, &mut [std::io::IoSliceMut::new(&mut [0])], &mut meta)
        })
        .await
        .ok();
    });
    let napping = left.clone();
    left.run(async move {
        napping.sleep(Duration::from_secs(3)).await;
        pending::<()>().await;
    });
    let stalled = sim.run(pending::<()>(), Duration::MAX).unwrap_err();
    assert_eq!(stalled.stall, Stall::NoMoreEvents);
    assert_eq!(
        stalled.to_string(),
        "no task can run and no event is due at 3s; waiting: the run itself, 2 tasks of left, \
         left for packets to 10.1.0.1:7"
    );
}

#[test]
fn a_run_ends_at_its_limit_and_can_continue() {
    let mut sim = small();
    let right = sim.host("right").unwrap();
    let clock = right.clone();
    right.run(async move {
        loop {
            clock.sleep(Duration::from_millis(10)).await;
        }
    });
    let limit = Duration::from_millis(95);
    let stalled = sim.run(pending::<()>(), limit).unwrap_err();
    assert_eq!(stalled.stall, Stall::TimeLimit);
    assert_eq!(sim.now(), Instant::EPOCH + Duration::from_millis(90));
    let slept = sim.run(right.sleep(Duration::from_millis(5)), limit);
    assert_eq!(slept, Ok(()));
    assert_eq!(sim.now(), Instant::EPOCH + limit);
}

#[test]
fn tasks_that_wake_each_other_without_end_are_an_error() {
    let spin = std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let stalled = small().run(spin, Duration::MAX).unwrap_err();
    assert_eq!(stalled.stall, Stall::Spinning);
}

#[test]
fn dropping_a_simulation_drops_its_tasks() {
    let sim = small();
    let left = sim.host("left").unwrap();
    let (alive, ended) = std::sync::mpsc::channel::<()>();
    let again = left.clone();
    left.run(async move {
        pending::<()>().await;
        drop((alive, again));
    });
    drop(sim);
    assert!(
        ended
            .try_recv()
            .is_err_and(|error| error == std::sync::mpsc::TryRecvError::Disconnected)
    );
    let (late, dropped) = std::sync::mpsc::channel::<()>();
    left.run(async move { drop(late) });
    assert!(dropped.recv().is_err());
}
