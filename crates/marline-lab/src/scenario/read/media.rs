//! Reads the workloads `video` and `call`.

use std::time::Duration;

use super::{Node, Problem, Reader};
use crate::scenario::keys::DIRECTIONS;
use crate::scenario::{CallDef, Carrier, Direction, VideoChoice, VideoDef, Workload};

/// Largest number of segments or frames: more are considered a mistake.
const MAX_PARTS: u64 = 1_000_000;

pub(super) fn read_video(node: &Node) -> Result<Workload, Problem> {
    let mut reader = Reader::of(node)?;
    let example = "ladder = [\"1mbps\", \"2.5mbps\", \"5mbps\"]";
    let ladder = reader.required("ladder", example, |node| {
        let ladder: Result<Vec<_>, _> = node.members().iter().map(Node::rate).collect();
        let ladder = ladder?;
        match !ladder.is_empty() && ladder.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(ladder),
            false => Err(node.problem("the ladder is a list of bit rates, the lowest first")),
        }
    })?;
    let positive = |node: &Node| match node.time()? {
        time if time >= Duration::from_millis(1) => Ok(time),
        _ => Err(node.problem("this must be 1ms or more")),
    };
    let length = reader.required("length", "length = \"60s\"", positive)?;
    let segment = reader.optional("segment", positive)?;
    let segment = segment.unwrap_or(Duration::from_secs(4));
    let buffer = reader.optional("buffer", positive)?;
    let buffer = buffer.unwrap_or(Duration::from_secs(30));
    let choice = reader.optional("choice", |node| node.named("choice", &VideoChoice::NAMES))?;
    reader.finish()?;
    if buffer < 2 * segment {
        return Err(node.problem("the buffer is too short; let it hold two segments or more"));
    }
    let segments = length.as_nanos().div_ceil(segment.as_nanos());
    Ok(Workload::Video {
        video: VideoDef {
            ladder,
            segments: parts(node, segments)?,
            segment,
            buffer,
            choice: choice.unwrap_or_default(),
        },
    })
}

pub(super) fn read_call(node: &Node) -> Result<Workload, Problem> {
    let mut reader = Reader::of(node)?;
    let rate = reader.required("rate", "rate = \"1.5mbps\"", Node::rate)?;
    let length = reader.required("length", "length = \"30s\"", Node::time)?;
    let frames = reader.optional("frames_per_second", |node| node.within(1..=1000))?;
    let deadline = reader.optional("deadline", Node::time)?;
    let over = reader.optional("over", |node| node.named("carrier", &Carrier::NAMES))?;
    let direction = reader.optional("direction", |node| node.named("direction", &DIRECTIONS))?;
    reader.finish()?;
    let call = CallDef {
        rate,
        frames_per_second: frames.map_or(30, |frames| frames as u32),
        length,
        deadline: deadline.unwrap_or(Duration::from_millis(150)),
        over: over.unwrap_or_default(),
        direction: direction.unwrap_or(Direction::Up),
    };
    parts(node, call.frames().into())?;
    Ok(Workload::Call { call })
}

/// A number of segments or frames.
fn parts(node: &Node, count: u128) -> Result<usize, Problem> {
    match count <= MAX_PARTS.into() && count > 0 {
        true => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        false => Err(node.problem(format_args!(
            "{count} parts are out of range: 1 to {MAX_PARTS}"
        ))),
    }
}
