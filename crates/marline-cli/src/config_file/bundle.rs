//! The table `[bundle]`: how the server coordinates the connections of a bundle.

use marline::TransportConfig;
use marline::coordination::bundle::{BundleConfig, BundleScope, Coalesce, MAX_MEMBERS};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::set;
use crate::failure::Failure;
use crate::transport::Congestion;

/// What an operator may choose of [`BundleConfig`], under the same names. What is left out stays as it is by
/// default. The table switches coordination on, whatever the profile is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Bundle {
    pub(super) fair: Option<Spanned<bool>>,
    /// Where `fair` stands, for messages.
    #[serde(skip)]
    pub(super) fair_at: String,
    #[serde(default, deserialize_with = "members")]
    connections: Option<u64>,
    match_addresses: Option<bool>,
    split_initial_window: Option<bool>,
    sync_windows: Option<bool>,
    sync_state: Option<bool>,
    backoff_on_delay: Option<bool>,
    scope: Option<WhoTakesPart>,
    coalesce: Option<CountAsOne>,
    #[serde(default, deserialize_with = "witnesses")]
    corroborated_by: Option<Option<usize>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhoTakesPart {
    All,
    Active,
}

impl From<WhoTakesPart> for BundleScope {
    fn from(scope: WhoTakesPart) -> Self {
        match scope {
            WhoTakesPart::All => Self::All,
            WhoTakesPart::Active => Self::Active,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CountAsOne {
    Never,
    Member,
    Bundle,
}

impl From<CountAsOne> for Coalesce {
    fn from(coalesce: CountAsOne) -> Self {
        match coalesce {
            CountAsOne::Never => Self::Never,
            CountAsOne::Member => Self::Member,
            CountAsOne::Bundle => Self::Bundle,
        }
    }
}

impl Bundle {
    /// Has the connections of `transport`, whose controller was chosen as `congestion`, coordinated.
    ///
    /// # Errors
    /// `fair` with a controller that has no window to share.
    pub(crate) fn apply(
        &self,
        transport: &mut TransportConfig,
        congestion: Option<Congestion>,
    ) -> Result<(), Failure> {
        let fair = self.fair.as_ref().map(|fair| *fair.get_ref());
        if fair == Some(true) && congestion == Some(Congestion::Bbr) {
            return Err(Failure::Usage(format!(
                "{}: `fair` shares a window out, and bbr has none; leave `fair` out, or set `cc` to newreno or \
                 cubic",
                self.fair_at
            )));
        }
        let mut config = match &transport.bundle {
            Some(config) => BundleConfig::clone(config),
            None => BundleConfig::default(),
        };
        set(&mut config.fair, fair);
        set(&mut config.connections, self.connections);
        set(&mut config.match_addresses, self.match_addresses);
        set(&mut config.split_initial_window, self.split_initial_window);
        set(&mut config.sync_windows, self.sync_windows);
        set(&mut config.sync_state, self.sync_state);
        set(&mut config.backoff_on_delay, self.backoff_on_delay);
        set(&mut config.scope, self.scope.map(BundleScope::from));
        set(&mut config.coalesce, self.coalesce.map(Coalesce::from));
        set(&mut config.corroborated_by, self.corroborated_by);
        transport.bundle = Some(config.into());
        Ok(())
    }
}

/// Reads a number of connections that one bundle can have.
fn members<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = i64::deserialize(from)?;
    match u64::try_from(number) {
        Ok(members) if (1..=MAX_MEMBERS as u64).contains(&members) => Ok(Some(members)),
        _ => Err(de::Error::custom(format!(
            "`connections` is from 1 to {MAX_MEMBERS}, not {number}"
        ))),
    }
}

/// Reads how many members prove something, or that none do.
fn witnesses<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<usize>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Witnesses {
        Number(i64),
        Word(String),
    }
    let wrong = |what: &dyn std::fmt::Display| {
        de::Error::custom(format!(
            "`corroborated-by` is from 1 to {MAX_MEMBERS}, or \"never\", not {what}"
        ))
    };
    match Witnesses::deserialize(from)? {
        Witnesses::Word(word) if word == "never" => Ok(Some(None)),
        Witnesses::Word(word) => Err(wrong(&word)),
        Witnesses::Number(number) => match usize::try_from(number) {
            Ok(members) if (1..=MAX_MEMBERS).contains(&members) => Ok(Some(Some(members))),
            _ => Err(wrong(&number)),
        },
    }
}

#[cfg(test)]
mod tests {
    use marline::Profile;

