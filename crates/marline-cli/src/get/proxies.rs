//! The proxies that `get` uses: from flags, or from the variables that curl reads.

use std::env;

use clap::Args;
use http::Uri;
use marline_http::client::{HttpProxy, NoProxy, Proxies, Target};

use super::NETWORK;
use crate::failure::{Failure, print_message};

#[derive(Debug, Args)]
pub(super) struct ProxyFlags {
    /// Use this proxy, as http://[NAME:PASSWORD@]HOST[:PORT] or with socks5://, or socks5h:// if it resolves names, for versions
    /// over TCP; without it, that of the variables https_proxy (for http:// http_proxy) or all_proxy. An empty value disables it
    #[arg(short = 'x', long, value_name = "URL", help_heading = NETWORK)]
    proxy: Option<String>,

    /// Use no proxy for these hosts, names with their subdomains, addresses and networks, separated by commas; `*` is all
    /// [default: the variable no_proxy]
    #[arg(long, value_name = "LIST", help_heading = NETWORK, hide_short_help = true)]
    noproxy: Option<String>,
}

/// The URL of a proxy, and the flag or variable that named it.
struct Named {
    source: String,
    text: String,
}

impl ProxyFlags {
    /// The proxies for `targets`, and if redirects are followed, for others.
    ///
    /// # Errors
    /// A proxy that is needed has an invalid URL, or is not an HTTP proxy.
    pub(super) fn proxies(&self, targets: &[Target], follows: bool) -> Result<Proxies, Failure> {
        let except = match &self.noproxy {
            Some(list) => Some(list.clone()),
            None => variable(&["no_proxy", "NO_PROXY"]).map(|named| named.text),
        };
        let mut proxies = Proxies {
            except: NoProxy::read(&except.unwrap_or_default()),
            ..Proxies::default()
        };
        for (scheme, proxy) in [("http", &mut proxies.http), ("https", &mut proxies.https)] {
            *proxy = self.of_scheme(scheme, targets, follows, &proxies.except)?;
        }
        Ok(proxies)
    }

    /// Explains that a proxy is not used, because only HTTP/3 is.
    ///
    /// # Errors
    /// It was asked for by a flag.
    pub(super) fn explain_without_tcp(&self, proxies: &Proxies) -> Result<(), Failure> {
        match (&proxies.https, &self.proxy) {
            (None, _) => {}
            (Some(_), Some(_)) => {
                let message = "--proxy needs a version over TCP; write --http 2 or --http 1.1";
                return Err(Failure::Usage(message.to_owned()));
            }
            (Some(proxy), None) => print_message(&format!(
                "HTTP/3 does not go through the proxy {proxy}: it is not used; with --http 2 it is"
            )),
        }
        Ok(())
    }

    fn of_scheme(
        &self,
        scheme: &str,
        targets: &[Target],
        follows: bool,
        except: &NoProxy,
    ) -> Result<Option<HttpProxy>, Failure> {
        let mut hosts = targets
            .iter()
            .filter_map(|target| host_of(&target.url, scheme));
        // A proxy that no URL needs may be invalid.
        if !follows && !hosts.any(|host| !except.contains(&host)) {
            return Ok(None);
        }
        let named = match &self.proxy {
            Some(text) => Some(Named {
                source: "--proxy".to_owned(),
                text: text.clone(),
            }),
            None => of_variables(scheme),
        };
        let Some(named) = named.filter(|named| !named.text.is_empty()) else {
            return Ok(None);
        };
        let source = &named.source;
        named.text.parse().map(Some).map_err(|error| {
            Failure::Usage(format!(
                "{source}: {error}; to use none, write --noproxy '*'"
            ))
        })
    }
}

/// The host of a URL of `scheme`, as its origin has it.
fn host_of(url: &str, scheme: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some(scheme))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(host.to_ascii_lowercase())
}

/// The values of the variables, in the order in which curl reads them. `HTTP_PROXY` is not among them: in a CGI program it would be
/// the field `Proxy` of a request.
fn of_variables(scheme: &str) -> Option<Named> {
    let own: &[&str] = match scheme {
        "http" => &["http_proxy"],
        _ => &["https_proxy", "HTTPS_PROXY"],
    };
    let found = variable(own).or_else(|| variable(&["all_proxy", "ALL_PROXY"]));
    if found.is_none() && scheme == "http" && variable(&["HTTP_PROXY"]).is_some() {
        print_message(
            "the variable HTTP_PROXY is not followed, as by curl; set http_proxy, or write --proxy",
        );
    }
    found
}

/// The first of these variables that is set and not empty.
fn variable(names: &[&str]) -> Option<Named> {
    names.iter().find_map(|name| {
        let text = env::var(name).ok().filter(|text| !text.is_empty())?;
        Some(Named {
            source: format!("the variable {name}"),
            text,
        })
    })
}
