//! Rows with several values: of one domain, as tables, or by names of the user's own.

use crate::domain::{Domain, RawValue, Shown, Value};
use crate::field::FieldValue;
use crate::table::{Refused, Row, Setting, Settings, apply, rows};

/// Several values of one domain, written as a list, or as one value without brackets.
pub struct List<C, T> {
    /// Its key.
    pub key: &'static str,
    /// The allowed values of each.
    pub domain: Domain,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// Returns the values.
    pub field: fn(&mut C) -> &mut Vec<T>,
}

impl<C: Clone, T: FieldValue> Setting<C> for List<C, T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let read = |written: &RawValue| {
            let value = self.domain.read(self.key, written)?;
            T::read(&value)
        };
        let values = match written {
            RawValue::List(members) => {
                let members = members.iter().enumerate();
                members
                    .map(|(index, member)| {
                        read(member).map_err(|why| Refused::here(why).within(&place(index)))
                    })
                    .collect::<Result<_, _>>()?
            }
            one => vec![read(one).map_err(Refused::here)?],
        };
        *(self.field)(config) = values;
        Ok(())
    }

    fn show(&self, config: &C) -> Option<Shown> {
        let mut config = config.clone();
        let values = (self.field)(&mut config).iter();
        let values: Vec<_> = values
            .map(|value| self.domain.write(&value.to_value()))
            .collect();
        (!values.is_empty()).then(|| Shown::Value(Value::Word(values.join(", "))))
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        vec![Row {
            key: format!("{prefix}{}", self.key),
            about: self.about,
            allowed: format!("{}, or a list of these", self.domain),
            words: self.domain.choices(),
            default: match self.show(default) {
                Some(Shown::Value(Value::Word(values))) => values,
                _ => String::new(),
            },
        }]
    }
}

/// Several configurations `D` inside `C`, each written as a table, as `[[site]]`.
pub struct Tables<C, D: 'static> {
    /// Its key.
    pub key: &'static str,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// The keys of each.
    pub settings: Settings<D>,
    /// Returns the configurations.
    pub field: fn(&mut C) -> &mut Vec<D>,
}

impl<C, D: Default> Setting<C> for Tables<C, D> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let wrong = |written: &RawValue| {
            let key = self.key;
            Refused::here(match written {
                RawValue::Table(_) => format!(
                    "this is one table, and must be a list of tables; begin each with double brackets, as [[{key}]], also if there is only one"
                ),
                _ => format!("this must be tables, each begun by [[...{key}]], not {written}"),
            })
        };
        let RawValue::List(members) = written else {
            return Err(wrong(written));
        };
        let mut all = Vec::with_capacity(members.len());
        for (index, member) in members.iter().enumerate() {
            let place = place(index);
            let RawValue::Table(entries) = member else {
                return Err(wrong(member).within(&place));
            };
            let mut one = D::default();
            apply(self.settings, &mut one, entries).map_err(|why| why.within(&place))?;
            all.push(one);
        }
        *(self.field)(config) = all;
        Ok(())
    }

    /// The tables have no one value.
    fn show(&self, _config: &C) -> Option<Shown> {
        None
    }

    fn rows(&self, prefix: &str, _default: &C) -> Vec<Row> {
        let key = format!("{prefix}{}", self.key);
        let inside = format!("{key}.");
        let of_tables = Row {
            key: key.clone(),
            about: self.about,
            allowed: format!("tables, each begun by `[[{key}]]`"),
            words: Vec::new(),
            default: String::new(),
        };
        std::iter::once(of_tables)
            .chain(rows(self.settings, &inside, &D::default()))
            .collect()
    }
}

/// A name of the user's own, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The name as written.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A table whose keys are names of the user's own, as fields of HTTP, each with a text.
pub struct Pairs<C> {
    /// Its key.
    pub key: &'static str,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// The keys and their texts, in words.
    pub allowed: &'static str,
    /// Checks one pair, or says what is wrong with it.
    pub check: fn(&Pair) -> Result<(), String>,
    /// Returns the pairs, in the order of the file.
    pub field: fn(&mut C) -> &mut Vec<Pair>,
}

