//! The settings that the flags of `get` stand for.

use std::num::NonZeroU64;

use marline::coordination::bundle::MAX_MEMBERS;
use marline::{PathPolicy, PathSource, Runtime, TokioRuntime};
use marline_http::client::{Assignment, ClientConfig, FetchOptions, HttpVersion, Target, Trust};
use marline_http::tcp::TcpProtocol;

use super::arguments::{Arguments, Version};
use super::{BUNDLE, BUNDLE_SPLIT, BUNDLE_SPLIT_ON_ONE_PATH, explain};
use crate::failure::{Failure, print_message};

/// The options of the fetch, if the flags are consistent.
pub(super) fn options(arguments: &Arguments, urls: usize) -> Result<FetchOptions, Failure> {
    let mut options = FetchOptions {
        connections: arguments.connections(),
        assignment: match arguments.only_version() {
            Some(Version::Http2Parallel) => Assignment::Alternate,
            _ if arguments.bundle => Assignment::First,
            _ => Assignment::Free,
        },
        resume: arguments.resumes(),
        split: arguments.split,
        ranges: arguments.ranges.into(),
        time_limit: arguments.max_time.filter(|limit| !limit.is_zero()),
        max_size: Some(arguments.max_filesize).filter(|limit| *limit > 0),
        keep_errors: !arguments.fail,
        heads: arguments.include || arguments.request.head,
        remote_time: arguments.remote_time,
        ..FetchOptions::default()
    };
    arguments.transfer.apply(&mut options);
    if arguments.mptcp && arguments.version() == HttpVersion::Http3 {
        let message =
            "--mptcp is about TCP, and HTTP/3 is over QUIC; leave --http out, or use --path";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !arguments.tls.allow_quic() && arguments.needs_quic() {
        let message = "--tls-max 1.2 excludes HTTP/3, whose QUIC has TLS 1.3; leave it out";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.network.unix_socket.is_some() && arguments.needs_quic() {
        let message =
            "--unix-socket is about streams, and HTTP/3 is over QUIC; leave one of them out";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.resumes() && !arguments.writes_files() {
        let message = "--resume, or -C -, continues a file; name it with -o FILE";
        return Err(Failure::Usage(message.to_owned()));
    }
    let is_partial = arguments.request.has_range() || arguments.request.compressed;
    if arguments.resumes() && (is_partial || options.heads) {
        let message = "-C - continues whole files; leave --range, --compressed, -i and -I out";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !arguments.bundle {
        if arguments.split.is_some() && !arguments.writes_files() {
            let message =
                "--split needs a file, because ranges arrive in any order; give one with -o FILE";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.split.is_some() && arguments.connections.is_none() {
            let message = "--split needs several connections; give their number with --connections";
            return Err(Failure::Usage(message.to_owned()));
        }
        return Ok(options);
    }
    let connections = arguments.connections.map_or(BUNDLE, usize::from);
    let version = arguments.version();
    let message = if version != HttpVersion::Http3 {
        format!(
            "--bundle needs HTTP/3, not {}; leave --http out, or --bundle",
            version.name()
        )
    } else if connections > MAX_MEMBERS {
        format!("--bundle coordinates up to {MAX_MEMBERS} connections, not {connections}")
    } else if urls == 1 && !arguments.writes_files() {
        "--bundle splits an object over connections, which needs a file; give one with -o FILE"
            .to_owned()
    } else {
        let usual = match arguments.own_sockets {
            true => BUNDLE_SPLIT,
            false => BUNDLE_SPLIT_ON_ONE_PATH,
        };
        return Ok(FetchOptions {
            connections,
            split: options.split.or(NonZeroU64::new(usual)),
            ..options
        });
    };
    Err(Failure::Usage(message))
}

/// Prints which interfaces have no address, and checks that the paths can be used.
pub(super) fn check_paths(arguments: &Arguments) -> Result<(), Failure> {
    let version = arguments.version();
    if arguments.path.is_empty() {
        return Ok(());
    }
    if version != HttpVersion::Http3 {
        return Err(Failure::Usage(format!(
            "--path needs HTTP/3, not {}; leave --http out, or --path",
            version.name()
        )));
    }
    let known = TokioRuntime::current().and_then(|runtime| runtime.interfaces());
    let Ok(known) = known else { return Ok(()) };
    for rule in &arguments.path {
        let PathSource::Interface(name) = &rule.source else {
            continue;
        };
        if !known.iter().any(|one| one.name == *name) {
            print_message(&format!(
                "there is no interface {name} with an address; it will be used as soon as there is one"
            ));
        }
    }
    Ok(())
}

pub(super) fn config(arguments: &Arguments, targets: &[Target]) -> Result<ClientConfig, Failure> {
    let trust = match (&arguments.cacert, arguments.insecure) {
        (Some(file), _) => Trust::File(file.clone()),
        (None, true) => Trust::Insecure,
        (None, false) => Trust::System,
    };
    let mut config = ClientConfig {
        version: arguments.version(),
        fallback: arguments.may_fall_back(),
        or_http11: arguments.or_http11(),
        trust,
        tls: arguments.tls.versions()?,
        tcp_protocol: match arguments.mptcp {
            true => TcpProtocol::Multipath,
            false => TcpProtocol::Tcp,
        },
        bundle: arguments.bundle,
        own_sockets: arguments.own_sockets,
        qlog: arguments.transport.qlog_directory()?,
        ..ClientConfig::default()
    };
    if arguments.pipes.are_given() && arguments.version() != HttpVersion::Http3 {
        return Err(Failure::Usage(format!(
            "--pipes needs HTTP/3, not {}; leave --http out, or --pipes",
            arguments.version().name()
        )));
    }
    if arguments.own_sockets && arguments.version() != HttpVersion::Http3 {
        return Err(Failure::Usage(
            "--own-sockets is about QUIC: over TCP each connection has its own; leave it out"
                .to_owned(),
        ));
    }
    let applied = arguments.network.apply(&mut config);
    applied.map_err(|error| explain(&error))?;
    config.redirects = arguments.transfer.redirects(&arguments.request);
    config.schemes = arguments.transfer.schemes();
    config.cookies = arguments.request.jar()?;
    config.credentials = arguments.request.netrc()?;
    config.decompress = arguments.request.compressed;
    let follows = arguments.transfer.follows();
    config.proxies = arguments.proxies.proxies(targets, follows)?;
    if config.version == HttpVersion::Http3 && !config.fallback {
        arguments.proxies.explain_without_tcp(&config.proxies)?;
    }
    config.pipes = arguments.pipes.config()?;
    let mut transport = arguments.transport.config()?;
    if !arguments.path.is_empty() {
        let paths = arguments.path.len() as u32;
        let multipath = transport.multipath.get_or_insert_default();
        // One ID for each path, and one for a replacement.
        multipath.max_paths = multipath.max_paths.max(paths + 1);
        config.paths = Some(PathPolicy {
            rules: arguments.path.clone(),
            ..PathPolicy::default()
        });
    }
    if let Some(limit) = arguments.stall_timeout {
        config.stall_timeout = Some(limit).filter(|limit| !limit.is_zero());
    }
    config.quic.transport = transport.into();
    config.quic.preferred_version = arguments.quic_version.map(Into::into);
    config.quic.key_log = arguments.key_log.open()?;
    #[cfg(feature = "tracing")]
    arguments.log.start(&mut config.quic);
    Ok(config)
}
