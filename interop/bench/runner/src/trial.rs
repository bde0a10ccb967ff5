//! Measurement of one task.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;

use crate::args::Args;
use crate::identity::Identity;
use crate::process::{Place, Process};
use crate::stacks::Stack;
use crate::task::{Metric, Task};

const GIB: f64 = (1_u64 << 30) as f64;
/// Timeout of a task.
const LIMIT: Duration = Duration::from_secs(120);
/// Timeout of a query to a server.
const ANSWER: Duration = Duration::from_secs(10);
/// Time for idle connections to complete session tickets and path MTU discovery.
const SETTLE: Duration = Duration::from_secs(2);

/// One run of a task by one stack.
pub(crate) struct Trial<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) task: Task,
    pub(crate) args: &'a Args,
    pub(crate) identity: &'a Identity,
}

/// The output of a client.
#[derive(Deserialize)]
pub(crate) struct Report {
    pub(crate) bytes: f64,
    count: f64,
    pub(crate) seconds: f64,
    cpu_s: f64,
    /// The duration of each download of the task `fetch`.
    #[serde(default)]
    pub(crate) each: Vec<f64>,
}

/// The response of a server.
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
            // Excludes memory that earlier connections left behind.
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
