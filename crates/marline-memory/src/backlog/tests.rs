use std::net::SocketAddr;

use marline_proto::coordination::history::PathScope;

use super::*;

fn key(host: u8) -> PathKey {
    PathScope::Address.key(SocketAddr::from(([192, 0, 2, host], 443)), None)
}

fn job(host: u8, job: u32) -> Job<u32> {
    Job {
        key: key(host),
        job,
    }
}

fn replace(waiting: &mut u32, job: u32) {
    *waiting = job;
}

fn earlier(_: &mut u32, _: u32) {}

#[test]
fn jobs_are_taken_oldest_first_and_the_oldest_is_discarded() {
    let mut backlog = Backlog::new(3);
    for (host, discarded) in [(1, false), (2, false), (3, false), (4, true)] {
        assert_eq!(
            backlog.push(&key(host), u32::from(host), replace),
            discarded
        );
    }
    assert_eq!(backlog.get(&key(1)), None);
    assert_eq!(backlog.take(2), [job(2, 2), job(3, 3)]);
    assert_eq!(backlog.take(2), [job(4, 4)]);
    assert!(backlog.is_empty() && backlog.take(2).is_empty());
}

#[test]
fn jobs_of_one_key_are_merged() {
    let mut backlog = Backlog::new(2);
    for job in 0..10 {
        assert!(!backlog.push(&key(1), job, replace));
        assert!(!backlog.push(&key(2), job, earlier));
    }
    assert_eq!(backlog.take(9), [job(1, 9), job(2, 0)]);
}

#[test]
fn a_job_put_back_is_first_again_within_the_limit() {
    let mut backlog = Backlog::new(2);
    backlog.push(&key(1), 1, replace);
    assert!(!backlog.put_back(key(2), 2, earlier));
    assert!(!backlog.put_back(key(1), 0, earlier));
    assert!(backlog.put_back(key(3), 3, earlier));
    assert_eq!(backlog.take(9), [job(2, 2), job(1, 1)]);
}
