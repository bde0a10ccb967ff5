//! A table of a file that may be one line.

use marline::settings::{RawValue, Refused, Row, Setting, Shown, Table, apply};

/// A table that can also be written as the text of one of its keys.
pub(super) struct ShortTable<C, D: 'static> {
    /// The table.
    pub(super) table: Table<C, D>,
    /// The key.
    pub(super) short: &'static str,
}

impl<C, D: Default> ShortTable<C, D> {
    fn allowed(&self) -> String {
        format!("the text of `{}`, or a table", self.short)
    }
}

impl<C, D: Default> Setting<C> for ShortTable<C, D> {
    fn key(&self) -> &'static str {
        self.table.key
    }

    fn about(&self) -> &'static str {
        self.table.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        match written {
            RawValue::Text(_) => apply(
                self.table.settings,
                (self.table.open)(config),
                &[(self.short.to_owned(), written.clone())],
            )
            // The key was not written.
            .map_err(|why| refused(why.text)),
            RawValue::Table(_) => self.table.set(config, written),
            _ => Err(refused(format!(
                "this must be {}, not {written}",
                self.allowed()
            ))),
        }
    }

    fn show(&self, config: &C) -> Option<Shown> {
        self.table.show(config)
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        let mut rows = self.table.rows(prefix, default);
        if let Some(first) = rows.first_mut() {
            first.allowed = self.allowed();
        }
        rows
    }

    fn key_of_policy(&self, policy: &str) -> Option<String> {
        self.table.key_of_policy(policy)
    }

    fn samples(&self) -> Vec<RawValue> {
        vec![RawValue::Table(Vec::new())]
    }
}

fn refused(text: String) -> Refused {
    Refused {
        path: Vec::new(),
        text,
    }
}