impl<C> Setting<C> for Pairs<C> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let RawValue::Table(entries) = written else {
            let allowed = self.allowed;
            return Err(Refused::here(format!(
                "this must be a table of {allowed}, not {written}"
            )));
        };
        let mut pairs = Vec::with_capacity(entries.len());
        for (name, written) in entries {
            let text = match written {
                RawValue::Text(text) => text.clone(),
                RawValue::Integer(number) => number.to_string(),
                other => {
                    let why = format!("this must be text, not {other}");
                    return Err(Refused::here(why).within(name));
                }
            };
            let pair = Pair {
                name: name.clone(),
                text,
            };
            (self.check)(&pair).map_err(|why| Refused::here(why).within(name))?;
            pairs.push(pair);
        }
        *(self.field)(config) = pairs;
        Ok(())
    }

    /// The pairs have no one value.
    fn show(&self, _config: &C) -> Option<Shown> {
        None
    }

    fn rows(&self, prefix: &str, _default: &C) -> Vec<Row> {
        vec![Row {
            key: format!("{prefix}{}", self.key),
            about: self.about,
            allowed: format!("a table of {}", self.allowed),
            words: Vec::new(),
            default: String::new(),
        }]
    }
}

/// A member of a list in the path of a [`Refused`], counted from 1.
fn place(index: usize) -> String {
    format!("[{}]", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, show};

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Host {
        names: Vec<String>,
        port: u16,
        fields: Vec<Pair>,
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Config {
        hosts: Vec<Host>,
    }

    const HOST: Settings<Host> = &[
        &List {
            key: "names",
            domain: Domain::text("a name"),
            about: "The names",
            field: |c: &mut Host| &mut c.names,
        },
        &Field::new(
            "port",
            Domain::integer(1, 65_535),
            "The port",
            |c: &mut Host| &mut c.port,
        ),
        &Pairs {
            key: "fields",
            about: "The fields",
            allowed: "fields and their values",
            check: |pair| match pair.name.contains(' ') {
                true => Err("a name has no blanks".to_owned()),
                false => Ok(()),
            },
            field: |c: &mut Host| &mut c.fields,
        },
    ];

    const CONFIG: Settings<Config> = &[&Tables {
        key: "host",
        about: "The hosts",
        settings: HOST,
        field: |c: &mut Config| &mut c.hosts,
    }];

    fn host(entries: &[(&str, RawValue)]) -> RawValue {
        let entries = entries.iter();
        RawValue::Table(
            entries
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
        )
    }

    fn read(hosts: Vec<RawValue>) -> Result<Config, String> {
        let mut config = Config::default();
        let written = [("host".to_owned(), RawValue::List(hosts))];
        apply(CONFIG, &mut config, &written).map_err(|why| why.to_string())?;
        Ok(config)
    }

    #[test]
    fn tables_have_lists_and_pairs() {
        let two = RawValue::List(vec!["a".into(), "b".into()]);
        let fields = host(&[("X-A", "1".into()), ("age", RawValue::Integer(5))]);
        let config = read(vec![
            host(&[("names", two), ("fields", fields)]),
            host(&[("names", "c".into()), ("port", RawValue::Integer(80))]),
        ]);
        let hosts = config.unwrap().hosts;
        assert_eq!(hosts[0].names, ["a", "b"]);
        assert_eq!(hosts[0].fields[1].text, "5");
        assert_eq!((hosts[1].names.len(), hosts[1].port), (1, 80));
        let shown = show(HOST, &hosts[0]);
        let names = ("names", Shown::Value(Value::Word("a, b".to_owned())));
        assert_eq!(shown[0], names);
    }

    #[test]
    fn a_refusal_names_the_member() {
        let wrong = RawValue::List(vec!["a".into(), RawValue::Switch(true)]);
        for (hosts, words) in [
            (vec![host(&[("names", wrong)])], "host.[1].names.[2]: "),
            (
                vec![host(&[]), host(&[("prot", RawValue::Integer(1))])],
                "host.[2].prot: unknown key \"prot\"",
            ),
            (vec!["a".into()], "host.[1]: this must be tables"),
            (
                vec![host(&[("fields", host(&[("a b", "1".into())]))])],
                "host.[1].fields.a b: a name has no blanks",
            ),
            (
                vec![host(&[("fields", host(&[("a", RawValue::Switch(true))]))])],
                "this must be text, not true",
            ),
        ] {
            let why = read(hosts).unwrap_err();
            assert!(why.starts_with(words) || why.ends_with(words), "{why}");
        }
    }
}
