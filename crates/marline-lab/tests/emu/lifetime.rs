//! Processes inside hosts, and when they end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::link::Spec;
use crate::setup;

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within a minute");
}

/// The processes of a namespace.
fn processes_in(namespace: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let links = processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
    links.filter(|link| link == namespace).count()
}

/// The namespace of a program that was started inside the client.
fn namespace_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/net")).unwrap()
}

#[test]
fn programs_see_only_the_devices_of_their_host() {
    let Some(pair) = setup::pair(Spec::delay(1)) else {
        return;
    };
    let mut list = Command::new("ip");
    list.args(["-brief", "link"]);
    let output = pair
        .emulation
        .inside(pair.client, || list.output())
        .unwrap()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let devices: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(devices, ["lo", "link0"]);
    assert_ne!(
        fs::read_link("/proc/self/ns/net").unwrap(),
        pair.emulation
            .inside(pair.client, || fs::read_link("/proc/thread-self/ns/net"))
            .unwrap()
            .unwrap()
    );
}

#[test]
fn orphaned_processes_are_killed_with_the_emulation() {
    let Some(pair) = setup::pair(Spec::delay(1)) else {
        return;
    };
    // A child of a child, whose parent has ended, in a session of its own.
    let mut left = Command::new("sh");
    left.args([
        "-c",
        "setsid sleep 1000 & setsid sleep 1000 & exec sleep 1000",
    ]);
    let mut child = pair.emulation.spawn(pair.client, &mut left).unwrap();
    let namespace = namespace_of(child.id());
    wait_until("three sleep", || processes_in(&namespace) == 3);
    drop(pair);
    assert!(!child.wait().unwrap().success());
    wait_until("no process is left", || processes_in(&namespace) == 0);
}
