//! The cases as data: downloads, links, and conditions on the observed traffic.

use std::time::Duration;

use interop_relay::{Config, Rebind, Report, Traffic};
use serde::Serialize;

/// Bytes in a mebibyte and a kibibyte.
const MB: usize = 1 << 20;
const KB: usize = 1 << 10;

/// Checks the observations of the relay; may return a note about the peer.
type Check = fn(&Evidence) -> Result<Option<String>, String>;

/// One case, named as the QUIC interop runner names it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// A summary of its checks, for the table.
    pub(crate) checks: &'static str,
    pub(crate) files: Files,
    /// Turns a plain relay into the case's link.
    link: fn(&mut Config),
    /// Conditions on the observations, in addition to complete files.
    check: Check,
    /// Time limit of the client.
    pub(crate) limit: Duration,
    /// Whether the files must arrive.
    pub(crate) compare: bool,
    pub(crate) ipv6: bool,
    /// A certificate too large for three client datagrams.
    pub(crate) large_certificate: bool,
    /// Client and server are separate hosts with two links between them, without a relay.
    pub(crate) two_links: bool,
    /// The client may use several addresses.
    pub(crate) several_addresses: bool,
    /// The only stack whose client supports the checked feature, if any; it is run with that client as the subject.
    pub(crate) only_client: Option<&'static str>,
}

/// The files that a client downloads.
pub(crate) enum Files {
    /// One file of each size, bytes.
    Sizes(&'static [usize]),
    /// So many files of one size.
    Many { count: usize, size: usize },
    /// A page with so many scripts.
    Page { scripts: usize },
}

/// Traffic of a link, in bytes of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LinkTraffic {
    pub(crate) to_server: u64,
    pub(crate) to_client: u64,
}

/// Traffic of the client's two links. Its connection starts on the first.
pub(crate) type Links = [LinkTraffic; 2];

/// The observations of a run.
#[derive(Default)]
pub(crate) struct Evidence {
    /// Of the relay; empty where there is none.
    pub(crate) report: Report,
    /// Of the links; empty where there are none.
    pub(crate) links: Links,
    /// The log of the server.
    pub(crate) server_log: String,
    /// Whether the stack under test is the server.
    pub(crate) subject_serves: bool,
}

impl Case {
    const fn new(name: &'static str, checks: &'static str, files: Files) -> Self {
        Self {
            name,
            checks,
            files,
            link: |_| {},
            check: |_| Ok(None),
            limit: Duration::from_secs(60),
            compare: true,
            ipv6: false,
            large_certificate: false,
            two_links: false,
            several_addresses: false,
            only_client: None,
        }
    }

    const fn link(self, link: fn(&mut Config)) -> Self {
        Self { link, ..self }
    }

    const fn check(self, check: Check) -> Self {
        Self { check, ..self }
    }

    const fn limit(self, seconds: u64) -> Self {
        Self {
            limit: Duration::from_secs(seconds),
            ..self
        }
    }

    const fn two_links(self) -> Self {
        Self {
            two_links: true,
            several_addresses: true,
            ..self
        }
    }

    /// Whether it is about the stack `subject` in the role given by `serves`.
    pub(crate) fn is_about(&self, subject: &str, serves: bool) -> bool {
        self.only_client
            .is_none_or(|client| client == subject && !serves)
    }

    /// Shapes `config` into this case's link.
    pub(crate) fn shape(&self, config: &mut Config) {
        (self.link)(config);
    }

    /// Checks that the observations satisfy the conditions of the case.
    ///
    /// A violation by the peer is a note, not a failure.
    pub(crate) fn verify(&self, evidence: &Evidence) -> Result<Option<String>, String> {
        (self.check)(evidence)
    }
}

/// 10 Mbit/s, 30 ms of round trip, a queue of 25: the link of most cases.
fn plain(config: &mut Config) {
    config.delay_ms = 15;
    config.rate_mbps = Some(10.0);
    config.queue = 25;
}

fn rebinding(config: &mut Config, kind: Rebind) {
    plain(config);
    config.rebind = Some(kind);
    config.rebind_first_s = 1.0;
    config.rebind_every_s = 2.0;
}

fn require(holds: bool, otherwise: &str) -> Result<Option<String>, String> {
    if holds {
        Ok(None)
    } else {
        Err(otherwise.to_owned())
    }
}

fn rebound(evidence: &Evidence) -> Result<Option<String>, String> {
    require(
        evidence.report.rebinds > 0,
        "over before the first rebinding",
    )
}

