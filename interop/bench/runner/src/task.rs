//! The tasks, and how one is measured.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::identity::Identity;
use crate::process::{Place, Process};
use crate::stacks::Stack;

/// What stacks are put to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Task {
    /// One download on one stream: 1 GiB.
    Bulk,
    /// Requests of 1 KiB, one at a time.
    Requests1,
    /// Requests of 1 KiB, 100 at once.
    Requests100,
    /// Full handshakes, one at a time.
    Handshakes,
    /// The server's memory for 2,000 idle connections.
    Memory,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    BulkGbitS,
    BulkServerCpuSPerGib,
    BulkClientCpuSPerGib,
    RequestsS,
    RequestsServerCpuUs,
    RequestsClientCpuUs,
    ConcurrentRequestsS,
    ConcurrentRequestsServerCpuUs,
    ConcurrentRequestsClientCpuUs,
    HandshakesS,
    HandshakeServerCpuUs,
    HandshakeClientCpuUs,
    IdleConnectionBytes,
}

const GIB: f64 = (1_u64 << 30) as f64;
/// Longest time for a task.
const LIMIT: Duration = Duration::from_secs(120);
/// Longest time for a server to answer a question.
const ANSWER: Duration = Duration::from_secs(10);
/// What idle connections still do after their handshakes (tickets, path MTU discovery) ends within this time.
const SETTLE: Duration = Duration::from_secs(2);

impl Task {
    pub(crate) const ALL: [Self; 5] = [
        Self::Bulk,
        Self::Requests1,
        Self::Requests100,
        Self::Handshakes,
        Self::Memory,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Requests1 => "requests1",
            Self::Requests100 => "requests100",
            Self::Handshakes => "handshakes",
            Self::Memory => "memory",
        }
    }

    /// Arguments of the client.
    fn arguments(self, quick: bool) -> Vec<String> {
        let seconds = if quick { 0.5 } else { 2.0 };
        let text = match self {
            Self::Bulk => format!("bulk --bytes {}", bulk_bytes(quick)),
            Self::Requests1 => format!("requests --bytes 1024 --seconds {seconds}"),
            Self::Requests100 => {
                format!("requests --bytes 1024 --concurrency 100 --seconds {seconds}")
            }
            Self::Handshakes => format!("handshakes --seconds {seconds}"),
            Self::Memory => format!("idle --connections {}", idle_connections(quick)),
        };
        text.split(' ').map(String::from).collect()
    }
}

/// Length of a bulk download, bytes.
pub(crate) fn bulk_bytes(quick: bool) -> u64 {
    if quick { 1 << 28 } else { 1 << 30 }
}

/// Idle connections to measure memory with.
pub(crate) fn idle_connections(quick: bool) -> usize {
    if quick { 500 } else { 2000 }
}

impl Metric {
    /// The name of the metric in JSON.
    pub(crate) fn key(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| name.as_str().map(String::from))
            .unwrap_or_default()
    }
}

/// A task, done once by one stack.
pub(crate) struct Trial<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) task: Task,
    pub(crate) args: &'a Args,
    pub(crate) identity: &'a Identity,
}

/// What a client prints.
#[derive(Deserialize)]
struct Report {
    bytes: f64,
    count: f64,
    seconds: f64,
    cpu_s: f64,
}

/// What a server answers.
#[derive(Deserialize)]
struct Stats {
    cpu_s: f64,
    resident_bytes: f64,
}

impl Trial<'_> {
    /// Measures with a new server and a new client.
    pub(crate) fn run(&self) -> anyhow::Result<Vec<(Metric, f64)>> {
        let mut server = self.server().context("server")?;
        if self.task == Task::Memory {
            // What the first connections leave behind is not of the idle ones.
            let warm = ["handshakes", "--seconds", "0.1"].map(String::from);
            let client = self.client(&warm)?;
            client.read::<Report>(LIMIT).context("client")?;
            thread::sleep(SETTLE);
        }
        let before: Stats = server.ask(ANSWER).context("server")?;
        let client = self.client(&self.task.arguments(self.args.quick))?;
        let report: Report = client.read(LIMIT).context("client")?;
        if self.task == Task::Memory {
            thread::sleep(SETTLE);
        }
        let after: Stats = server.ask(ANSWER).context("server")?;
        Ok(self.values(&report, &before, &after))
    }

    fn values(&self, report: &Report, before: &Stats, after: &Stats) -> Vec<(Metric, f64)> {
        let server_cpu_s = after.cpu_s - before.cpu_s;
        let rate = report.count / report.seconds;
        let server_cpu_us = server_cpu_s * 1e6 / report.count;
        let client_cpu_us = report.cpu_s * 1e6 / report.count;
        match self.task {
            Task::Bulk => vec![
                (Metric::BulkGbitS, report.bytes * 8e-9 / report.seconds),
                (
                    Metric::BulkServerCpuSPerGib,
                    server_cpu_s * GIB / report.bytes,
                ),
                (
                    Metric::BulkClientCpuSPerGib,
                    report.cpu_s * GIB / report.bytes,
                ),
            ],
            Task::Requests1 => vec![
                (Metric::RequestsS, rate),
                (Metric::RequestsServerCpuUs, server_cpu_us),
                (Metric::RequestsClientCpuUs, client_cpu_us),
            ],
            Task::Requests100 => vec![
                (Metric::ConcurrentRequestsS, rate),
                (Metric::ConcurrentRequestsServerCpuUs, server_cpu_us),
                (Metric::ConcurrentRequestsClientCpuUs, client_cpu_us),
            ],
            Task::Handshakes => vec![
                (Metric::HandshakesS, rate),
                (Metric::HandshakeServerCpuUs, server_cpu_us),
                (Metric::HandshakeClientCpuUs, client_cpu_us),
            ],
            Task::Memory => {
                let grown = after.resident_bytes - before.resident_bytes;
                vec![(Metric::IdleConnectionBytes, grown / report.count)]
            }
        }
    }

    fn server(&self) -> anyhow::Result<Process> {
        let [cert, key] =
            [&self.identity.cert, &self.identity.key].map(|p| p.display().to_string());
        let listen = self.listen();
        let arguments = [
            "server", "--listen", &listen, "--cert", &cert, "--key", &key,
        ];
        let place = self.place(self.args.server_core);
        let process = Process::start(&self.program()?, &arguments, place)?;
        process.wait_for("listening", ANSWER)?;
        Ok(process)
    }

    fn client(&self, task: &[String]) -> anyhow::Result<Process> {
        let listen = self.listen();
        let mut arguments = vec!["client", "--server", &listen, "--task"];
        arguments.extend(task.iter().map(String::as_str));
        let place = self.place(self.args.client_core);
        Process::start(&self.program()?, &arguments, place).context("client")
    }

    fn program(&self) -> anyhow::Result<PathBuf> {
        self.stack.program(&self.args.programs).context("not built")
    }

    fn listen(&self) -> String {
        format!("127.0.0.1:{}", self.args.port)
    }

    fn place(&self, core: usize) -> Place {
        Place {
            core,
            realtime: self.args.realtime,
        }
    }
}
