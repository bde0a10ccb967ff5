//! Flags of curl and wget that `get` does not have, and how to do there what they do.

/// The advice instead of a flag.
pub(crate) fn instead_of(flag: &str) -> Option<&'static str> {
    let known = FLAGS.iter().find(|known| known.names.contains(&flag));
    known.map(|known| known.instead)
}

struct Flag {
    names: &'static [&'static str],
    /// It follows "there is no FLAG; ".
    instead: &'static str,
}

const fn flag(names: &'static [&'static str], instead: &'static str) -> Flag {
    Flag { names, instead }
}

/// All requests are GET.
const ONLY_GET: &str = "all requests are GET, without content";

const FLAGS: &[Flag] = &[
    flag(&["-k", "--no-check-certificate"], "write --insecure"),
    flag(&["-H"], "write --header"),
    flag(&["-m"], "write --max-time"),
    flag(&["-T", "--timeout"], "write --max-time or --stall-timeout"),
    flag(
        &["--connect-timeout"],
        "--max-time limits the total time, and --stall-timeout the time without data",
    ),
    flag(
        &["-y", "--speed-time", "-Y", "--speed-limit"],
        "--stall-timeout limits the time without data",
    ),
    flag(
        &["-L", "--location", "--location-trusted", "--max-redirs"],
        "redirects are reported, not followed: get the URL that is printed",
    ),
    flag(
        &[
            "-s",
            "--silent",
            "-S",
            "--show-error",
            "-q",
            "--quiet",
            "--no-progress-meter",
            "-#",
            "--progress-bar",
        ],
        "leave it out: only errors are printed, and progress on a terminal",
    ),
    flag(
        &["-f", "--fail", "--fail-with-body"],
        "leave it out: the exit status is 22 for every response without a status of 2xx",
    ),
    flag(
        &["-v", "--verbose", "--trace", "--trace-ascii"],
        "--json reports connections, and --qlog DIR logs their events",
    ),
    flag(
        &["-w", "--write-out"],
        "--json reports times, sizes and statuses",
    ),
    flag(
        &[
            "-i",
            "--include",
            "--show-headers",
            "-D",
            "--dump-header",
            "-I",
            "--head",
            "--spider",
        ],
        "--har FILE writes the header fields of responses; all requests are GET",
    ),
    flag(
        &[
            "-X",
            "--request",
            "-d",
            "--data",
            "--data-raw",
            "--data-binary",
            "--data-urlencode",
            "-F",
            "--form",
            "--upload-file",
            "-G",
            "--get",
            "--post-data",
        ],
        ONLY_GET,
    ),
    flag(
        &["-u", "--user", "--basic", "--http-user"],
        "write --header 'Authorization: Basic ...'",
    ),
    flag(
        &["--oauth2-bearer"],
        "write --header 'Authorization: Bearer ...'",
    ),
    flag(
        &["-A", "--user-agent", "-U"],
        "write --header 'User-Agent: ...'",
    ),
    flag(&["-e", "--referer"], "write --header 'Referer: ...'"),
    flag(
        &["-b", "--cookie", "-c", "--cookie-jar"],
        "cookies are not kept; send one with --header 'Cookie: ...'",
    ),
    flag(&["-C", "--continue-at", "--continue"], "write --resume"),
    flag(&["-r", "--range"], "write --header 'Range: bytes=...'"),
    flag(
        &["-z", "--time-cond"],
        "write --header 'If-Modified-Since: ...'",
    ),
    flag(
        &["--compressed"],
        "content is written as it arrives; --header 'Accept-Encoding: gzip' asks for it compressed",
    ),
    flag(
        &["-0", "--http1.0"],
        "HTTP/1.0 is not supported; write --http 1.1",
    ),
    flag(
        &["--http1.1"],
        "write --http 1.1, or --http 1.1c for http://",
    ),
    flag(&["--http2", "--http2-prior-knowledge"], "write --http 2"),
    flag(
        &["--http3", "--http3-only"],
        "write --http 3, or leave it out for HTTP/3 with HTTP/2 where that does not connect",
    ),
    flag(
        &["--ciphers"],
        "leave it out: the newest version of TLS that both ends have is used, from 1.2 on",
    ),
    flag(
        &[
            "--capath",
            "--ca-certificate",
            "--ca-directory",
            "--pinnedpubkey",
        ],
        "write --cacert FILE",
    ),
    flag(
        &["-E", "--cert", "--key", "--certificate", "--private-key"],
        "client certificates are not supported",
    ),
    flag(
        &["--resolve", "--connect-to"],
        "host names are resolved by the system; --header 'Host: ...' names another host in the request",
    ),
    flag(
        &[
            "-4",
            "--ipv4",
            "-6",
            "--ipv6",
            "--inet4-only",
            "--inet6-only",
        ],
        "write the address in the URL, and --header 'Host: ...'",
    ),
    flag(
        &["--interface", "--bind-address"],
        "name an interface with --path IFACE",
    ),
    flag(
        &["-Z", "--parallel", "--parallel-max"],
        "objects are fetched at once; --connections N is for several connections",
    ),
    flag(
        &["--output-dir", "-P", "--directory-prefix", "--create-dirs"],
        "write -o DIR/",
    ),
    flag(
        &["-J", "--remote-header-name", "--content-disposition"],
        "names are those of URLs; write -o FILE for another",
    ),
    flag(&["--remote-name-all"], "write -O, which is for all URLs"),
    flag(
        &["--url", "-K", "--config", "--input-file"],
        "write URLs as arguments",
    ),
    flag(
        &["--retry", "--tries", "-t"],
        "run it again, with --resume to continue",
    ),
    flag(
        &["--limit-rate", "--rate"],
        "rates are not limited here; `marline lab link` runs a command on a slower link",
    ),
    flag(
        &["--socks5", "--socks5-hostname", "--socks4", "--preproxy"],
        "only HTTP proxies are supported: write --proxy http://HOST:PORT",
    ),
    flag(&["-x"], "write --proxy"),
    flag(
        &["-n", "--netrc", "--netrc-file"],
        "write --header 'Authorization: ...'",
    ),
];

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    fn has(command: &Command, flag: &str) -> bool {
        command.get_arguments().any(|argument| {
            let short = argument.get_short().map(|short| format!("-{short}"));
            let long = argument.get_long().map(|long| format!("--{long}"));
            [short, long].into_iter().flatten().any(|name| name == flag)
        })
    }

    #[test]
    fn hints_are_about_flags_that_do_not_exist_and_name_those_that_do() {
        let mut root = Cli::command();
        root.build();
        let command = root.find_subcommand("get").unwrap();
        for known in FLAGS {
            for name in known.names {
                assert!(!has(command, name), "{name}");
            }
            let words = known.instead.split([' ', ',', ';', ':']);
            for named in words.filter(|word| word.starts_with('-')) {
                assert!(has(command, named), "{named} in {}", known.instead);
            }
        }
    }
}
