//! The command line.

use clap::{Parser, Subcommand};

#[cfg(feature = "flow")]
use crate::flow;
use crate::{check, completions, gateway, get, man, proxy, qlog, reference, serve, top};
#[cfg(target_os = "linux")]
use crate::{demo, lab, tunnel};

/// Web content over lossy, jittery and changing links.
///
/// marline implements HTTP/3 over its own QUIC, and HTTP/2 and HTTP/1.1 over TCP.
#[derive(Debug, Parser)]
#[command(
    name = "marline",
    version,
    long_version = env!("MARLINE_VERSION"),
    subcommand_required = true,
    max_term_width = 100,
    after_help = "Exit status: 0 success, 1 failure, 2 wrong usage, 23 standard output cannot be written; `get` has more, \
                  which are curl's.
\
                  `marline VERB --help`, or `marline help VERB`, describes a verb, with examples; `-h` has its daily flags alone."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Serve(serve::Arguments),
    Proxy(Box<proxy::Arguments>),
    Check(check::Arguments),
    Top(top::Arguments),
    Get(Box<get::Arguments>),
    Gateway(gateway::Arguments),
    #[cfg(target_os = "linux")]
    Tunnel(tunnel::Arguments),
    #[cfg(target_os = "linux")]
    Demo(demo::Arguments),
    #[cfg(target_os = "linux")]
    Lab(lab::Arguments),
    #[cfg(feature = "flow")]
    Flow(flow::Arguments),
    Qlog(qlog::Arguments),
    Reference(reference::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}
