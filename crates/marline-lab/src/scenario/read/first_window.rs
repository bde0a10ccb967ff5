//! `initial_window`: a number of packets, `history`, `careful`, or a table of switches.

use std::time::Duration;

use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::{Average, HistoryConfig, MAX_WINDOW_SAMPLES};

use super::{Item, Node, Problem, Reader};
use crate::scenario::first_window::{
    AVERAGES, AverageKind, CAREFULS, HISTORIES, NONE, SCOPES, ZERO_RTTS,
};
use crate::scenario::{FirstWindow, Learnt};

/// Samples that count for a moving average unless a scenario says otherwise.
const SAMPLES: usize = 8;
/// The weight of the latest sample unless a scenario says otherwise.
const WEIGHT: f64 = 0.125;

/// The first window in `node`; what it leaves out is as in `start`.
pub(super) fn read_first_window(node: &Node, start: FirstWindow) -> Result<FirstWindow, Problem> {
    if !matches!(node.item, Item::Table(_)) {
        let what = match &node.item {
            Item::Text(text) => format!("\"{text}\""),
            _ => node.kind().to_owned(),
        };
        return Err(node.problem(format_args!(
            "{what} is no first window; write a number of packets, \"history\", \"careful\" or a table of \
             switches"
        )));
    }
    let mut reader = Reader::of(node)?;
    let packets = |node: &Node| node.within(2..=100_000);
    let fallback = reader.optional("fallback", packets)?.or(start.fallback);
    let history = reader.optional("history", |node| node.named("history", &HISTORIES))?;
    let careful = reader.optional("careful", |node| node.named("careful resume", &CAREFULS))?;
    let mut learnt = match (start.learnt, history.is_some() || careful.is_some()) {
        (Some(learnt), false) => Some(learnt),
        (None, false) => None,
        (_, true) => Some(Box::new(Learnt {
            history: history.map_or_else(HistoryConfig::default, |base| base()),
            careful: careful.map(|base| base()),
        })),
    };
    if let Some(learnt) = &mut learnt {
        read_history(&mut reader, &mut learnt.history)?;
        if let Some(careful) = &mut learnt.careful {
            careful.lifetime = learnt.history.lifetime;
            read_careful(&mut reader, careful)?;
        }
    }
    reader.finish()?;
    Ok(FirstWindow { fallback, learnt })
}

fn read_history(reader: &mut Reader<'_>, config: &mut HistoryConfig) -> Result<(), Problem> {
    let HistoryConfig {
        average,
        scope,
        per_server_name,
        zero_rtt,
        cap,
        raise_only_when_limited,
        lifetime,
    } = config;
    *average = read_average(reader, *average)?;
    let whose = |node: &Node| node.named("scope", &SCOPES);
    replace(scope, reader.optional("scope", whose)?);
    let switch = reader.optional("per_server_name", Node::switch)?;
    replace(per_server_name, switch);
    let resumed = |node: &Node| node.named("way for resumed sessions", &ZERO_RTTS);
    replace(zero_rtt, reader.optional("zero_rtt", resumed)?);
    let most = |node: &Node| limit(node, Node::size);
    replace(cap, reader.optional("cap", most)?);
    let switch = reader.optional("raise_only_when_limited", Node::switch)?;
    replace(raise_only_when_limited, switch);
    let longest = |node: &Node| limit(node, Node::time);
    let holds = reader.optional("lifetime", longest)?;
    replace(lifetime, holds.map(|time| time.unwrap_or(Duration::MAX)));
    Ok(())
}

fn read_average(reader: &mut Reader<'_>, start: Average) -> Result<Average, Problem> {
    let kind = reader.optional("average", |node| node.named("average", &AVERAGES))?;
    let kind = kind.unwrap_or(match start {
        Average::Mean => AverageKind::Mean,
        Average::Window(_) => AverageKind::Window,
        Average::Ewma { .. } => AverageKind::Ewma,
    });
    Ok(match kind {
        AverageKind::Mean => Average::Mean,
        AverageKind::Window => {
            let count = |node: &Node| Ok(node.within(1..=MAX_WINDOW_SAMPLES as u64)? as usize);
            let of_start = match start {
                Average::Window(samples) => samples,
                _ => SAMPLES,
            };
            Average::Window(reader.optional("window", count)?.unwrap_or(of_start))
        }
        AverageKind::Ewma => {
            let of_start = match start {
                Average::Ewma { weight } => weight,
                _ => WEIGHT,
            };
            let weight = reader.optional("weight", Node::part)?.unwrap_or(of_start);
            Average::Ewma { weight }
        }
    })
}

fn read_careful(reader: &mut Reader<'_>, config: &mut CarefulResumeConfig) -> Result<(), Problem> {
    let CarefulResumeConfig {
        max_jump,
        lifetime: _,
        beta,
        tokens: _,
    } = config;
    let most = |node: &Node| limit(node, Node::size);
    replace(max_jump, reader.optional("max_jump", most)?);
    let factor = |node: &Node| {
        let number = node.number()?;
        let is_one = (0.5..=1.0).contains(&number);
        let problem = || node.problem("this must be a number from 0.5 to 1");
        is_one.then_some(number).ok_or_else(problem)
    };
    replace(beta, reader.optional("beta", factor)?);
    Ok(())
}

fn replace<T>(slot: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *slot = new;
    }
}

/// `None` if it is [`NONE`].
fn limit<T>(
    node: &Node,
    read: impl FnOnce(&Node) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    match &node.item {
        Item::Text(text) if text == NONE => Ok(None),
        _ => read(node).map(Some),
    }
}
