//! Things that belong together, in the order in which they are met.

/// Values by their keys.
pub(crate) fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Each value once.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in all {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The first value of each key.
pub(crate) fn first_of_each<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<V> {
    grouped(all).into_iter().filter_map(|(_, group)| group.into_iter().next()).collect()
}
