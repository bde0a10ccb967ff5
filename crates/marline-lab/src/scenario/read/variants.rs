//! Variants by name.

use super::{Node, Problem, Reader};

/// Two variants to compare.
pub(in crate::scenario) struct VariantPair {
    /// The variant that should be better.
    pub(in crate::scenario) a: String,
    /// The variant it should be better than.
    pub(in crate::scenario) b: String,
}

/// Reads the name of one of `variants`.
pub(super) fn one_variant(node: &Node, variants: &[&str]) -> Result<String, Problem> {
    let names: Vec<_> = variants.iter().map(|name| (*name, *name)).collect();
    Ok(node.named("variant", &names)?.to_owned())
}

/// Reads the name of one variant, or a list of them.
pub(super) fn these_variants(node: &Node, variants: &[&str]) -> Result<Vec<String>, Problem> {
    let members = node.members();
    if members.is_empty() {
        return Err(node.problem("the list is empty; name a variant"));
    }
    let members = members.iter();
    members.map(|node| one_variant(node, variants)).collect()
}

/// Reads the name of one variant or a list of them; by default all.
pub(super) fn some_variants(
    reader: &mut Reader<'_>,
    variants: &[&str],
) -> Result<Vec<String>, Problem> {
    let names = reader.optional("variant", |node| these_variants(node, variants))?;
    Ok(names.unwrap_or_else(|| variants.iter().map(|&name| name.to_owned()).collect()))
}
