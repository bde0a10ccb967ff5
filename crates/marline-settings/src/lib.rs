//! The vocabulary of settings: how a policy or a switch is named, written, checked and shown.
//!
//! Command lines, configuration files, links, scenarios, results and the reference pages all read the same tables, with one grammar
//! for [times, sizes, rates and shares](units).
//! A table is declared beside the type it describes, in the module that owns it:
//!
//! | table | is |
//! | --- | --- |
//! | [`Settings<C>`] | the keys of one configuration struct `C`, as a `SETTINGS` constant beside it |
//! | [`Registry<F>`] | the policies of one trait, each an [`Entry`] in the file of its implementation |
//!
//! | a row of `Settings` | is for |
//! | --- | --- |
//! | [`Field`] | one field: its key, its [`Domain`], one line, and which field |
//! | [`Derived`] | a value that is not one field: several of them, or a part of one |
//! | [`Choice`] | a policy, from a [`Registry`] |
//! | [`Table`] | keys of a configuration inside this one |
//! | [`Tables`] | several such configurations, as `[[site]]` |
//! | [`List`] | several values of one domain |
//! | [`Pairs`] | names of the user's own, each with a text |
//!
//! A policy is written as its name, with parameters in parentheses where they differ from the defaults:
//! `hybrid(factor=0.25, min_rise=8ms)`. A key may be written with `-` in place of `_`.
//!
//! Readers of files turn what was written into [`RawValue`] and keep the lines: [`Refused::path`] says which
//! key is at fault.

mod choice;
mod domain;
mod field;
mod lines;
mod list;
mod names;
mod policy;
mod section;
mod table;
pub mod units;

pub use choice::Choice;
pub use domain::{Domain, FormerName, Named, RawValue, Shown, Value, Word};
pub use field::{Derived, Field, FieldValue};
pub use lines::Lines;
pub use list::{List, Pair, Pairs, Tables};
pub use names::{advice, nearest_first, one_line, quote, unknown};
pub use policy::{Added, Entry, Policy, Registry, Spec};
pub use section::{Base, Table};
pub use table::{
    Refused, Row, Setting, Settings, apply, is_key, keys, misplaced_policy, rows, setting, show,
};
pub use units::{
    Share, find_unit, read_bytes, read_rate, read_share, read_time, refused_unit, split,
    split_unit, write_bytes, write_rate, write_time,
};

use std::sync::Arc;

/// Makes a policy for each connection or path, as held by fields of configurations.
pub type Make<T> = Arc<dyn Fn() -> Box<T> + Send + Sync>;
