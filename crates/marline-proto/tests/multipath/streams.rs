//! Stream managers.

use marline_proto::StreamId;
use marline_proto::scheduling::stream::{
    FirstTurn, Priority, Rounding, StreamScheduler, Tokens, Wrr, WrrConfig,
};
use serde_json::{Value, json};

pub(super) fn tokens(input: &Value) -> Option<Value> {
    let weights = input["priorities"].as_array()?.iter().map(number);
    let weights: Vec<u16> = weights.collect::<Option<_>>()?;
    let heaviest = weights.iter().copied().max().unwrap_or(1);
    let scattered = scattered(input)?;
    let tokens = weights.iter().map(|weight| scattered.of(*weight, heaviest));
    Some(json!({ "tokens": tokens.collect::<Vec<_>>() }))
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64()?.try_into().ok()
}

fn scattered(input: &Value) -> Option<Tokens> {
    Some(Tokens::Scattered {
        most: number(&input["r"])?,
        rounding: match input["rounding"].as_str()? {
            "nearest" => Rounding::Nearest,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            _ => return None,
        },
    })
}

/// A stream of the vectors.
struct Stream<'a> {
    id: StreamId,
    priority: Priority,
    left: u64,
    arrive: u64,
    stalls: &'a [Value],
}

impl<'a> Stream<'a> {
    fn read(input: &'a Value) -> Option<Self> {
        let parent = input["parent"].as_u64().map(StreamId::from);
        Some(Self {
            id: StreamId::from(input["id"].as_u64()?),
            priority: Priority::weighted(parent, number(&input["priority"])?),
            left: input["packets"].as_u64()?,
            arrive: input["arrive"].as_u64().unwrap_or(0),
            stalls: input["stalls"].as_array().map_or(&[], Vec::as_slice),
        })
    }

    fn is_stalled(&self, step: u64) -> bool {
        self.stalls.iter().any(|stall| {
            let at = |n: usize| stall[n].as_u64();
            at(0).is_some_and(|from| from <= step) && at(1).is_some_and(|to| step < to)
        })
    }

    /// Updates `scheduler` with the state of the stream at `step`.
    fn update(&self, step: u64, scheduler: &mut dyn StreamScheduler) {
        if self.arrive == step {
            scheduler.activate(self.id, self.priority);
        }
        if self.arrive > step {
            return;
        }
        if self.left == 0 {
            scheduler.finish(self.id);
        } else if self.is_stalled(step) {
            scheduler.deactivate(self.id);
        } else {
            scheduler.activate(self.id, self.priority);
        }
    }
}

pub(super) fn order(input: &Value) -> Option<Value> {
    let tokens = match input["mode"].as_str()? {
        "swrr" => scattered(input)?,
        "wrr" => Tokens::Weight,
        _ => return None,
    };
    let mut scheduler = Wrr::new(WrrConfig {
        tokens,
        strict_parent: input["strict_parent"].as_bool()?,
        first_turn: match input["newcomer"].as_str() {
            None | Some("wait") => FirstTurn::Wait,
            Some("immediate") => FirstTurn::Immediate,
            Some(_) => return None,
        },
    });
    let streams = input["streams"].as_array()?.iter().map(Stream::read);
    let mut streams: Vec<Stream<'_>> = streams.collect::<Option<_>>()?;
    let mut order = Vec::new();
    for step in 0..input["limit"].as_u64()? {
        for stream in &streams {
            stream.update(step, &mut scheduler);
        }
        if streams.iter().all(|stream| stream.left == 0) {
            break;
        }
        let picked = scheduler.pick();
        if let Some(id) = picked {
            scheduler.on_sent(id, 1200);
            let stream = streams.iter_mut().find(|stream| stream.id == id)?;
            stream.left = stream.left.checked_sub(1)?;
        }
        order.push(picked.map(u64::from));
    }
    Some(json!({ "order": order }))
}
