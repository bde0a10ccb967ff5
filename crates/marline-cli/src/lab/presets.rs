//! `marline lab presets`.

use clap::Args;
use marline_link::preset::PRESETS;
use marline_link::spec::keys;
use serde::Serialize;

use crate::failure::Failure;

/// List the presets of links, and the keys of links
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Every preset, and every key of a link.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Known {
    /// The presets.
    presets: Vec<Preset>,
    /// The keys.
    keys: Vec<Key>,
}

/// A link with a name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Preset {
    /// Its name.
    name: &'static str,
    /// The link, as `key=value` pairs.
    link: &'static str,
    /// A description.
    about: &'static str,
    /// The source of its numbers.
    source: &'static str,
}

/// A key of a link.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Key {
    /// Its name.
    name: &'static str,
    /// A description.
    about: String,
}

impl Known {
    pub(super) fn all() -> Self {
        let presets = PRESETS.iter().map(|preset| Preset {
            name: preset.name,
            link: preset.text,
            about: preset.about,
            source: preset.source,
        });
        Self {
            presets: presets.collect(),
            keys: keys().map(|(name, about)| Key { name, about }).collect(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let known = Known::all();
    if arguments.json {
        return super::print_json(&known);
    }
    outln!("Links with names, for --link and for `link =` in scenarios:\n");
    for preset in &known.presets {
        outln!("{}: {}\n    {}", preset.name, preset.about, preset.link);
    }
    outln!("\nKeys of links:\n");
    let widest = known.keys.iter().map(|key| key.name.len()).max();
    let widest = widest.unwrap_or(0);
    for key in &known.keys {
        outln!("  {:widest$}  {}", key.name, key.about);
    }
    Ok(())
}
