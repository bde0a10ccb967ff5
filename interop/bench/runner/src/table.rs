//! The table, in Markdown.

use std::fmt::Write as _;

use crate::results::Results;
use crate::stacks::{self, CEILING, REFERENCE};
use crate::task::{self, Metric};

/// The presentation of a metric in a column.
struct Column {
    title: &'static str,
    metric: Metric,
    /// The value is divided by this.
    unit: f64,
    decimals: usize,
    /// The stack that the value is compared with.
    beside: &'static [Beside],
}

enum Beside {
    Reference,
    Ceiling,
}

const COLUMNS: &[Column] = &[
    Column {
        title: "bulk, Gbit/s (× quinn, share of the ceiling)",
        metric: Metric::BulkGbitS,
        unit: 1.0,
        decimals: 2,
        beside: &[Beside::Reference, Beside::Ceiling],
    },
    Column {
        title: "server CPU, s/GiB (× quinn)",
        metric: Metric::BulkServerCpuSPerGib,
        unit: 1.0,
        decimals: 2,
        beside: &[Beside::Reference],
    },
    Column {
        title: "client CPU, s/GiB (× quinn)",
        metric: Metric::BulkClientCpuSPerGib,
        unit: 1.0,
        decimals: 2,
        beside: &[Beside::Reference],
    },
    Column {
        title: "requests one at a time, 1000/s (× quinn)",
        metric: Metric::RequestsS,
        unit: 1e3,
        decimals: 1,
        beside: &[Beside::Reference],
    },
    Column {
        title: "requests 100 at once, 1000/s (× quinn)",
        metric: Metric::ConcurrentRequestsS,
        unit: 1e3,
        decimals: 1,
        beside: &[Beside::Reference],
    },
    Column {
        title: "handshakes/s (× quinn)",
        metric: Metric::HandshakesS,
        unit: 1.0,
        decimals: 0,
        beside: &[Beside::Reference],
    },
    Column {
        title: "KiB per idle connection (× quinn)",
        metric: Metric::IdleConnectionBytes,
        unit: 1024.0,
        decimals: 1,
        beside: &[Beside::Reference],
    },
];

/// The table of `results`, with an explanation.
pub(crate) fn markdown(results: &Results) -> String {
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|column| {
            let measured = |stack: &stacks::Stack| results.median(stack.name, column.metric);
            stacks::ALL.iter().any(|stack| measured(stack).is_some())
        })
        .collect();
    let mut text = String::from("| stack |");
    for column in &columns {
        text += &format!(" {} |", column.title);
    }
    text += "\n| --- |";
    text += &" ---: |".repeat(columns.len());
    for stack in stacks::ALL.iter().filter(|stack| results.has(stack.name)) {
        text += &format!("\n| {} |", stack.name);
        for column in &columns {
            text += &format!(" {} |", cell(results, stack.name, column));
        }
    }
    text += "\n\n";
    describe(results, &mut text);
    text
}

fn cell(results: &Results, stack: &str, column: &Column) -> String {
    let Some(value) = results.median(stack, column.metric) else {
        return String::new();
    };
    let compared: Vec<_> = column
        .beside
        .iter()
        .filter_map(|beside| match beside {
            Beside::Reference => results
                .ratio(stack, REFERENCE, column.metric)
                .map(|ratio| format!("{ratio:.2}")),
            Beside::Ceiling => results
                .ratio(stack, CEILING, column.metric)
                .map(|share| format!("{:.0}%", share * 100.0)),
        })
        .collect();
    let value = format!("{:.*}", column.decimals, value / column.unit);
    if compared.is_empty() {
        value
    } else {
        format!("{value} ({})", compared.join(", "))
    }
}

fn describe(results: &Results, text: &mut String) {
    let rounds = results.rounds;
    let quick = if results.quick { ", small tasks" } else { "" };
    let realtime = if results.realtime {
        " before all other work (SCHED_FIFO)"
    } else {
        ""
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "Medians of {rounds} interleaved rounds{quick}; ratios are medians of the ratios within each round. Loopback, \
         server on core {}, client on core {}, one thread each{realtime}; {}, load {:.1} before the start. All with \
         TLS_AES_128_GCM_SHA256, X25519, an ECDSA certificate (P-256), CUBIC, windows of 16 MiB, socket buffers of 4 MiB \
         and the stack's own size of datagrams. Bulk: {} MiB on one stream. Requests: 1 KiB, each on a stream of its own, \
         on one connection. Handshakes: full, one after the other. Memory: growth of the server's resident memory by \
         {} idle connections.\n",
        results.server_core,
        results.client_core,
        results.processor,
        results.load_before,
        task::bulk_bytes(results.quick) >> 20,
        task::IDLE_CONNECTIONS,
    );
    for stack in stacks::ALL.iter().filter(|stack| results.has(stack.name)) {
        let _ = writeln!(text, "* {}: {}", stack.name, stack.about);
    }
    for failure in &results.failures {
        let _ = writeln!(text, "* failed: {failure}");
    }
}