fn lossy(evidence: &Evidence) -> Result<Option<String>, String> {
    let report = &evidence.report;
    require(
        report.to_client.lost + report.to_server.lost > 0,
        "nothing was lost",
    )
}

fn corrupting(evidence: &Evidence) -> Result<Option<String>, String> {
    let report = &evidence.report;
    let corrupted = report.to_client.corrupted + report.to_server.corrupted;
    require(corrupted > 0, "nothing was corrupted")
}

/// The stack under test marks ECT(0) and does not disable ECN. The peer's marking is a note.
fn marked(evidence: &Evidence) -> Result<Option<String>, String> {
    let report = &evidence.report;
    let [subject, peer] = if evidence.subject_serves {
        [(&report.to_client, "server"), (&report.to_server, "client")]
    } else {
        [(&report.to_server, "client"), (&report.to_client, "server")]
    };
    let count = |(traffic, who): (&Traffic, &str)| {
        let marked = traffic.ect0 * 10 >= traffic.datagrams * 9 && traffic.ect0 > 0;
        let counts = format!("{} of {} datagrams", traffic.ect0, traffic.datagrams);
        (marked, format!("the {who} marked {counts}"))
    };
    let (marks, seen) = count(subject);
    require(marks, &seen)?;
    let (marks, seen) = count(peer);
    Ok((!marks).then_some(seen))
}

fn migrated(evidence: &Evidence) -> Result<Option<String>, String> {
    let Some((last, before)) = evidence.report.flows.split_last() else {
        return Err("no traffic".to_owned());
    };
    require(!before.is_empty(), "the client did not change its address")?;
    require(
        last.to_client_bytes > 100_000,
        "the server did not follow to the new address",
    )?;
    require(
        last.fresh_connection_id != Some(false),
        "the client kept its connection ID on the new path",
    )
}

/// The client began in version 1, and both ends completed the handshake in version 2 (RFC 9369, section 4.1).
fn changed_to_v2(evidence: &Evidence) -> Result<Option<String>, String> {
    let Report {
        to_server,
        to_client,
        ..
    } = &evidence.report;
    require(
        to_server.initial > to_server.initial_v2,
        "the client did not begin in version 1",
    )?;
    require(
        to_client.version_negotiation == 0,
        "a Version Negotiation packet was sent",
    )?;
    let is_v2 =
        |traffic: &Traffic| traffic.handshake_v2 > 0 && traffic.handshake_v2 == traffic.handshake;
    require(
        is_v2(to_server) && is_v2(to_client),
        "the handshake was not completed in version 2",
    )
}

/// A server may send three times what it received (RFC 9000, section 8.1). Only the subject is required to comply.
fn limited(evidence: &Evidence) -> Result<Option<String>, String> {
    let ratio = evidence.report.amplification;
    require(ratio > 0.0, "no handshake was seen")?;
    let seen = format!("the server sent {ratio:.2} times what it had received, not 3 at most");
    if evidence.subject_serves {
        require(ratio <= 3.0, &seen)
    } else {
        Ok((ratio > 3.0).then_some(seen))
    }
}

/// The client began so many connections.
fn pipes(
    evidence: &Evidence,
    expected: std::ops::RangeInclusive<u64>,
) -> Result<Option<String>, String> {
    let connections = evidence.report.connections;
    require(
        expected.contains(&connections),
        &format!(
            "the client began {connections} connections, not {} to {}",
            expected.start(),
            expected.end()
        ),
    )
}

/// Share of the first link in each direction, in percent.
fn first_share(evidence: &Evidence) -> Result<[u64; 2], String> {
    let [first, second] = evidence.links;
    let share = |first: u64, second: u64| (first * 100).checked_div(first + second);
    let shares = share(first.to_server, second.to_server)
        .zip(share(first.to_client, second.to_client))
        .ok_or("no traffic")?;
    Ok([shares.0, shares.1])
}

/// Whether the first link carried between so many percent of the bytes, there and back.
fn on_first(
    evidence: &Evidence,
    there: std::ops::RangeInclusive<u64>,
    back: std::ops::RangeInclusive<u64>,
) -> Result<Option<String>, String> {
    let shares = first_share(evidence)?;
    let [up, down] = shares;
    require(
        there.contains(&up) && back.contains(&down),
        &format!(
            "the first link carried {up}% of the bytes to the server and {down}% of those back"
        ),
    )
}

fn server_said(evidence: &Evidence, lines: &[&str]) -> Result<Option<String>, String> {
    let missing = |line: &&&str| !evidence.server_log.lines().any(|said| said == **line);
    match lines.iter().find(missing) {
        Some(line) => Err(format!("the server did not say: {line}")),
        None => Ok(None),
    }
}

