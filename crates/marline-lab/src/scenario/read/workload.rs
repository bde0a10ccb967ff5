//! Reads `[workload]`.

use std::collections::BTreeMap;
use std::time::Duration;

use marline::Priority;

use super::media::{read_call, read_video};
use super::{Item, Node, Problem, Reader};
use crate::scenario::keys::{DIRECTIONS, WORKLOADS};
use crate::scenario::{Order, StreamDef, Visit, Workload};

const ORDERS: [(&str, Order); 2] = [
    ("at-once", Order::AtOnce),
    ("in-sequence", Order::InSequence),
];

/// The keys beside the one of a kind of workload, and the kinds that have them.
const SHARED: [(&str, &[&str]); 12] = [
    ("order", &["objects"]),
    ("warm", &["objects", "files", "streams", "transfer"]),
    ("shuffled", &["streams"]),
    ("seed", &["page"]),
    ("readable", &["page"]),
    ("loads", &["page"]),
    ("pause", &["page"]),
    ("start", &["page"]),
    ("windows", &["page"]),
    ("afterwards", &["visits"]),
    ("direction", &["transfer"]),
    ("features", &["transfer"]),
];

/// Largest number of objects or streams: more are considered a mistake.
const MAX_MEMBERS: usize = 10_000;

/// The default pause before a visit.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn read_workload(reader: &mut Reader<'_>) -> Result<Workload, Problem> {
    let example = "[workload] objects = [\"500kB\"]";
    reader.required("workload", example, |node| {
        let mut reader = Reader::of(node)?;
        let workload = read_kind(&mut reader)?;
        reader.finish()?;
        Ok(workload)
    })
}

fn read_kind(reader: &mut Reader<'_>) -> Result<Workload, Problem> {
    let mut kinds = WORKLOADS
        .into_iter()
        .filter_map(|kind| reader.get(kind).map(|node| (kind, node)));
    let (first, second) = (kinds.next(), kinds.next());
    drop(kinds);
    let Some((kind, node)) = first else {
        return Err(reader.problem(
            "what to do is missing; add one of objects, files, streams, page, devices, measure, visits, transfer, video and call, as \
             objects = [\"500kB\"]",
        ));
    };
    if let Some((other, node)) = second {
        return Err(node.problem(format_args!(
            "there is {kind} and {other}; keep one of them"
        )));
    }
    for (key, kinds) in SHARED {
        if let Some(node) = reader.table.get(key)
            && !kinds.contains(&kind)
        {
            return Err(node.problem(format_args!(
                "{key} belongs to {}, and this workload is {kind}; leave it out",
                kinds.join(", ")
            )));
        }
    }
    match kind {
        "objects" => Ok(Workload::Objects {
            objects: read_list(node, Node::size)?,
            order: reader
                .optional("order", |node| node.named("order", &ORDERS))?
                .unwrap_or_default(),
            warm: warm(reader)?,
        }),
        "files" => Ok(Workload::Files {
            directory: node.text()?,
            warm: warm(reader)?,
        }),
        "streams" => Ok(Workload::Streams {
            streams: read_streams(node)?,
            shuffled: reader.optional("shuffled", Node::switch)?.unwrap_or(false),
            warm: warm(reader)?,
        }),
        "page" => Ok(Workload::Page {
            page: node.text()?,
            seed: reader
                .optional("seed", |node| node.within(0..=u64::MAX))?
                .unwrap_or(1),
            readable: reader
                .optional("readable", Node::switch)?
                .unwrap_or_default(),
            loads: reader
                .optional("loads", |node| Ok(node.within(1..=MAX_LOADS)? as u32))?
                .unwrap_or(1),
            pause: reader.optional("pause", Node::time)?.unwrap_or_default(),
            start: reader.optional("start", Node::time)?.unwrap_or_default(),
            windows: reader.optional("windows", Node::time)?,
        }),
        "devices" => read_devices(node),
        "video" => read_video(node),
        "call" => read_call(node),
        "measure" => read_measure(node),
        "visits" => Ok(Workload::Visits {
            visits: read_list(node, read_visit)?,
            afterwards: reader
                .optional("afterwards", Node::time)?
                .unwrap_or_default(),
        }),
        _ => Ok(Workload::Transfer {
            bytes: node.size()?,
            direction: reader
                .optional("direction", |node| node.named("direction", &DIRECTIONS))?
                .unwrap_or_default(),
            warm: warm(reader)?,
            features: reader.optional("features", Node::switch)?.unwrap_or(false),
        }),
    }
}

/// Largest number of loads of a page in one run: a chart cannot show more.
const MAX_LOADS: u64 = 1000;

/// Largest number of devices: a chart cannot show more.
const MAX_DEVICES: u64 = 100;

fn read_devices(node: &Node) -> Result<Workload, Problem> {
    let mut reader = Reader::of(node)?;
    let devices = Workload::Devices {
        page: reader.required("page", "page = \"multipipe/large\"", Node::text)?,
        seed: reader
            .optional("seed", |node| node.within(0..=u64::MAX))?
            .unwrap_or(1),
        count: reader.required("count", "count = 3", |node| {
            Ok(node.within(2..=MAX_DEVICES)? as usize)
        })?,
        apart: reader.optional("apart", Node::time)?.unwrap_or_default(),
    };
    reader.finish()?;
    Ok(devices)
}

