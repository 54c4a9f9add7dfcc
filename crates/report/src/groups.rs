//! Things that belong together, in the order in which they are met.

use std::borrow::Cow;

use serde_json::Value;

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

// Values by their names: the columns of a row, the keys of an object.

pub(crate) type Named = Vec<(Cow<'static, str>, Value)>;

/// Values, each with its name.
macro_rules! named {
    ($($name:ident: $value:expr),+ $(,)?) => {
        vec![$((std::borrow::Cow::Borrowed(stringify!($name)), serde_json::json!($value))),+]
    };
}
pub(crate) use named;

/// Values that are called as the fields of something that may be missing.
macro_rules! fields {
    ($of:expr; $($name:ident)+) => {{
        let of = $of;
        let one = |name, value| (std::borrow::Cow::Borrowed(name), value);
        vec![$(one(stringify!($name), serde_json::json!(of.map(|of| &of.$name)))),+]
    }};
}
pub(crate) use fields;

/// The same with this before their names.
pub(crate) fn prefixed(prefix: &str, values: Named) -> Named {
    renamed(values, |name| format!("{prefix}{name}"))
}

pub(crate) fn renamed(values: Named, new: impl Fn(&str) -> String) -> Named {
    values.into_iter().map(|(name, value)| (Cow::Owned(new(&name)), value)).collect()
}

/// An object of JSON.
pub(crate) fn object(values: impl IntoIterator<Item = (Cow<'static, str>, Value)>) -> Value {
    values.into_iter().collect()
}
