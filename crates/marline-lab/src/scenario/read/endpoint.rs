//! Reads `cc`, `initial_window` and other settings of ends: at the top level for both ends, in `[client]` and
//! `[server]` for one.

use marline::congestion::INITIAL_WINDOWS;
use marline::{TransportConfig, UnknownProfile};

use super::initial_window::read_initial_window;
use super::written::placed;
use super::{Item, Node, Problem, Reader};
use crate::scenario::EndpointSettings;

/// The settings of both ends.
pub(super) struct Ends {
    pub(super) client: EndpointSettings,
    pub(super) server: EndpointSettings,
}

/// Reads the settings of both ends.
pub(super) fn read_endpoints(reader: &mut Reader<'_>) -> Result<Ends, Problem> {
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
    Ok(Ends {
        client: side("client")?,
        server: side("server")?,
    })
}

/// The key that is read separately if it is a number or a table.
const INITIAL_WINDOW: &str = "initial_window";

/// Reads the settings of one end, or of both.
pub(super) fn read_endpoint(
    reader: &mut Reader<'_>,
    into: &mut EndpointSettings,
) -> Result<(), Problem> {
    if let Some(node) = reader.get("profile") {
        let name = node.words()?;
        into.profile = name
            .parse()
            .map_err(|error: UnknownProfile| node.problem(error.to_string()))?;
    }
    let mut written = Vec::new();
    for setting in TransportConfig::SETTINGS {
        let key = setting.key();
        let Some(node) = reader.get(key) else {
            continue;
        };
        match &node.item {
            Item::Text(text) if key == INITIAL_WINDOW => {
                check_initial_window(node, text)?;
                into.initial_window = None;
                written.push((key.to_owned(), node.written()));
            }
            _ if key == INITIAL_WINDOW => {
                let start = into.initial_window.take().unwrap_or_default();
                into.initial_window = Some(read_initial_window(node, start)?);
            }
            _ => written.push((key.to_owned(), node.written())),
        }
    }
    *into = std::mem::take(into)
        .with_all(written)
        .map_err(|refused| placed(&refused, reader.table, reader))?;
    Ok(())
}

fn check_initial_window(node: &Node, text: &str) -> Result<(), Problem> {
    match INITIAL_WINDOWS.make(text) {
        Ok(_) => Ok(()),
        Err(why) => Err(node.problem(format_args!(
            "{why}; or write a number of packets, \"history\", \"careful\" or a table of switches"
        ))),
    }
}
