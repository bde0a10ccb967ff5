//! Experiments as data.
//!
//! A scenario is a TOML file. Its top level has the settings of every run: links, both ends, the workload.
//! Variants and sweeps replace single values by their dotted keys, and so do overrides on the command line.
//! The rest is the number of repeats, and what to compare.
//!
//! ```
//! # let text = r#"
//! title = "A download on the train"
//! link = "rate=12mbps, rtt=80ms, loss=1%, buffer=200kB"
//! repeats = 30
//!
//! [workload]
//! objects = ["500kB", "2400kB"]
//!
//! [variant.newreno]
//! cc = "newreno"
//!
//! [variant.bbr]
//! cc = "bbr"
//!
//! [sweep]
//! "link.loss" = ["0%", "1%", "3%"]
//! # "#;
//! # let experiment = marline_lab::scenario::Experiment::parse(text, "train.toml", &[])?;
//! # assert_eq!(experiment.cells.len(), 6);
//! # Ok::<(), marline_lab::scenario::ScenarioError>(())
//! ```
//!
//! # What a run does
//!
//! | key | is |
//! | --- | --- |
//! | `link` | the link between client and server: text of [`marline_link::spec`], or its keys as a table |
//! | `links` | a list: a chain from the client to the server; or tables `[links.NAME]` with `between` |
//! | `paths` | a list of links that all join client and server, each with addresses of its own at both ends |
//! | `path` | the one of `paths` on which connections begin, from 1; where both ends have `multipath = true` they use all of them |
//! | `channels` | tables `[channels.NAME]`: Wi-Fi channels with the settings `wifi.KEY` of all their stations; a named link with `channel = "NAME"` is a link of one, with `wifi.mcs`, `wifi.short-guard` and `wifi.error` of its own; `stations.NODE` of a channel has `wifi.aggregation`, `wifi.acks`, `wifi.queue` and `wifi.scan` of a station |
//! | `hosts`, `routers`, `ecmp` | other nodes of named links; how routers choose: `mixed` or `xor` |
//! | `profile`, and every key of [`TransportConfig::SETTINGS`](marline::TransportConfig::SETTINGS) | [how both ends behave](EndpointSettings), as docs/reference/settings.md lists it; in `[client]` and `[server]`, one of them. A policy has its parameters in parentheses: `slow_start_exit = "hybrid(factor=0.25)"`. A key of `multipath` switches it on unless `multipath.on` is `false`; `path_scheduler`, `reinjection`, `same_tuple_paths` and `bundle_paths` may stand outside the table |
//! | `initial_window` | packets, a policy, `history`, `careful`, or a table: `fallback` is packets where nothing is known; `history` is `published` or `default`, with the keys of [`HistoryConfig::SETTINGS`](marline::coordination::history::HistoryConfig::SETTINGS); `careful` is `default` or `tokens`, with `max_jump` and `beta` of [`CarefulResumeConfig::SETTINGS`](marline::coordination::careful_resume::CarefulResumeConfig::SETTINGS) |
//! | `[http]` | `client` (`marline` or `chromium`), `server` (`marline` or a command), `gateway`, `version`, `connections`, `split`, `ranges` (`auto`, `equal` or `handed`), `whole_on_first`, `bundle`, `own_sockets`, `pipes`, `sinr`, `name_resolution`: [`HttpSettings`] |
//! | `[workload]` | one of `objects`, `files`, `streams`, `page`, `devices`, `transfer`, `measure`, `visits`, and `order`, `warm`, `seed`, `readable`, `loads`, `pause`, `start`, `windows`, `direction`, `features`: [`Workload`] |
//! | `[[background]]` | `kind` is `flows`, `tcp`, `on-off` or `poisson`; `from`, `to`, `start`, and [the kind's own](Traffic); flows have the keys of an end (`profile`, `cc`, ...), and of TCP `cc` is `cubic`, `reno` or `bbr`: [`TcpFlows`] |
//! | `[[change]]` | `link`, `links.NAME` or `paths.NUMBER`, with the settings that the link has from then on; `at` a time, or `before_visit`, which is a member of `visits` |
//! | `stress` | `stress.HOST = N` confines the host's endpoints and programs to one processor, on which `N` threads compute without end (emulator only): [`Stress`] |
//! | `time_limit` | a run that takes longer has failed |
//!
//! Dotted keys lead into tables (`http.connections`), links (`link.loss`, `links.access.down.rate`) and
//! lists, whose members are counted from 1 (`links.2.rtt`, `paths.2.rate`, `background.1.count`).
//!
//! # What an experiment is
//!
//! | key | is |
//! | --- | --- |
//! | `title`, `id`, `paper`, `section`, `shows` | words for people |
//! | `backend`, `seed`, `repeats`, `quick_repeats` | where and how often |
//! | `metrics` | what reports show; the first is of most interest: by default `completion_s`, or `goodput_mbps` where the workload is `measure` (`background_goodput_mbps` without connections of its own) |
//! | `[variant.NAME]` | keys and their values in that variant |
//! | `[sweep]` | `"KEY" = [values]`; `NAME.VALUE = { keys }`; `points = [{ keys }]`; `wsp = { n, seed, factors }`. Several are combined |
//! | `[[comparison]]` | `a` and `b` are variants, `statistic` a statistic, or lists of them; `metric`; at the points where parameters are as in `where`; `published` is a look-up of the improvement in percent |
//! | `[[published]]` | a look-up of a value: `variant`, `metric`, `statistic`, `scale` |
//! | `[[correlation]]` | metrics `x` and `y` over the runs of `variant`, at the points where parameters are as in `where`; `published` is a look-up of the coefficient |
//! | `[[must]]` | what comparisons or variants must show: `text`, `a`, `b`, `metric`, `statistic`, `where`, one of the [claims](Claim) |
//!
//! A look-up is `file`, a table beside the scenario, in `published/` of a directory above, or of this project; `value`, the
//! column to read; and `where`, columns and what they must be. In both, `{NAME}` is a parameter and
//! `{variant}` the variant; in comparisons, `{a}`, `{b}` and `{statistic}` are what is compared. A column with the name of a parameter must have its value.

mod cells;
mod channel;
mod choose;
mod comparison;
mod correlation;
mod document;
mod embedded;
mod endpoint;
mod error;
mod experiment;
mod initial_window;
mod job;
mod keys;
mod links;
mod media;
mod metrics;
mod model;
mod must;
mod overrides;
mod published;
mod read;
mod reader;
mod replaced;
mod source;
mod sweep;
mod tcp;
mod wsp;

pub use channel::{Channel, ChannelDef, StationDef};
pub use comparison::Comparison;
pub use correlation::Correlation;
pub use embedded::embedded;
pub use endpoint::EndpointSettings;
pub use error::{Place, ScenarioError};
pub use experiment::{BackendKind, Cell, Entry, Experiment, Published, list};
pub use initial_window::{InitialWindow, Learnt};
pub use job::{Backend, Job, Outcome, RunError, Value, Watched, WatchedObject};
pub use media::{CallDef, Carrier, VideoChoice, VideoDef};
pub(crate) use metrics::MOST_NAMED_STREAMS;
pub use model::{
    Background, Change, Direction, Ecmp, HttpClient, HttpSettings, HttpVersion, LinkDef, Order,
    RangeKind, Settings, StreamDef, Stress, Topology, Traffic, Visit, When, Workload,
};
pub use must::{Alone, Check, Claim, Must};
pub(crate) use read::file_name;
pub(crate) use read::{LINK_SINR, signal};
pub use source::Source;
pub use tcp::{TcpController, TcpFlows, TcpRunner};

#[cfg(test)]
mod tests;
