//! `marline check`.

mod writable;

use std::path::{Path, PathBuf};

use clap::Args;
use marline::{Runtime, TokioRuntime};
use marline_certificates::{Wanted, kept_status};
use marline_http::proxy::{UpstreamMetrics, UpstreamUrl};
use marline_http::server::Identity;
use marline_site::{Require, Rules, SiteClients, SiteConfig, identities, sites};

use crate::config_file::{ConfigFile, FileKeys, LISTEN};
use crate::failure::{Failure, print_message};
#[cfg(target_os = "linux")]
use crate::server::TunnelTable;
use crate::server::{self, Account, Privileges, certificates, check_rotation, name_site, state};
use crate::{in_runtime, proxy, serve};

/// Check a configuration file, and say what it means
///
/// Reads the file as `marline serve --config FILE` would, with the certificates, users, error pages and directories that it names,
/// and listens nowhere. Names of applications must have addresses; the applications are not asked. The status is 0 if everything is as
/// it has to be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  marline check site.toml\n  marline check --proxy proxy.toml")]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// It is for `marline proxy`
    #[arg(long)]
    proxy: bool,
}

/// Checks it as the user who is to serve.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = read(&arguments)?;
    #[cfg(target_os = "linux")]
    TunnelTable::refuse_user(file.tunnel.as_ref(), file.user.as_deref())?;
    let account = Account::find(file.user.as_deref(), file.group.as_deref())?;
    // There are no threads before the runtime.
    let privileges = match account {
        Some(account) if account.is_within_reach() => account.assume()?,
        Some(_) => {
            let user = file.user.as_deref().unwrap_or_default();
            print_message(&format!(
                "whether {user} may open the files was not tried; only root can, as by sudo"
            ));
            Privileges::unchanged()
        }
        None => Privileges::unchanged(),
    };
    let checked = in_runtime(check(arguments));
    checked.map_err(|failure| privileges.explain(failure))
}

fn read(arguments: &Arguments) -> Result<ConfigFile, Failure> {
    let verb = match arguments.proxy {
        true => FileKeys::Proxy,
        false => FileKeys::Serve,
    };
    ConfigFile::read(&arguments.file, verb)
}

async fn check(arguments: Arguments) -> Result<(), Failure> {
    // Again: the user has to read it at each reload.
    let file = read(&arguments)?;
    if file.log_rotate.is_some() {
        let place = file.place("log_rotate");
        check_rotation(&place, file.access_log.iter().chain(&file.error_log))?;
    }
    writable::check(&file)?;
    let failed = |error: String| Failure::Failed(error);
    let mut of_file = match arguments.proxy {
        true => proxy::sites(file.proxy.clone())?,
        false => serve::sites(file.dir.as_deref(), file.follow_links, &file.sites)?,
    };
    name_site(&mut of_file, &file.names)?;
    let wanted = certificates::wanted(&of_file, file.acme.as_ref())?;
    let (mut listen, mut redirect_http) = (file.listen.clone(), file.redirect_http);
    if !wanted.is_empty() {
        certificates::default_addresses(&mut listen, &mut redirect_http);
    }
    // Opens everything that the sites name.
    let clients = SiteClients::of(&of_file).map_err(|error| failed(error.to_string()))?;
    for list in server::expired_lists(clients.rules()) {
        print_message(&list);
    }
    sites(&of_file, &clients, &UpstreamMetrics::default())
        .map_err(|error| failed(error.to_string()))?;
    identities(&of_file).map_err(|error| failed(error.to_string()))?;
    state::check(file.state.as_deref())?;
    let state = file.state.clone().or_else(state::default_directory);
    let mut problems = Vec::new();
    if file.cert.is_some() || file.key.is_some() {
        let (Some(cert), Some(key)) = (&file.cert, &file.key) else {
            let message = "`cert` and `key` belong together; set both";
            return Err(Failure::Usage(message.to_owned()));
        };
        let identity = Identity::from_pem_files(cert, key);
        let identity =
            identity.map_err(|error| failed(format!("{}: {error}", file.place("cert"))))?;
        out!("certificate {}{}\n", cert.display(), validity(&identity));
        problems.extend(print_status(&identity, state.as_deref()));
    }
    let listen = match listen.as_slice() {
        [] => LISTEN.to_string(),
        all => {
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            all.join(", ")
        }
    };
    out!("listens on {listen}\n");
    if let Some(redirect) = redirect_http {
        out!("redirects http at {redirect} to https\n");
    }
    #[cfg(target_os = "linux")]
    if let Some(table) = &file.tunnel {
        let users = table.certificates(clients.rules());
        let users = users.and_then(|certificates| table.flags.some_users(certificates));
        out!(
            "tunnels for users: {}\n",
            users
                .map_err(|failure| failed(format!("{}: {failure}", file.place("tunnel"))))?
                .len()
        );
    }
    if let Some(path) = &file.shared_secret_file {
        state::open_shared(path)?;
    }
    if let Some(keys) = &file.quic_lb {
        keys.open()?;
    }
    for (index, site) in of_file.iter().enumerate() {
        let wanted = wanted.iter().find(|one| one.site == index);
        problems.extend(print_site(
            site,
            wanted.map(|one| &one.wanted),
            state.as_deref(),
        )?);
    }
    for upstream in of_file.iter().flat_map(upstreams) {
        problems.extend(unresolved_host(upstream).await);
        warn_of_socket(upstream);
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(problems.join("; "))),
    }
}