    use super::super::tests::read;
    use super::*;

    fn applied(text: &str, profile: Profile) -> BundleConfig {
        let mut transport = profile.config();
        let file = read(text).unwrap();
        file.bundle
            .unwrap()
            .apply(&mut transport, file.cc)
            .unwrap_or_else(|failure| panic!("{failure:?}"));
        BundleConfig::clone(&transport.bundle.unwrap())
    }

    #[test]
    fn the_table_switches_coordination_on_under_any_profile() {
        for profile in Profile::ALL {
            assert_eq!(applied("[bundle]\n", profile), BundleConfig::default());
        }
    }

    #[test]
    fn every_key_sets_its_switch() {
        let text = "[bundle]\nfair = true\nconnections = 6\nmatch-addresses = true\n\
                    split-initial-window = false\nsync-windows = false\nsync-state = false\n\
                    backoff-on-delay = true\nscope = 'all'\ncoalesce = 'member'\n\
                    corroborated-by = 'never'\n";
        let expected = BundleConfig {
            fair: true,
            connections: 6,
            match_addresses: true,
            split_initial_window: false,
            sync_windows: false,
            sync_state: false,
            backoff_on_delay: true,
            scope: BundleScope::All,
            coalesce: Coalesce::Member,
            corroborated_by: None,
            ..BundleConfig::default()
        };
        assert_eq!(applied(text, Profile::Bundle), expected);
        let three = applied("[bundle]\ncorroborated-by = 3\n", Profile::Bundle);
        assert_eq!(three.corroborated_by, Some(3));
    }

    #[test]
    fn wrong_keys_and_values_are_refused_by_line() {
        for (text, line, words) in [
            ("fiar = true", 3, "fiar"),
            ("fair = 'yes'", 3, "boolean"),
            ("fair = true\nconnections = 17", 4, "from 1 to 16, not 17"),
            ("connections = 0", 3, "not 0"),
            ("connections = -1", 3, "not -1"),
            ("sync-state = true\nscope = 'some'", 4, "`all` or `active`"),
            (
                "corroborated-by = 0",
                3,
                "from 1 to 16, or \"never\", not 0",
            ),
            ("corroborated-by = 'all'", 3, "not all"),
            ("coalesce = 'always'", 3, "`never`, `member`, `bundle`"),
        ] {
            let error = read(&format!("cc = 'cubic'\n[bundle]\n{text}\n")).unwrap_err();
            let place = format!("site.toml:{line}: ");
            assert!(error.contains(&place) && error.contains(words), "{error}");
        }
    }

    #[test]
    fn fairness_needs_a_window() {
        let file = read("[bundle]\nsync-state = true\nfair = true\n").unwrap();
        let table = file.bundle.unwrap();
        let mut transport = Profile::Plain.config();
        let error = table.apply(&mut transport, Some(Congestion::Bbr));
        let Err(Failure::Usage(error)) = error else {
            panic!("{error:?}")
        };
        assert!(error.contains("site.toml:3: `fair`"), "{error}");
        table
            .apply(&mut transport, Some(Congestion::NewReno))
            .unwrap();
        let unfair = read("cc = 'bbr'\n[bundle]\nfair = false\n").unwrap();
        let table = unfair.bundle.unwrap();
        table.apply(&mut transport, unfair.cc).unwrap();
    }
}
