//! How values of the settings are read and shown where serde alone has not our words.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::de::{DeserializeSeed, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

use super::quantity;
use crate::yaml::read::TEXT_OR_VARIABLE;

/// A value that is written as text, and shown as it is written.
pub(super) trait Written: fmt::Display + Sized {
    /// # Errors
    /// Says what is wrong with the text.
    fn parse(text: &str) -> Result<Self, String>;
}

impl Written for SocketAddr {
    /// No name, so that what is listened on cannot depend on a resolver.
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| {
            format!("expected an IP address with a port, like \"127.0.0.1:15002\" or \"[::1]:15002\", found {text:?}")
        })
    }
}

impl Written for IpNet {
    /// In CIDR form, or one address; bits beyond the prefix are a likely mistake and refused.
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse::<std::net::IpAddr>() {
            return Ok(Self::from(ip));
        }
        match text.parse::<Self>() {
            Ok(net) if net.addr() == net.network() => Ok(net),
            Ok(net) => Err(format!("{text} has bits beyond its prefix; did you mean {}?", net.trunc())),
            Err(_) => Err(format!("expected a network like 10.96.0.0/16 or an address, found {text:?}")),
        }
    }
}

/// Reads a value by [`Written::parse`].
pub(super) fn text<'de, T: Written, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::parse(&String::deserialize(deserializer)?).map_err(Error::custom)
}

/// Reads a list of such values.
pub(super) fn texts<'de, T: Written, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Text<T>>::deserialize(deserializer)?.into_iter().map(|Text(value)| value).collect())
}

pub(super) fn show<T: Written, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(super) fn show_all<T: Written, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

/// Such a value in a list or a map.
#[derive(Deserialize)]
#[serde(transparent, bound = "T: Written")]
pub(super) struct Text<T>(#[serde(deserialize_with = "text")] pub(super) T);

/// Text, or the value of the variable that `{fromEnv: VARIABLE}` names.
#[derive(Default)]
pub(super) struct TextOrVariable {
    pub(super) text: String,
    pub(super) is_variable: bool,
}

impl<'de> Deserialize<'de> for TextOrVariable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT_OR_VARIABLE, TextOrVariableVisitor)
    }
}

struct TextOrVariableVisitor;

impl<'de> Visitor<'de> for TextOrVariableVisitor {
    type Value = TextOrVariable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOrVariable, E> {
        match text {
            "" => Err(E::custom("is empty")),
            text => Ok(TextOrVariable { text: text.to_owned(), is_variable: false }),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<TextOrVariable, D::Error> {
        Ok(TextOrVariable { text: String::deserialize(value)?, is_variable: true })
    }
}

/// A duration above zero.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = match deserializer.deserialize_any(Scalar("a duration"))? {
        Ok(number) => Err(format!("expected a duration with its unit, like {number}s")),
        Err(text) => quantity::duration(&text),
    };
    match duration.map_err(Error::custom)? {
        Duration::ZERO => Err(Error::custom("must be more than zero")),
        duration => Ok(duration),
    }
}

pub(super) fn show_duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&quantity::written(*duration))
}

/// A size above zero, with its unit or a plain number of bytes.
pub(super) fn size<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let size = deserializer.deserialize_any(Scalar("a size"))?;
    positive(size.or_else(|text| quantity::size(&text)).map_err(Error::custom)?)
}

/// A whole number above zero.
pub(super) fn count<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    positive(number(deserializer, "a whole number")?)
}

/// A port; 0 lets the system choose one.
pub(super) fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let number = number(deserializer, "a port")?;
    u16::try_from(number)
        .map_err(|_| Error::custom(format!("{number} is no port; expected a number from 0 to 65535")))
}

fn number<'de, D: Deserializer<'de>>(deserializer: D, expected: &'static str) -> Result<u64, D::Error> {
    let number = deserializer.deserialize_any(Scalar(expected))?;
    number.map_err(|text| Error::invalid_type(Unexpected::Str(&text), &expected))
}

fn positive<T: TryFrom<u64>, E: Error>(number: u64) -> Result<T, E> {
    match T::try_from(number) {
        Ok(_) if number == 0 => Err(E::custom("must be more than zero")),
        Ok(number) => Ok(number),
        Err(_) => Err(E::custom(format!("{number} is too large"))),
    }
}

/// A number, or else text; the words say what is expected.
struct Scalar(&'static str);

impl Visitor<'_> for Scalar {
    type Value = Result<u64, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Ok(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Err(text.to_owned()))
    }
}

/// Reads a map whose keys are parsed; two keys that mean the same are a mistake.
pub(super) fn map<'de, K: Ord, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    parse: fn(&str) -> Result<K, String>,
) -> Result<BTreeMap<K, V>, D::Error> {
    deserializer.deserialize_map(MapVisitor(parse, PhantomData))
}

struct MapVisitor<K, V>(fn(&str) -> Result<K, String>, PhantomData<V>);

impl<'de, K: Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<BTreeMap<K, V>, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            let key = (self.0)(&key).and_then(|key| match map.contains_key(&key) {
                true => Err("another key names the same".to_owned()),
                false => Ok(key),
            });
            let (key, value) = entries.next_value_seed(Entry(key, PhantomData))?;
            map.insert(key, value);
        }
        Ok(map)
    }
}

/// The value of a key. A key that is wrong is told of its value, so that it is taken out alone.
struct Entry<K, V>(Result<K, String>, PhantomData<V>);

impl<'de, K, V: Deserialize<'de>> DeserializeSeed<'de> for Entry<K, V> {
    type Value = (K, V);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(K, V), D::Error> {
        let key = self.0.map_err(Error::custom)?;
        Ok((key, V::deserialize(deserializer)?))
    }
}
