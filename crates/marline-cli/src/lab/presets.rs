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

#[derive(Serialize)]
struct Known {
    presets: Vec<Preset>,
    keys: Vec<Key>,
}

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    link: &'static str,
    about: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct Key {
    name: &'static str,
    about: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let presets = PRESETS.iter().map(|preset| Preset {
        name: preset.name,
        link: preset.text,
        about: preset.about,
        source: preset.source,
    });
    let known = Known {
        presets: presets.collect(),
        keys: keys().map(|(name, about)| Key { name, about }).collect(),
    };
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