/// Prints a site, whose certificate is the one that is `wanted` of an authority, if there is one. Returns the problems of its
/// certificates.
fn print_site(
    site: &SiteConfig,
    wanted: Option<&Wanted>,
    state: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    let names: Vec<_> = site.names.iter().map(ToString::to_string).collect();
    match names.is_empty() {
        true => out!("all other names\n"),
        false => out!("{}\n", names.join(", ")),
    }
    for files in &site.certificates {
        let identity = Identity::from_pem_files(&files.cert, &files.key);
        let identity = identity.map_err(|error| Failure::Failed(error.to_string()))?;
        let until = validity(&identity);
        out!("    certificate {}{until}\n", files.cert.display());
        let now = TokioRuntime::current().map(|runtime| runtime.unix_time());
        if let Some(validity) = now.ok().and_then(|now| identity.validity(now)) {
            print_message(&format!("{}: {validity}", files.cert.display()));
        }
        problems.extend(print_status(&identity, state));
    }
    if let Some(wanted) = wanted {
        let issued = state.map(|state| wanted.issued(state)).transpose();
        let issued = issued.map_err(|error| Failure::Failed(error.to_string()))?;
        let issued = issued.flatten();
        let until = match &issued {
            Some(identity) => validity(identity),
            None => ", not yet issued".to_owned(),
        };
        out!("    certificate of {}{until}\n", wanted.acme().directory);
        if let Some(identity) = &issued {
            problems.extend(print_status(identity, state));
        }
    }
    if let Some(files) = &site.client_certificates {
        let (require, ca) = (files.require.name(), files.ca.display());
        out!("    certificates of clients: {require}, of {ca}\n");
    }
    for route in &site.routes {
        let certificates = route.client_certificates.as_ref();
        let certificate = match certificates.map(|certificates| certificates.require) {
            Some(Require::Always) => ", with a certificate of the client",
            _ => "",
        };
        out!(
            "    {}: {}{certificate}\n",
            route.title(),
            described(&route.rules, "as the site")
        );
    }
    let otherwise = if site.routes.is_empty() {
        ""
    } else {
        "otherwise: "
    };
    out!("    {otherwise}{}\n", described(&site.rules, "404"));
    Ok(problems)
}

/// Prints the status that is stapled to handshakes with a certificate that asks for it. Returns the reason why there can be none:
/// clients may refuse the certificate then.
fn print_status(identity: &Identity, state: Option<&Path>) -> Option<String> {
    let now = TokioRuntime::current().map(|runtime| runtime.unix_time());
    let kept = kept_status(identity, state, now.unwrap_or_default())?;
    match (kept.problem, kept.status) {
        (Some(problem), _) => {
            return Some(format!(
                "the certificate of {} asks to be stapled, but {problem}",
                kept.name
            ));
        }
        (None, Some(status)) => out!("    stapled status: {status}\n"),
        (None, None) => out!("    stapled status: not yet received\n"),
    }
    None
}

/// The end of the validity of a certificate.
fn validity(identity: &Identity) -> String {
    let dates = identity.dates();
    dates.map_or(String::new(), |dates| format!(", valid {dates}"))
}

/// A summary of `rules`: the answer, and the clients that may request.
fn described(rules: &Rules, without: &str) -> String {
    let mut parts = Vec::new();
    if let Some(dir) = &rules.dir {
        parts.push(format!("files of {}", dir.display()));
    } else if let Some(proxy) = &rules.proxy {
        let urls: Vec<_> = proxy.upstreams.iter().map(ToString::to_string).collect();
        parts.push(format!("passed on to {}", urls.join(", ")));
    } else if let Some(target) = &rules.redirect {
        parts.push(format!("redirected to {target}"));
    } else if rules.respond.is_some() || rules.status.is_some() {
        parts.push(format!("status {}", rules.status.unwrap_or(200)));
    } else {
        parts.push(without.to_owned());
    }
    if let Some(rewrite) = &rules.rewrite {
        parts.push(format!("as {rewrite}"));
    }
    if rules.basic_auth.is_some() {
        parts.push("with a password".to_owned());
    }
    if !rules.allow.is_empty() || !rules.deny.is_empty() {
        parts.push("for some networks".to_owned());
    }
    if let Some(rate) = rules.rate {
        parts.push(format!("{rate} for each client"));
    }
    parts.join(", ")
}

/// The applications of a site.
fn upstreams(site: &SiteConfig) -> impl Iterator<Item = &UpstreamUrl> {
    let routes = site.routes.iter().map(|route| &route.rules);
    let rules = routes.chain([&site.rules]);
    let proxies = rules.filter_map(|rules| rules.proxy.as_ref());
    let upstreams = proxies.flat_map(|proxy| &proxy.upstreams);
    upstreams.map(|upstream| &upstream.url)
}

/// The message about an application whose host has no address now. A running server would go on, and resolve it again.
async fn unresolved_host(upstream: &UpstreamUrl) -> Option<String> {
    let host = upstream.host()?.as_str();
    let error = tokio::net::lookup_host(host).await.err()?;
    Some(format!(
        "the application {upstream} has no address: {error}; check its name, and the name servers of this machine"
    ))
}

/// Prints if there is no Unix socket of the application now. The server would start nevertheless: an application may come later.
fn warn_of_socket(upstream: &UpstreamUrl) {
    if let Some(path) = upstream.socket()
        && !path.exists()
    {
        print_message(&format!("there is no socket {}", path.display()));
    }
}
