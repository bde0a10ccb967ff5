//! Flags of curl and wget that `get` does not have, and how to do there what they do.

/// The advice instead of a flag.
pub(crate) fn instead_of(flag: &str) -> Option<&'static str> {
    let known = FLAGS.iter().find(|known| known.names.contains(&flag));
    let is_other = || {
        let name = flag.strip_prefix("--");
        name.is_some_and(|name| OTHERS.split(' ').any(|other| other == name))
    };
    let of_others = || is_other().then_some("marline does not do what it does in curl");
    known.map(|known| known.instead).or_else(of_others)
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
        &["--ciphers", "--tls13-ciphers"],
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
    flag(&["--data-ascii"], "write --data"),
    flag(
        &["--tcp-nodelay"],
        "leave it out: small segments never wait",
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
        &[
            "--socks5",
            "--socks5-hostname",
            "--socks4",
            "--socks4a",
            "--preproxy",
        ],
        "write --proxy with socks5://HOST:PORT, or with socks5h:// if it resolves names",
    ),
];

/// Other flags of curl, as of version 7.88: similar ones of `get` would do something else.
const OTHERS: &str = "\
    abstract-unix-socket append aws-sigv4 cert-status cert-type compressed-ssh create-file-mode crlf crlfile \
    curves delegation disable-eprt disable-epsv disallow-username-in-url dns-interface dns-ipv4-addr dns-ipv6-addr \
    dns-servers doh-cert-status doh-insecure doh-url egd-file engine etag-compare etag-save expect100-timeout \
    false-start form-escape ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv ftp-port \
    ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control happy-eyeballs-timeout-ms \
    haproxy-protocol hostpubmd5 hostpubsha256 http0.9 ignore-content-length keepalive-time key-type krb libcurl \
    list-only local-port login-options mail-auth mail-from mail-rcpt mail-rcpt-allowfails manual metalink no-alpn \
    no-clobber no-keepalive no-npn no-sessionid ntlm-wb parallel-immediate pass path-as-is proto-default \
    proxy-anyauth proxy-basic proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile \
    proxy-digest proxy-header proxy-insecure proxy-key proxy-key-type proxy-negotiate proxy-ntlm proxy-pass \
    proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers \
    proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy1.0 proxytunnel pubkey quote random-file \
    rate raw remove-on-error request-target sasl-authzid sasl-ir service-name socks5-basic socks5-gssapi \
    socks5-gssapi-nec socks5-gssapi-service ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd \
    ssl-revoke-best-effort sslv2 sslv3 styled-output suppress-connect-headers tcp-fastopen telnet-option \
    tftp-blksize tftp-no-options tlsauthtype tlspassword tlsuser tr-encoding trace-time use-ascii xattr";

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
        for other in OTHERS.split(' ') {
            assert!(!has(command, &format!("--{other}")), "{other}");
        }
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