/// Files of the cases with several paths: the first before, the others during changes of paths.
const BEFORE_AND_WHILE: Files = Files::Sizes(&[MB, 4 * MB, 4 * MB]);

/// Files of the cases with pools: more than there are pipes.
const MORE_THAN_PIPES: Files = Files::Many {
    count: 12,
    size: 200_000,
};

/// All cases, in the order of the table.
pub(crate) const CASES: &[Case] = &[
    Case::new(
        "handshake",
        "a handshake and a small file",
        Files::Sizes(&[KB]),
    )
    .link(plain)
    .check(|evidence| require(evidence.report.to_client.retry == 0, "a Retry was sent")),
    Case {
        compare: false,
        ..Case::new(
            "versionnegotiation",
            "a client of another version is sent ours",
            Files::Sizes(&[KB]),
        )
        .link(plain)
        .check(|evidence| {
            require(
                evidence.report.to_client.version_negotiation > 0,
                "no Version Negotiation packet was sent",
            )
        })
    },
    Case::new(
        "v2",
        "the server changes a connection of version 1 to version 2",
        Files::Sizes(&[MB]),
    )
    .link(plain)
    .check(changed_to_v2),
    Case::new(
        "transfer",
        "2, 3 and 5 MiB at once: flow control and congestion control",
        Files::Sizes(&[2 * MB, 3 * MB, 5 * MB]),
    )
    .link(plain),
    Case::new("longrtt", "a round trip of 1.5 s", Files::Sizes(&[KB]))
        .link(|config| {
            plain(config);
            config.delay_ms = 750;
        })
        .check(|evidence| {
            require(
                evidence.report.to_server.initial >= 2,
                "the client did not repeat its ClientHello",
            )
        }),
    Case::new(
        "chacha20",
        "ChaCha20-Poly1305 is all that is offered",
        Files::Sizes(&[MB]),
    )
    .link(plain),
    Case::new(
        "multiplexing",
        "2,000 small files on one connection",
        Files::Many {
            count: 2000,
            size: 32,
        },
    )
    .link(plain)
    .check(|evidence| require(evidence.report.flows.len() == 1, "more than one connection")),
    Case::new(
        "retry",
        "the server asks the client to prove its address",
        Files::Sizes(&[KB]),
    )
    .link(plain)
    .check(|evidence| require(evidence.report.to_client.retry > 0, "no Retry was sent")),
    Case::new(
        "resumption",
        "a second connection resumes the first's session",
        Files::Sizes(&[5 * KB, 10 * KB]),
    )
    .link(plain),
    Case::new(
        "zerortt",
        "a second connection's requests travel in 0-RTT",
        Files::Many {
            count: 40,
            size: 250,
        },
    )
    .link(plain)
    .check(|evidence| {
        require(
            evidence.report.to_server.zero_rtt > 0,
            "no 0-RTT packet was sent",
        )
    }),
    Case::new("http3", "a page of 40 objects", Files::Page { scripts: 40 }).link(plain),
    Case::new(
        "blackhole",
        "nothing passes for 1 s after each 2 s",
        Files::Sizes(&[4 * MB]),
    )
    .link(|config| {
        plain(config);
        config.blackhole = Some(interop_relay::Blackhole {
            on: Duration::from_secs(2),
            off: Duration::from_secs(1),
        });
    })
    .check(|evidence| {
        let report = &evidence.report;
        let swallowed = report.to_client.swallowed + report.to_server.swallowed;
        require(swallowed > 0, "over before the link went off")
    }),
    Case::new(
        "keyupdate",
        "the client updates its keys between two files",
        Files::Sizes(&[KB, MB]),
    )
    .link(plain),
    Case::new(
        "ecn",
        "both ends mark ECT(0), and marking passes validation",
        Files::Sizes(&[MB]),
    )
    .link(plain)
    .check(marked),
    Case {
        large_certificate: true,
        ..Case::new(
            "amplificationlimit",
            "a large certificate, and the client's datagrams 2 to 7 are lost",
            Files::Sizes(&[5 * KB]),
        )
        .link(|config| {
            plain(config);
            config.drop_to_server = (2..=7).into();
        })
        .check(limited)
    },
    Case::new(
        "handshakeloss",
        "15 connections, 30% of the datagrams lost",
        Files::Many {
            count: 15,
            size: KB,
        },
    )
    .link(|config| {
        plain(config);
        config.loss = 30.0;
        config.burst = 3;
    })
    .check(lossy)
    .limit(300),
    Case::new(
        "transferloss",
        "2% of the datagrams lost",
        Files::Sizes(&[2 * MB]),
    )
    .link(|config| {
        plain(config);
        config.loss = 2.0;
        config.burst = 3;
    })
    .check(lossy),
    Case::new(
        "handshakecorruption",
        "15 connections, 30% of the datagrams changed",
        Files::Many {
            count: 15,
            size: KB,
        },
    )
    .link(|config| {
        plain(config);
        config.corrupt = 30.0;
    })
    .check(corrupting)
    .limit(300),
    Case::new(
        "transfercorruption",
        "2% of the datagrams changed",
        Files::Sizes(&[2 * MB]),
    )
    .link(|config| {
        plain(config);
        config.corrupt = 2.0;
    })
    .check(corrupting),
    Case {
        ipv6: true,
        ..Case::new(
            "ipv6",
            "the same over IPv6",
            Files::Sizes(&[5 * KB, 10 * KB]),
        )
        .link(plain)
    },
    Case::new(
        "rebind-port",
        "a NAT gives the client another port after 1 s and every 2 s",
        Files::Sizes(&[5 * MB]),
    )
    .link(|config| rebinding(config, Rebind::Port))
    .check(rebound),
    Case::new(
        "rebind-addr",
        "a NAT gives the client another address after 1 s and every 2 s",
        Files::Sizes(&[5 * MB]),
    )
    .link(|config| rebinding(config, Rebind::Addr))
    .check(rebound),
    Case::new(
        "connectionmigration",
        "the client moves to another port of its own will",
        Files::Sizes(&[KB, MB]),
    )
    .link(plain)
    .check(migrated),
    Case::new(
        "multipath",
        "two paths, and data both ways on both",
        BEFORE_AND_WHILE,
    )
    .two_links()
    .check(|evidence| {
        server_said(evidence, &["path 0 opened", "path 1 opened"])?;
        on_first(evidence, 10..=90, 10..=90)
    }),
    Case::new(
        "multipath-backup",
        "the client makes the first path a backup, and data leaves it",
        BEFORE_AND_WHILE,
    )
    .two_links()
    .check(|evidence| {
        server_said(evidence, &["path 1 opened"])?;
        on_first(evidence, 0..=20, 0..=20)
    }),
    Case::new(
        "multipath-abandon",
        "the client abandons the first path under load",
        BEFORE_AND_WHILE,
    )
    .two_links()
    .check(|evidence| {
        server_said(evidence, &["path 1 opened", "path 0 closed"])?;
        on_first(evidence, 0..=90, 0..=50)
    }),
    Case::new(
        "multipath-dismiss",
        "the server abandons the second path under load",
        BEFORE_AND_WHILE,
    )
    .two_links()
    .check(|evidence| {
        server_said(evidence, &["path 1 opened", "path 1 closed"])?;
        on_first(evidence, 10..=100, 50..=99)
    }),
    Case::new(
        "multipath-replace",
        "paths come and go until a third carries all",
        BEFORE_AND_WHILE,
    )
    .two_links()
    .check(|evidence| {
        server_said(
            evidence,
            &["path 0 closed", "path 1 closed", "path 2 opened"],
        )
    }),
    Case {
        several_addresses: true,
        ..Case::new(
            "multipath-client-only",
            "the client wants several paths, the server does not",
            Files::Sizes(&[KB, MB]),
        )
        .link(plain)
        .check(|evidence| require(evidence.report.flows.len() == 1, "more than one path"))
    },
    Case {
        only_client: Some("command"),
        ..Case::new(
            "pipes-rr",
            "12 files over a pool of four connections in turn",
            MORE_THAN_PIPES,
        )
        .link(plain)
        .check(|evidence| pipes(evidence, 4..=4))
    },
    Case {
        only_client: Some("command"),
        ..Case::new(
            "pipes-cba",
            "12 files over at most three connections, 2% of the datagrams lost",
            MORE_THAN_PIPES,
        )
        .link(|config| {
            plain(config);
            config.loss = 2.0;
            config.burst = 3;
        })
        .check(|evidence| {
            lossy(evidence)?;
            pipes(evidence, 1..=3)
        })
    },
    Case::new(
        "multipath-server-only",
        "the server wants several paths, the client does not",
        Files::Sizes(&[KB, MB]),
    )
    .link(plain)
    .check(|evidence| require(evidence.report.flows.len() == 1, "more than one path")),
];

#[cfg(test)]
mod tests;
