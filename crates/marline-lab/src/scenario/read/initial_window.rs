//! Reads `initial_window`: a number of packets, `history`, `careful`, or a table of switches.

use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::HistoryConfig;
use marline::settings::{Settings, apply};

use super::written::placed_in;
use super::{Item, Node, Problem, Reader};
use crate::scenario::initial_window::{CAREFULS, HISTORIES};
use crate::scenario::{InitialWindow, Learnt};

/// Reads the initial window in `node`; defaults are those of `start`.
pub(super) fn read_initial_window(
    node: &Node,
    start: InitialWindow,
) -> Result<InitialWindow, Problem> {
    if !matches!(node.item, Item::Table(_)) {
        let what = match &node.item {
            Item::Text(text) => format!("\"{text}\""),
            _ => node.kind().to_owned(),
        };
        return Err(node.problem(format_args!(
            "{what} is not an initial window; write a number of packets, \"history\", \"careful\" or a table of \
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
        read_settings(
            &mut reader,
            HistoryConfig::SETTINGS,
            &[],
            &mut learnt.history,
        )?;
        if let Some(careful) = &mut learnt.careful {
            careful.lifetime = learnt.history.lifetime;
            // These keys follow from `lifetime` and `careful`.
            let known = ["lifetime", "tokens"];
            read_settings(&mut reader, CarefulResumeConfig::SETTINGS, &known, careful)?;
        }
    }
    reader.finish()?;
    Ok(InitialWindow { fallback, learnt })
}

/// Reads the keys of `settings` except `others`, in a table that has further keys.
fn read_settings<C>(
    reader: &mut Reader<'_>,
    settings: Settings<C>,
    others: &[&str],
    config: &mut C,
) -> Result<(), Problem> {
    let keys = settings.iter().map(|setting| setting.key());
    let written: Vec<_> = keys
        .filter(|key| !others.contains(key))
        .filter_map(|key| Some((key.to_owned(), reader.get(key)?.written())))
        .collect();
    apply(settings, config, &written).map_err(|refused| placed_in(&refused, reader))
}
