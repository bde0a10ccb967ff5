//! `cc`, `initial_window` and the like: for both ends at the top, for one in `[client]`, `[server]`.

use marline::congestion::INITIAL_WINDOWS;
use marline::settings::{Refused, Written};
use marline::{Profile, TransportConfig};

use super::first_window::read_first_window;
use super::{Item, Node, Problem, Reader, Table};
use crate::scenario::EndpointSettings;

/// Client and server.
pub(super) fn read_endpoints(
    reader: &mut Reader<'_>,
) -> Result<(EndpointSettings, EndpointSettings), Problem> {
    let mut both = EndpointSettings::default();
    read_endpoint(reader, &mut both)?;
    let mut side = |key| {
        let mut settings = both.clone();
        if let Some(node) = reader.get(key) {
            let mut inner = Reader::of(node)?;
            read_endpoint(&mut inner, &mut settings)?;
            inner.finish()?;
        }
        Ok(settings)
    };
    Ok((side("client")?, side("server")?))
}

/// The key that has a reader of its own where it is a number or a table.
const INITIAL_WINDOW: &str = "initial_window";

/// Reads what is different for one end, or for both.
pub(super) fn read_endpoint(
    reader: &mut Reader<'_>,
    into: &mut EndpointSettings,
) -> Result<(), Problem> {
    if let Some(node) = reader.get("profile") {
        into.profile = node.named(
            "profile",
            &Profile::ALL.map(|profile| (profile.name(), profile)),
        )?;
    }
    let mut written = Vec::new();
    for setting in TransportConfig::SETTINGS {
        let key = setting.key();
        let Some(node) = reader.get(key) else {
            continue;
        };
        match &node.item {
            Item::Text(text) if key == INITIAL_WINDOW => {
                check_first_window(node, text)?;
                into.initial_window = None;
                written.push((key.to_owned(), node.written()));
            }
            _ if key == INITIAL_WINDOW => {
                let start = into.initial_window.take().unwrap_or_default();
                into.initial_window = Some(read_first_window(node, start)?);
            }
            _ => written.push((key.to_owned(), node.written())),
        }
    }
    *into = std::mem::take(into)
        .with_all(written)
        .map_err(|refused| placed(&refused, reader.table, reader))?;
    Ok(())
}

fn check_first_window(node: &Node, text: &str) -> Result<(), Problem> {
    match INITIAL_WINDOWS.make(text) {
        Ok(_) => Ok(()),
        Err(why) => Err(node.problem(format_args!(
            "{why}; or write a number of packets, \"history\", \"careful\" or a table of switches"
        ))),
    }
}

/// What is refused, at the place where it was written.
fn placed(refused: &Refused, table: &Table, reader: &Reader<'_>) -> Problem {
    let mut place = reader.place;
    let mut table = Some(table);
    for key in &refused.path {
        let Some(node) = table.and_then(|table| table.get(key)) else {
            break;
        };
        place = &node.place;
        table = match &node.item {
            Item::Table(inner) => Some(inner),
            _ => None,
        };
    }
    Problem::new(place, &refused.text)
}

/// What is refused of the settings in the table `node`, at the place where it was written.
pub(super) fn placed_in(refused: &Refused, reader: &Reader<'_>) -> Problem {
    placed(refused, reader.table, reader)
}

impl Node {
    /// As settings are written.
    pub(super) fn written(&self) -> Written {
        match &self.item {
            Item::Text(text) => Written::Text(current(text)),
            Item::Integer(number) => Written::Integer(*number),
            Item::Float(number) => Written::Number(*number),
            Item::Switch(switch) => Written::Switch(*switch),
            Item::List(_) => Written::List,
            Item::Table(table) => {
                let entries = table.0.iter();
                let entries = entries.map(|(key, node)| (key.clone(), node.written()));
                Written::Table(entries.collect())
            }
        }
    }
}

/// Policies that were written otherwise before they had parameters.
fn current(text: &str) -> String {
    match text.strip_prefix("every ").map(str::trim) {
        Some(packets) if !packets.is_empty() => format!("as_asked(packets={packets})"),
        _ if text == "hbes_free_window" => "hbes(queue_model=free_window)".to_owned(),
        _ => text.to_owned(),
    }
}
