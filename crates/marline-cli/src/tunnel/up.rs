//! `marline tunnel up`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use marline_http::server::raise_open_file_limit;
use marline_tunnel::client::{Cap, DnsChoice, Mode, Report, Selected, UpConfig, UpError, Used, up};
use marline_tunnel::counters::{Counters, Dropped};
use marline_tunnel::dns::MAX_RESOLVERS;
use marline_tunnel::ipnet::IpNet;
use marline_tunnel::names::Name;
use marline_tunnel::programs::ProgramChoice;
use tokio::signal::unix::{SignalKind, signal};

use super::peer::{Peer, advised, connection_advice, refusal_advice};
use super::{CLIENT_DEVICE, PORT};
use crate::config_file::{FlagsFile, choice};
use crate::failure::{Failure, print_message};
use crate::server::state::default_directory;
use crate::server::{Tcp, device_name};
use crate::transport::TransportFlags;

/// Send the packets of this machine through a tunnel
///
/// All packets do, but those to the server and to networks with routes of their own. While the connection is lost, packets are
/// dropped. Without --path, networks are found and followed.
///
/// Prints `the tunnel is up` when packets pass. SIGTERM or Ctrl-C puts the routes back; after a crash, the next `up` or `down`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline tunnel up server.example.org --token-file anna.token\n  \
    marline tunnel up server.example.org --token-file anna.token --path wlan0 --path wwan0,backup\n  \
    marline tunnel up 192.0.2.1 --token-file anna.token --cacert server.pem --split 10.0.0.0/8\n  \
    marline tunnel up server.example.org --token-file anna.token --split programs")]
pub(crate) struct Arguments {
    #[command(flatten)]
    peer: Peer,

    /// Read settings from FILE (TOML), which flags override
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Send only packets to these addresses or names, or of these programs; repeatable
    ///
    /// programs are those that `marline tunnel run` starts, cgroup:/PATH those of a control group.
    #[arg(long, value_name = "ADDR/LENGTH|NAME|programs|cgroup:PATH")]
    split: Vec<Selected>,

    /// How several networks are used [default: fast]
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Carry TCP as streams or packets [default: streams, where the server has --nat or this flag]
    #[arg(long, value_name = "HOW")]
    tcp: Option<Tcp>,

    /// Resolve names at this address; repeatable; none: change nothing [default: what the server announces, without --split]
    #[arg(long, value_name = "ADDR|none", value_parser = resolver)]
    dns: Vec<Option<IpAddr>>,

    /// Let a network carry at most SIZE bytes in a month, of UTC; repeatable
    #[arg(long, value_name = "IFACE=SIZE")]
    cap: Vec<Cap>,

    /// Keep what networks with --cap have carried in DIR [default: as of serve]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// The name of the network device
    ///
    /// By default marline0, of a server marline-tunnel.
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,

    #[command(flatten)]
    transport: TransportFlags,
}

/// The use of several networks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ModeName {
    /// Their rates together
    Fast,
    /// The lowest delay: calls on two networks
    Steady,
    /// Mobile networks only while no other works
    Save,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Fast => Self::Fast,
            ModeName::Steady => Self::Steady,
            ModeName::Save => Self::Save,
        }
    }
}

impl Arguments {
    /// These, with what they leave open from the file that they name.
    fn complete(mut self) -> Result<Self, Failure> {
        let Some(path) = &self.config else {
            return Ok(self);
        };
        let file = FlagsFile::read::<Self>(path)?;
        self.read(&file)?;
        Ok(self)
    }

    fn read(&mut self, file: &FlagsFile) -> Result<(), Failure> {
        self.peer.complete(file)?;
        file.several("split", &mut self.split, str::parse)?;
        file.several("dns", &mut self.dns, resolver)?;
        file.one("tcp", &mut self.tcp, choice)?;
        file.one("mode", &mut self.mode, choice)?;
        file.several("cap", &mut self.cap, str::parse)?;
        file.file("state", &mut self.state)?;
        file.one("device", &mut self.device, device_name)
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let arguments = arguments.complete()?;
    // Each connection that is split has a socket.
    raise_open_file_limit();
    let config = config(&arguments)?;
    if !config.split.names.is_empty() && config.dns == DnsChoice::Unchanged {
        return Err(Failure::Usage(
            "--split by name needs the queries for names, which --dns none leaves as they are; leave that out"
                .to_owned(),
        ));
    }
    let counters = Arc::<Counters>::default();
    let listening = |kind| {
        signal(kind).map_err(|error| Failure::Failed(format!("cannot receive signals: {error}")))
    };
    // The terminal may be closed.
    let (mut terminate, mut hang_up) = (
        listening(SignalKind::terminate())?,
        listening(SignalKind::hangup())?,
    );
    let ended = tokio::select! {
        ended = up(config, Arc::clone(&counters), report) => ended,
        _ = tokio::signal::ctrl_c() => return finish(&counters),
        _ = terminate.recv() => return finish(&counters),
        _ = hang_up.recv() => return finish(&counters),
    };
    match ended {
        Ok(never) => match never {},
        Err(error) => Err(failure(&error)),
    }
}

fn config(arguments: &Arguments) -> Result<UpConfig, Failure> {
    Ok(UpConfig {
        host: arguments.peer.host()?,
        default_port: PORT,
        token: arguments.peer.token()?,
        device: arguments.device.clone().unwrap_or(CLIENT_DEVICE.to_owned()),
        split: arguments.split.iter().cloned().collect(),
        split_tcp: !matches!(arguments.tcp, Some(Tcp::Packets)),
        dns: dns(&arguments.dns)?,
        mode: arguments.mode.map(Mode::from).unwrap_or_default(),
        caps: arguments.cap.clone(),
        state: state(arguments)?,
        http: arguments.peer.client(&arguments.transport)?,
    })
}

/// The directory for what networks with a cap have carried.
fn state(arguments: &Arguments) -> Result<PathBuf, Failure> {
    let given = arguments.state.clone().or_else(default_directory);
    match given {
        Some(directory) => Ok(directory),
        None if arguments.cap.is_empty() => Ok(PathBuf::new()),
        None => Err(Failure::Usage(
            "--cap: there is no home directory to keep what networks have carried; give --state DIR"
                .to_owned(),
        )),
    }
}

fn resolver(text: &str) -> Result<Option<IpAddr>, String> {
    match text {
        "none" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| "write the address of a resolver, as 192.0.2.53, or none".to_owned()),
    }
}

