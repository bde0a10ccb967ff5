//! A certificate authority: the account at it, and an order from the request to the certificate (RFC 8555, section 7).

mod http;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, ExternalAccountKey,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use marline_http::server::{AnsweredChallenge, Challenges, Identity};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use self::http::Http;
use crate::config::{AcmeConfig, Challenge, Wanted};
use crate::error::CertificateError;
use crate::schedule::Window;
use crate::store::Store;

/// The time that an order may take: authorities validate from several places, some of them within minutes.
pub(crate) const ORDER_TIMEOUT: Duration = Duration::from_secs(600);

/// How often the state of an order is asked for, if the authority does not say.
const POLL: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(300));

/// An account at a certificate authority.
pub(crate) struct Authority {
    account: Account,
    http: Http,
    /// The terms of service that a new account agreed to; `None` for one that existed.
    agreed: Option<String>,
}

/// Renewal information (RFC 9773).
pub(crate) struct Advice {
    pub(crate) window: Window,
    /// The time until it is asked for again.
    pub(crate) again: Duration,
}

impl Authority {
    /// The account of `acme`: the one that is kept in `store`, or a new one.
    pub(crate) async fn open(acme: &AcmeConfig, store: &Store) -> Result<Self, CertificateError> {
        let http = Http::new(acme.ca.as_deref())?;
        if let Some(credentials) = store.account(acme)? {
            let builder = Account::builder_with_http(Box::new(http.clone()));
            return Ok(Self {
                account: builder.from_credentials(credentials).await?,
                http,
                agreed: None,
            });
        }
        Self::create(acme, store, http).await
    }

    /// A new account, in place of one that the authority no longer knows.
    pub(crate) async fn renew(acme: &AcmeConfig, store: &Store) -> Result<Self, CertificateError> {
        Self::create(acme, store, Http::new(acme.ca.as_deref())?).await
    }

    async fn create(
        acme: &AcmeConfig,
        store: &Store,
        http: Http,
    ) -> Result<Self, CertificateError> {
        let external = external_account(acme)?;
        let contact = acme.contact.as_ref();
        let contact: Vec<_> = contact
            .map(|address| format!("mailto:{address}"))
            .into_iter()
            .collect();
        let contact: Vec<_> = contact.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contact,
            // Whoever sets a contact agrees, as its description says.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let terms = http.terms_of_service(&acme.directory).await?;
        let builder = Account::builder_with_http(Box::new(http.clone()));
        let created = builder
            .create(&new, acme.directory.clone(), external.as_ref())
            .await;
        let (account, credentials) = created.map_err(|error| about("the account", error))?;
        store.keep_account(acme, &credentials)?;
        Ok(Self {
            account,
            http,
            agreed: Some(terms.unwrap_or_else(|| "none that it names".to_owned())),
        })
    }

    /// The terms of service that a new account agreed to.
    pub(crate) fn agreed(&self) -> Option<&str> {
        self.agreed.as_deref()
    }

