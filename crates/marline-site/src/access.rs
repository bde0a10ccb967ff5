//! Who may request: by network, by password, and how often.

use std::net::IpAddr;

use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Response};
use marline_http::server::Refusal;
use marline_http::{Body, Network};

use crate::answers::refused;
use crate::config::Rules;
use crate::error::SiteError;
use crate::rate::RateLimit;
use crate::users::{BasicAuth, Credentials};

/// The access rules of a site or of a route.
#[derive(Debug)]
pub(crate) struct Access {
    allow: Vec<Network>,
    deny: Vec<Network>,
    basic: Option<BasicAuth>,
    realm: HeaderValue,
    rate: Option<RateLimit>,
}

impl Access {
    /// The rules, with the users of their file.
    pub(crate) fn new(rules: &Rules) -> Result<Self, SiteError> {
        let realm = rules.realm.as_deref().unwrap_or("restricted");
        let realm: String = realm
            .chars()
            .filter(|c| !c.is_control() && !matches!(c, '"' | '\\'))
            .collect();
        let realm = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Ok(Self {
            allow: rules.allow.clone(),
            deny: rules.deny.clone(),
            basic: rules
                .basic_auth
                .as_deref()
                .map(BasicAuth::read)
                .transpose()?,
            realm: HeaderValue::try_from(realm)
                .unwrap_or(HeaderValue::from_static("Basic realm=\"restricted\"")),
            rate: rules
                .rate
                .map(|rate| RateLimit::new(rate, rules.burst, rules.rate_by.clone())),
        })
    }

    /// Lets a request of `client` pass, or answers it. `Deny` has precedence over `allow`.
    pub(crate) async fn check(
        &self,
        client: IpAddr,
        headers: &HeaderMap,
    ) -> Result<(), Response<Body>> {
        let is_among = |networks: &[Network]| networks.iter().any(|one| one.contains(client));
        if is_among(&self.deny) || (!self.allow.is_empty() && !is_among(&self.allow)) {
            return Err(refused(Refusal::Network, "Forbidden\n"));
        }
        // Before passwords, which take time to check.
        if let Some(wait) = self
            .rate
            .as_ref()
            .and_then(|rate| rate.refuse(client, headers))
        {
            let mut response = refused(Refusal::Rate, "Too many requests\n");
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            return Err(response);
        }
        let Some(basic) = &self.basic else {
            return Ok(());
        };
        let is_known = match Credentials::of(headers) {
            Some(credentials) => basic.accepts(credentials).await,
            None => false,
        };
        if is_known {
            return Ok(());
        }
        let mut response = refused(Refusal::NoPassword, "A name and a password are needed\n");
        let headers = response.headers_mut();
        headers.insert(WWW_AUTHENTICATE, self.realm.clone());
        Err(response)
    }

    /// Whether requests have to name a user.
    pub(crate) fn needs_user(&self) -> bool {
        self.basic.is_some()
    }
}