fn dns(given: &[Option<IpAddr>]) -> Result<DnsChoice, Failure> {
    let addresses: Vec<_> = given.iter().copied().flatten().collect();
    match (given.len(), addresses.len()) {
        (0, _) => Ok(DnsChoice::Announced),
        (1, 0) => Ok(DnsChoice::Unchanged),
        (all, some) if all == some && all <= MAX_RESOLVERS => Ok(DnsChoice::Addresses(addresses)),
        _ => Err(Failure::Usage(format!(
            "--dns: give none, or at most {MAX_RESOLVERS} addresses"
        ))),
    }
}

fn list(nets: &[IpNet]) -> String {
    let texts: Vec<_> = nets.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The text of all that goes through the tunnel.
fn selected(destinations: &[IpNet], programs: &ProgramChoice, names: &[Name]) -> String {
    let mut texts: Vec<_> = destinations.iter().map(ToString::to_string).collect();
    texts.extend(names.iter().map(ToString::to_string));
    if programs.run {
        texts.push("programs of `marline tunnel run`".to_owned());
    }
    let groups = programs.groups.iter();
    texts.extend(groups.map(|group| format!("programs of {}", group.display())));
    texts.join(", ")
}

fn report(report: &Report<'_>) {
    match report {
        Report::Up {
            addresses,
            destinations,
            programs,
            names,
            mtu,
            splits_tcp,
            resolvers,
        } => {
            let resolvers: Vec<_> = resolvers
                .iter()
                .map(|at| format!(", DNS at {at}"))
                .collect();
            print_message(&format!(
                "the tunnel is up: {} go through it, from {}, packets of at most {mtu} bytes{}{}",
                selected(destinations, programs, names),
                list(addresses),
                if *splits_tcp { ", TCP as streams" } else { "" },
                resolvers.concat()
            ));
        }
        Report::Networks(names) => print_message(&match *names {
            [] => "no network leads to the server".to_owned(),
            [name] => format!("1 network leads to the server: {name}"),
            names => format!(
                "{} networks lead to the server: {}",
                names.len(),
                names.join(", ")
            ),
        }),
        Report::Used(networks) => {
            for used in *networks {
                print_message(&usage(*used));
            }
        }
        Report::NotKept(error) => print_message(&error.to_string()),
        Report::NotSplit(why) => print_message(&format!("TCP is carried as packets: {why}")),
        Report::Mtu(mtu) => print_message(&format!("packets of at most {mtu} bytes pass now")),
        Report::Lost(why) => print_message(&format!("the tunnel is interrupted: {why}")),
        Report::Failed { error, pause } => print_message(&format!(
            "{error}; the next attempt is in {} s, and packets are dropped until `marline tunnel down`",
            pause.as_secs()
        )),
    }
}

/// The usage of a network with a cap, as `wwan0: 1.2 of 5 GB this month`.
fn usage(used: Used<'_>) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    let unit = units.into_iter().find(|(unit, _)| used.cap >= *unit);
    let (unit, name) = unit.unwrap_or((1, "B"));
    let decimal = |bytes: u64| {
        let text = format!("{:.1}", bytes as f64 / unit as f64);
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    let rest = match used.is_spent() {
        true => "; it is not used before the next",
        false => "",
    };
    let (bytes, cap) = (decimal(used.bytes), decimal(used.cap));
    format!("{}: {bytes} of {cap} {name} this month{rest}", used.network)
}

fn finish(counters: &Counters) -> Result<(), Failure> {
    let (sent, received) = (counters.sent(), counters.received());
    let dropped = Dropped::ALL.map(|why| (why, counters.dropped(why)));
    let dropped = dropped.iter().filter(|(_, packets)| *packets > 0);
    let dropped: Vec<_> = dropped
        .map(|(why, packets)| format!("{packets} {}", why.name()))
        .collect();
    let dropped = match dropped.is_empty() {
        true => String::new(),
        false => format!("; dropped: {}", dropped.join(", ")),
    };
    let split = counters.split();
    let streams = match split.sent + split.received {
        0 => String::new(),
        _ => format!(
            "; TCP as streams: {} bytes sent, {} bytes received",
            split.sent, split.received
        ),
    };
    print_message(&format!(
        "the tunnel is down: {} packets ({} bytes) sent, {} packets ({} bytes) received{dropped}{streams}",
        sent.packets, sent.bytes, received.packets, received.bytes
    ));
    Ok(())
}

fn failure(error: &UpError) -> Failure {
    let advice = match error {
        UpError::Client(error) => connection_advice(error),
        UpError::Open(error) => refusal_advice(error),
        _ => None,
    };
    Failure::Failed(advised(error, advice))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config_file::flags_testing::{ignored, refused};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        let words = ["up"].iter().chain(words);
        Line::try_parse_from(words).unwrap().arguments
    }

    #[test]
    fn every_flag_is_a_key_of_the_file() {
        let value = |key: &str| match key {
            "split" => "[\"10.0.0.0/8\", \"example.org\", \"programs\", \"cgroup:/media.slice\"]",
            "dns" => "[\"192.0.2.53\"]",
            "mode" => "\"save\"",
            "tcp" => "\"packets\"",
            "insecure" => "true",
            "cap" => "\"wwan0=5GB\"",
            // They belong together.
            "cert" => "\"c.pem\"\nkey = \"k.pem\"",
            "key" => "\"k.pem\"\ncert = \"c.pem\"",
            _ => "\"example\"",
        };
        let complete = |file: &FlagsFile| {
            let mut arguments = arguments(&[]);
            arguments.read(file).unwrap();
            format!("{arguments:?}")
        };
        assert_eq!(ignored::<Arguments>(value, complete), [""; 0]);
    }

    #[test]
    fn flags_override_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.toml");
        let text =
            "server = \"a.example\"\nmode = \"save\"\nsplit = \"10.0.0.0/8\"\ninsecure = true\n";
        std::fs::write(&path, text).unwrap();
        let config = path.to_str().unwrap();
        let given = [
            "b.example",
            "--config",
            config,
            "--mode",
            "steady",
            "--cacert",
            "c.pem",
        ];
        let complete = arguments(&given).complete().unwrap();
        assert_eq!(complete.peer.host().unwrap(), "b.example");
        assert!(matches!(complete.mode, Some(ModeName::Steady)));
        assert_eq!(complete.split, ["10.0.0.0/8".parse().unwrap()]);
        assert!(!format!("{complete:?}").contains("insecure: true"));
    }

    #[test]
    fn errors_of_the_file_name_line_and_key_and_list_the_words() {
        let message = |text: &str| refused::<Arguments>(text, |file| arguments(&[]).read(file));
        for (text, expected) in [
            (
                "server = \"x\"\n\nsplit = [\"10.0.0.0/8\", \"x\"]",
                "t.toml:3: split: \"x\": ",
            ),
            (
                "\nmode = \"turbo\"",
                "t.toml:2: mode: \"turbo\": known: fast, steady, save",
            ),
            ("mode = \"fats\"", "did you mean fast?"),
            (
                "\ncap = \"wwan0\"",
                "t.toml:2: cap: \"wwan0\": write a network and",
            ),
            ("tcp = \"x\"", "known: streams, packets"),
            (
                "\nmode = 1",
                "t.toml:2: mode: this must be text in quotes, not 1",
            ),
            ("server = 3", "t.toml:1: server: "),
            ("dns = [\"1\"", "t.toml:1"),
            ("tcp = \"a\"\ntcp = \"b\"", "t.toml:2: tcp"),
            (
                "insecure = 1",
                "t.toml:1: insecure: this must be true or false",
            ),
            ("insecure = true\ncacert = \"c\"", "keep one"),
            (
                "mod = \"fast\"",
                "t.toml:1: unknown key \"mod\"; did you mean mode?",
            ),
            ("\nlisten = \":1\"", "t.toml:2: unknown key \"listen\""),
            (
                "scheduler = \"ecf\"",
                "t.toml:1: scheduler: this is no key of a file; give the flag --scheduler",
            ),
        ] {
            let message = message(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn usage_has_the_unit_of_the_cap() {
        let text = |bytes, cap| {
            let network = "wwan0";
            usage(Used {
                network,
                bytes,
                cap,
            })
        };
        let gigabytes = 5_000_000_000;
        assert_eq!(
            text(1_234_000_000, gigabytes),
            "wwan0: 1.2 of 5 GB this month"
        );
        assert_eq!(text(0, 1_500_000), "wwan0: 0 of 1.5 MB this month");
        let spent = text(5_010_000_000, gigabytes);
        assert_eq!(
            spent,
            "wwan0: 5 of 5 GB this month; it is not used before the next"
        );
    }
}