    /// The time for which the authority wants no further request, as its last refusal says.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.http.wait()
    }

    /// Obtains a certificate. The names are validated by the first of `kinds` that the authority offers; `replaces` is the
    /// present certificate.
    pub(crate) async fn obtain(
        &self,
        wanted: &Wanted,
        replaces: Option<&Identity>,
        kinds: &[Challenge],
        challenges: &Challenges,
    ) -> Result<Identity, CertificateError> {
        let ordered = self.order(wanted, replaces, kinds, challenges);
        tokio::time::timeout(ORDER_TIMEOUT, ordered)
            .await
            .unwrap_or(Err(CertificateError::Timeout(ORDER_TIMEOUT)))
    }

    async fn order(
        &self,
        wanted: &Wanted,
        replaces: Option<&Identity>,
        kinds: &[Challenge],
        challenges: &Challenges,
    ) -> Result<Identity, CertificateError> {
        let mut order = self.begin(wanted, replaces).await?;
        let mut answered = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let offered = |kind: &&Challenge| {
                let mut all = authorization.challenges.iter();
                all.any(|one| one.r#type == type_of(**kind))
            };
            let kind = kinds.iter().find(offered).copied();
            let mut challenge = kind
                .and_then(|kind| authorization.challenge(type_of(kind)))
                .ok_or_else(|| no_challenge(&name, kinds))?;
            let authorized = challenge.key_authorization();
            let answer = match kind {
                Some(Challenge::TlsAlpn) => {
                    challenges.answer_tls(&name, authorized.digest().as_ref())?
                }
                _ => challenges.answer_http(&challenge.token, authorized.as_str()),
            };
            answered.push(answer);
            challenge.set_ready().await?;
        }
        self.validated(&mut order, answered).await?;
        let mut params = CertificateParams::new(wanted.names().to_vec())?;
        params.distinguished_name = DistinguishedName::new();
        let key = KeyPair::generate()?;
        let request = params.serialize_request(&key)?;
        order.finalize_csr(request.der()).await?;
        let chain = order.poll_certificate(&POLL).await?;
        Ok(Identity::from_pem(&chain, &key.serialize_pem())?)
    }

    /// Begins an order that replaces a certificate, if the authority accepts that.
    async fn begin(
        &self,
        wanted: &Wanted,
        replaces: Option<&Identity>,
    ) -> Result<Order, CertificateError> {
        let identifiers = wanted.names().iter().cloned().map(Identifier::Dns);
        let identifiers: Vec<_> = identifiers.collect();
        let mut new = NewOrder::new(&identifiers);
        if let Some(profile) = &wanted.acme().profile {
            new = new.profile(profile);
        }
        if let Some(id) = replaces.and_then(certificate_id) {
            let replacing = NewOrder::new(&identifiers).replaces(id);
            let replacing = match &wanted.acme().profile {
                Some(profile) => replacing.profile(profile),
                None => replacing,
            };
            // Without renewal information, or if it was replaced already, it is an order as any other.
            if let Ok(order) = self.account.new_order(&replacing).await {
                return Ok(order);
            }
        }
        Ok(self.account.new_order(&new).await?)
    }

    /// Waits until all names are validated; what is `answered` is so until then.
    async fn validated(
        &self,
        order: &mut Order,
        answered: Vec<AnsweredChallenge>,
    ) -> Result<(), CertificateError> {
        let ready = order.poll_ready(&POLL).await;
        drop(answered);
        if matches!(ready, Ok(OrderStatus::Ready)) {
            return Ok(());
        }
        // The challenge says why, the order often only that.
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let name = authorization.identifier().to_string();
            let state = authorization.refresh().await?;
            let mut failed = state.challenges.iter().filter_map(|one| one.error.as_ref());
            if let Some(problem) = failed.next() {
                return Err(CertificateError::of_problem(&name, problem));
            }
        }
        ready?;
        Err(CertificateError::Protocol(
            "the order is invalid, without a reason".to_owned(),
        ))
    }

    /// The renewal information of a certificate; `None` if the authority has none.
    pub(crate) async fn advice(
        &self,
        identity: &Identity,
    ) -> Result<Option<Advice>, CertificateError> {
        let Some(id) = certificate_id(identity) else {
            return Ok(None);
        };
        match self.account.renewal_info(&id).await {
            Ok((info, again)) => {
                let since_1970 =
                    |seconds: i64| Duration::from_secs(seconds.try_into().unwrap_or(0));
                let window = info.suggested_window;
                let window = Window {
                    start: since_1970(window.start.unix_timestamp()),
                    end: since_1970(window.end.unix_timestamp()),
                };
                Ok(Some(Advice { window, again }))
            }
            Err(instant_acme::Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn about(what: &str, error: instant_acme::Error) -> CertificateError {
    match error {
        instant_acme::Error::Api(problem) => CertificateError::of_problem(what, &problem),
        other => other.into(),
    }
}

fn type_of(kind: Challenge) -> ChallengeType {
    match kind {
        Challenge::Http => ChallengeType::Http01,
        Challenge::TlsAlpn => ChallengeType::TlsAlpn01,
    }
}

fn no_challenge(name: &str, kinds: &[Challenge]) -> CertificateError {
    let kinds = kinds.iter().map(|kind| match kind {
        Challenge::Http => "HTTP-01",
        Challenge::TlsAlpn => "TLS-ALPN-01",
    });
    CertificateError::NoChallenge {
        name: name.to_owned(),
        can_answer: kinds.collect::<Vec<_>>().join(" or "),
    }
}

/// The key of an account that the authority has given.
fn external_account(acme: &AcmeConfig) -> Result<Option<ExternalAccountKey>, CertificateError> {
    let (Some(id), Some(key)) = (&acme.eab_key_id, &acme.eab_hmac) else {
        return Ok(None);
    };
    let decoded = URL_SAFE_NO_PAD
        .decode(key)
        .or_else(|_| URL_SAFE.decode(key));
    let decoded = decoded.map_err(|_| CertificateError::Config {
        place: "the account".to_owned(),
        reason: "`eab_hmac` is not in base64url; write it as the authority has given it",
    })?;
    Ok(Some(ExternalAccountKey::new(id.clone(), &decoded)))
}

/// The identifier of a certificate in renewal information (RFC 9773, section 4.1): the key identifier of its issuer, and its serial
/// number.
fn certificate_id(identity: &Identity) -> Option<CertificateIdentifier<'static>> {
    let chain = identity.chain();
    let certificate = x509_cert::Certificate::from_der(chain.first()?).ok()?;
    let certificate = certificate.tbs_certificate;
    let (_, issuer) = certificate.get::<AuthorityKeyIdentifier>().ok()??;
    let issuer = issuer.key_identifier?;
    let id = CertificateIdentifier::new(
        issuer.as_bytes().into(),
        certificate.serial_number.as_bytes().into(),
    );
    Some(id.into_owned())
}
