//! Reads `[[background]]`.

use std::time::Duration;

use super::endpoint::read_endpoint;
use super::{Item, Node, Problem, Reader, unknown};
use crate::scenario::keys::DIRECTIONS;
use crate::scenario::{
    Background, Direction, EndpointSettings, TcpController, TcpFlows, TcpRunner, Topology, Traffic,
};

/// Payload that fills packets on most paths, in bytes.
const PACKET: u16 = 1200;

/// Largest number of flows of one background: more are considered a mistake.
const FLOWS: u64 = 1000;

/// The same for flows that iperf3 may run, which take two processes each.
const PROGRAMS: u64 = 100;

#[derive(Clone, Copy)]
enum Kind {
    Flows,
    Tcp,
    OnOff,
    Poisson,
}

const KINDS: [(&str, Kind); 4] = [
    ("flows", Kind::Flows),
    ("tcp", Kind::Tcp),
    ("on-off", Kind::OnOff),
    ("poisson", Kind::Poisson),
];

pub(super) fn read_background(
    reader: &mut Reader<'_>,
    topology: &Topology,
) -> Result<Vec<Background>, Problem> {
    let Some(node) = reader.get("background") else {
        return Ok(Vec::new());
    };
    if !matches!(node.item, Item::List(_)) {
        return Err(node.problem("background is a list; begin each member with [[background]]"));
    }
    node.members()
        .iter()
        .map(|node| read_one(node, topology))
        .collect()
}

fn read_one(node: &Node, topology: &Topology) -> Result<Background, Problem> {
    let mut reader = Reader::of(node)?;
    let host = |node: &Node| {
        let name = node.text()?;
        if topology.hosts.contains(&name) {
            Ok(name)
        } else {
            let known = topology.hosts.iter().map(String::as_str);
            Err(node.problem(unknown("host", &name, known)))
        }
    };
    let kind = reader.required("kind", "kind = \"flows\"", |node| {
        node.named("kind of background", &KINDS)
    })?;
    let (from, to) = match kind {
        Kind::Flows | Kind::Tcp => (Topology::CLIENT, Topology::SERVER),
        Kind::OnOff | Kind::Poisson => (Topology::SERVER, Topology::CLIENT),
    };
    let hosts = [reader.optional("from", host)?, reader.optional("to", host)?];
    let has_hosts = hosts.iter().any(Option::is_some);
    let [own_from, own_to] = hosts;
    let from = own_from.unwrap_or(from.to_owned());
    let to = own_to.unwrap_or(to.to_owned());
    if from == to {
        return Err(reader.problem(format_args!(
            "from and to are both \"{to}\"; name two hosts"
        )));
    }
    // Packets go from `from` to `to`, but flows are opened there, and may go either way.
    if has_hosts && matches!(kind, Kind::Flows | Kind::Tcp) && reader.get("direction").is_none() {
        return Err(reader.problem(format_args!(
            "{from} opens the flows to {to}, but this does not say which way they send; add direction = \"down\" \
             (to {from}) or direction = \"up\" (to {to})"
        )));
    }
    let start = reader.optional("start", Node::time)?;
    let measured = reader.optional("metrics", Node::switch)?;
    let example = "rate = \"1mbps\"";
    let traffic = match kind {
        Kind::Flows => {
            let mut ends = EndpointSettings::default();
            read_endpoint(&mut reader, &mut ends)?;
            Traffic::Flows {
                count: count(&mut reader, FLOWS)?,
                ends: Box::new(ends),
                direction: direction(&mut reader)?,
                spread: spread(&mut reader)?,
            }
        }
        Kind::Tcp => {
            let controller = |node: &Node| node.named("controller of TCP", &TcpController::NAMES);
            Traffic::Tcp(TcpFlows {
                count: count(&mut reader, PROGRAMS)?,
                cc: reader.optional("cc", controller)?.unwrap_or_default(),
                direction: direction(&mut reader)?,
                spread: spread(&mut reader)?,
                rate: reader.optional("rate", Node::rate)?,
                run_by: TcpRunner::default(),
            })
        }
        Kind::OnOff => Traffic::OnOff {
            rate: reader.required("rate", example, Node::rate)?,
            on: reader.required("on", "on = \"1s\"", Node::time)?,
            off: reader
                .optional("off", Node::time)?
                .unwrap_or(Duration::ZERO),
            size: packet(&mut reader)?,
        },
        Kind::Poisson => Traffic::Poisson {
            rate: reader.required("rate", example, Node::rate)?,
            size: packet(&mut reader)?,
        },
    };
    reader.finish()?;
    Ok(Background {
        from,
        to,
        start: start.unwrap_or(Duration::ZERO),
        traffic,
        measured: measured.unwrap_or_default(),
    })
}

fn count(reader: &mut Reader<'_>, most: u64) -> Result<usize, Problem> {
    let count = reader.optional("count", |node| node.within(0..=most))?;
    Ok(count.map_or(1, |count| count as usize))
}

fn direction(reader: &mut Reader<'_>) -> Result<Direction, Problem> {
    let direction = reader.optional("direction", |node| node.named("direction", &DIRECTIONS))?;
    Ok(direction.unwrap_or_default())
}

fn spread(reader: &mut Reader<'_>) -> Result<Duration, Problem> {
    let spread = reader.optional("spread", Node::time)?;
    Ok(spread.unwrap_or(Duration::ZERO))
}

fn packet(reader: &mut Reader<'_>) -> Result<u16, Problem> {
    let size = reader.optional("size", |node| {
        let bytes = node.size()?;
        u16::try_from(bytes)
            .ok()
            .filter(|bytes| (1..=1472).contains(bytes))
            .ok_or_else(|| node.problem("a packet carries 1 to 1472 bytes"))
    })?;
    Ok(size.unwrap_or(PACKET))
}
