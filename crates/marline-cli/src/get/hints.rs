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

const FLAGS: &[Flag] = &[
    flag(&["--no-check-certificate"], "write --insecure"),
    flag(&["--timeout"], "write --max-time or --stall-timeout"),
    flag(&["--quiet"], "write --silent"),
    flag(
        &["--trace", "--trace-ascii"],
        "--verbose prints headers, and --qlog DIR logs events of connections",
    ),
    flag(&["--spider"], "write --head"),
    flag(&["--post-data"], "write --data"),
    flag(&["--http-user"], "write --user"),
    flag(&["--basic"], "leave it out: --user is for the scheme Basic"),
    flag(
        &["--digest", "--ntlm", "--negotiate", "--anyauth"],
        "only the schemes Basic and Bearer are supported: write --user or --oauth2-bearer",
    ),
    flag(
        &["-U", "--proxy-user"],
        "write --proxy http://NAME:PASSWORD@HOST:PORT",
    ),
    flag(&["--continue"], "write --resume"),
    flag(
        &["-0", "--http1.0"],
        "HTTP/1.0 is not supported; write --http1.1",
    ),
    flag(
        &["--http2-prior-knowledge"],
        "HTTP/2 needs TLS here; write --http2",
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
    flag(&["--certificate"], "write --cert"),
    flag(&["--private-key"], "write --key"),
    flag(&["--inet4-only"], "write --ipv4"),
    flag(&["--inet6-only"], "write --ipv6"),
    flag(&["--bind-address"], "write --interface"),
    flag(&["-P", "--directory-prefix"], "write --output-dir"),
    flag(&["--content-disposition"], "write --remote-header-name"),
    flag(&["--input-file"], "write URLs as arguments"),
    flag(&["--tries", "-t"], "write --retry"),
    flag(
        &["--socks5", "--socks5-hostname", "--socks4", "--preproxy"],
        "write --proxy with socks5://HOST:PORT, or with socks5h:// if it resolves names",
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
