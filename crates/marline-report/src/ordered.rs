//! Values by key.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by key, in the order in which the keys appeared. Finding one takes constant time.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<K, V> {
    places: HashMap<K, usize>,
    values: Vec<V>,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            values: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V> Ordered<K, V> {
    /// The value of `key`, which is made if there is none.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => {
                let place = self.values.len();
                self.places.insert(key.clone(), place);
                self.values.push(make());
                place
            }
        };
        &mut self.values[place]
    }

    /// The value of `key`, if there is one.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.places.get(key).map(|&place| &self.values[place])
    }

    /// All values.
    pub(crate) fn into_values(self) -> Vec<V> {
        self.values
    }
}