fn read_measure(node: &Node) -> Result<Workload, Problem> {
    let mut reader = Reader::of(node)?;
    let after = reader.optional("after", Node::time)?.unwrap_or_default();
    let until = reader.required("until", "until = \"70s\"", Node::time)?;
    let direction = reader.optional("direction", |node| node.named("direction", &DIRECTIONS))?;
    reader.finish()?;
    match until > after {
        true => Ok(Workload::Measure {
            after,
            until,
            direction: direction.unwrap_or_default(),
        }),
        false => Err(node.problem("nothing is left to measure; let `until` be later than `after`")),
    }
}

fn read_visit(node: &Node) -> Result<Visit, Problem> {
    let mut reader = Reader::of(node)?;
    let times = |node: &Node| Ok(node.within(1..=MAX_MEMBERS as u64)? as u32);
    let visit = Visit {
        size: reader.required("size", "size = \"1MB\"", Node::size)?,
        times: reader.optional("times", times)?.unwrap_or(1),
        pause: reader.optional("pause", Node::time)?.unwrap_or(PAUSE),
        open: reader.optional("open", Node::switch)?.unwrap_or(false),
        early: reader.optional("early", Node::switch)?.unwrap_or(false),
    };
    reader.finish()?;
    Ok(visit)
}

fn warm(reader: &mut Reader<'_>) -> Result<bool, Problem> {
    Ok(reader.optional("warm", Node::switch)?.unwrap_or(false))
}

fn read_list<T>(
    node: &Node,
    read: impl Fn(&Node) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let members = node.members();
    if members.is_empty() {
        return Err(node.problem("the list is empty; add something"));
    }
    if members.len() > MAX_MEMBERS {
        return Err(node.problem(format_args!(
            "these are more than {MAX_MEMBERS}; leave some out"
        )));
    }
    members.iter().map(read).collect()
}

fn read_streams(node: &Node) -> Result<Vec<StreamDef>, Problem> {
    let streams = read_list(node, read_stream)?;
    let mut by_id: BTreeMap<u64, &StreamDef> = BTreeMap::new();
    for (stream, node) in streams.iter().zip(node.members()) {
        if by_id.insert(stream.id, stream).is_some() {
            return Err(node.problem(format_args!("stream {} is there twice", stream.id)));
        }
    }
    for (stream, node) in streams.iter().zip(node.members()) {
        let at = |key| match &node.item {
            Item::Table(table) => table.get(key).unwrap_or(node),
            _ => node,
        };
        match end_of(stream, &by_id, |def| def.parent) {
            End::Found => {}
            End::Missing(id) => {
                let text = format!("there is no stream {id} to depend on");
                return Err(at("parent").problem(text));
            }
            End::Cycle => {
                let id = stream.id;
                let text = format!("stream {id} depends on itself; change its parent");
                return Err(at("parent").problem(text));
            }
        }
        match end_of(stream, &by_id, |def| def.after) {
            End::Found => {}
            End::Missing(id) => {
                let text = format!("there is no stream {id} to come after");
                return Err(at("after").problem(text));
            }
            End::Cycle => {
                let id = stream.id;
                let text = format!("stream {id} comes after itself; change its after");
                return Err(at("after").problem(text));
            }
        }
    }
    Ok(streams)
}

/// The end of a chain of streams.
enum End {
    /// A stream without a next one.
    Found,
    /// A stream that does not exist.
    Missing(u64),
    /// A cycle.
    Cycle,
}

/// Follows `next` from `stream`.
fn end_of(
    stream: &StreamDef,
    streams: &BTreeMap<u64, &StreamDef>,
    next: impl Fn(&StreamDef) -> Option<u64>,
) -> End {
    let mut above = next(stream);
    for _ in 0..streams.len() {
        let Some(id) = above else { return End::Found };
        let Some(found) = streams.get(&id) else {
            return End::Missing(id);
        };
        above = next(found);
    }
    match above {
        None => End::Found,
        Some(_) => End::Cycle,
    }
}

fn read_stream(node: &Node) -> Result<StreamDef, Problem> {
    let mut reader = Reader::of(node)?;
    let id = |node: &Node| node.within(0..=u64::MAX);
    let urgency = reader.optional("urgency", |node| node.within(0..=7))?;
    let urgency = urgency.map_or(Priority::default().urgency, |urgency| urgency as u8);
    let weight = reader.optional("weight", |node| node.within(1..=256))?;
    let stream = StreamDef {
        id: reader.required("id", "id = 1", id)?,
        size: reader.required("size", "size = \"20kB\"", Node::size)?,
        parent: reader.optional("parent", id)?,
        weight: weight.map_or_else(
            || Priority::new(urgency, false).weight(),
            |weight| weight as u16,
        ),
        urgency,
        incremental: reader
            .optional("incremental", Node::switch)?
            .unwrap_or(false),
        after: reader.optional("after", id)?,
        start: reader
            .optional("start", Node::time)?
            .unwrap_or(Duration::ZERO),
        group: reader.optional("group", read_group)?,
    };
    reader.finish()?;
    Ok(stream)
}

/// A group: a word that can be part of the name of a metric.
fn read_group(node: &Node) -> Result<String, Problem> {
    let name = node.text()?;
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !name.is_empty() && name.len() <= 32 && name.chars().all(is_word) {
        true => Ok(name),
        false => Err(node.problem("a group is a word of small letters, digits and _")),
    }
}
