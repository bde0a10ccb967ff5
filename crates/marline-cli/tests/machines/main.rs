//! Several servers behind one load balancer, each in a network namespace of its own, and clients behind a translator of
//! addresses that changes their ports and addresses.
//!
//! The connection IDs name the server (QUIC-LB), so that no request is lost when the address of a client changes, when the
//! configuration of the IDs is replaced, and when a server stops. Those of a server that is killed end at once, by the reset
//! of another. The module `migration` has clients with two networks.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers and clients run in real time"
)]

mod balancer;
mod clients;
mod machines;
mod migration;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod network;
mod translator;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::balancer::Balancer;
use self::clients::{Clients, Failure};
use self::machines::{IDS, Machines};
use self::network::Network;
use self::translator::Translator;

/// The time for a step, which the servers and clients of a slow machine take in a few seconds.
const STEP: Duration = Duration::from_secs(30);

/// A run: how connection IDs show the server, and the number of each server's workers.
#[derive(Clone, Copy, Debug)]
struct Run {
    is_encrypted: bool,
    workers: usize,
}

/// Waits until `done`, and says what did not happen if it takes too long.
#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < STEP, "not within {STEP:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One run after another: each has four processes and eight clients.
#[test]
fn no_request_is_lost_but_those_of_a_killed_server() {
    for (is_encrypted, workers) in [(false, 1), (true, 1), (true, 2)] {
        serve_through_all_changes(Run {
            is_encrypted,
            workers,
        });
    }
}

fn serve_through_all_changes(run: Run) {
    let network = match Network::new() {
        Ok(network) => Arc::new(network),
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let began = Instant::now();
    let mut machines = Machines::start(&network, run);
    let balancer = Balancer::start(&network, machines.formats());
    let connecting = Arc::default();
    let translator = Translator::start(&network, Arc::clone(&connecting));
    let clients = Clients::start(&network, connecting);

    // Addresses change during downloads.
    let moved_and_served = |what: &str| {
        let (moves, served) = (translator.moves(), clients.served());
        until(what, || {
            let has_served = clients
                .served()
                .iter()
                .zip(&served)
                .all(|(now, then)| *now >= then + 6);
            has_served && translator.moves() >= moves + 4
        });
    };
    moved_and_served("every client is served while its address changes");
    let servers: BTreeSet<_> = clients.servers().into_iter().collect();
    assert!(servers.len() > 1, "one server has all clients: {servers:?}");
    assert_eq!(clients.failures(), []);

    // Another configuration: open connections take its IDs.
    let connections = clients.connections();
    machines.reconfigure();
    until(
        "the IDs of all clients are of the new configuration",
        || {
            balancer.forget_seen();
            moved_and_served("every client is served with the new configuration");
            balancer.seen() == [1]
        },
    );
    assert_eq!(clients.connections(), connections, "connections stay");
    assert_eq!(clients.failures(), []);

    // A server is killed: another resets its connections.
    let victim = clients.servers()[0];
    let victims = clients
        .servers()
        .iter()
        .filter(|server| **server == victim)
        .count();
    let killed = Instant::now();
    machines.kill(victim);
    until("clients of the killed server have another", || {
        clients.servers().iter().all(|server| *server != victim)
    });
    moved_and_served("every client is served without the killed server");
    let failures = clients.failures();
    // A connection that was reset between two requests has lost none.
    assert!(
        failures.len() <= victims,
        "one for each connection: {failures:?}"
    );
    for Failure {
        server,
        at,
        is_reset,
        cause,
    } in &failures
    {
        assert_eq!(*server, victim, "{cause}");
        assert!(*is_reset, "{cause}");
        // Long before the idle timeout of 30 s.
        let after = at.duration_since(killed);
        assert!(after < Duration::from_secs(10), "{after:?}");
    }
    // They have resumed their sessions with another machine, and not in 0-RTT.
    assert!(
        clients.resumed() >= victims,
        "{} resumed",
        clients.resumed()
    );
    assert_eq!(clients.early(), 0);

    // A server stops: its clients leave it, and nothing is lost.
    let stopping = clients.servers()[0];
    machines.stop(stopping);
    until("clients of the server that stops have another", || {
        clients.servers().iter().all(|server| *server != stopping)
    });
    moved_and_served("every client is served by the last server");
    assert_eq!(clients.failures(), failures);
    machines.wait(stopping);
    let last = IDS.iter().find(|id| **id != victim && **id != stopping);
    assert_eq!(clients.servers().first(), last);
    println!(
        "{run:?}: {:.1} s, {} requests, {} changes of address, {victims} reset",
        began.elapsed().as_secs_f64(),
        clients.served().iter().sum::<usize>(),
        translator.moves()
    );
}
