//! One field of a line of JSON.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use memchr::memchr;
use serde::Deserializer as _;
use serde::de::{Deserialize, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

/// The names of a field and of the objects that it is in.
#[derive(Clone, PartialEq)]
pub struct Field(Vec<String>);

impl Field {
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(pointer) = text.strip_prefix('/') else {
            let names: Vec<_> = text.split('.').map(str::to_owned).collect();
            return match names.iter().any(String::is_empty) {
                true => Err("give a field's name, such as text, or its path, such as user.id".into()),
                false => Ok(Self(names)),
            };
        };
        // RFC 6901
        let name = |text: &str| {
            let has_other = text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
            if has_other { None } else { Some(text.replace("~1", "/").replace("~0", "~")) }
        };
        let names = pointer.split('/').map(name).collect::<Option<_>>();
        names.map(Self).ok_or_else(|| "in a JSON pointer, write ~0 for ~ and ~1 for /".into())
    }

    /// The JSON of the field in a line, or `None` if the line has no such field. Of fields with the same name, the last.
    pub fn find<'a>(&self, line: &'a str) -> Result<Option<&'a str>, Error> {
        let (first, rest) = self.0.split_first().expect("at least one name");
        let mut found = child(line, first)?;
        for name in rest {
            let Some(object) = found else { break };
            found = child(object, name)?;
        }
        Ok(found)
    }
}

/// As a path if there is one, so that a field is recorded as one text.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.0.iter().any(|name| name.is_empty() || name.contains('.') || name.starts_with('/')) {
            return self
                .0
                .iter()
                .try_for_each(|name| write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")));
        }
        f.write_str(&self.0.join("."))
    }
}

/// The JSON of what an object has by this name, or an array in this place.
fn child<'a>(json: &'a str, name: &str) -> Result<Option<&'a str>, Error> {
    let mut reader = Deserializer::from_str(json);
    let found = match json.trim_ascii_start().as_bytes().first() {
        Some(b'{') => reader.deserialize_map(Child(name)),
        Some(b'[') => reader.deserialize_seq(Child(name)),
        _ => IgnoredAny::deserialize(&mut reader).map(|_| None),
    }?;
    reader.end()?;
    Ok(found)
}

struct Child<'n>(&'n str);

impl<'a> Visitor<'a> for Child<'_> {
    type Value = Option<&'a str>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = object.next_key_seed(Name(self.0))? {
            if is_it {
                found = Some(object.next_value::<&RawValue>()?.get());
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let place = self.0.parse().ok().filter(|place: &u32| place.to_string() == self.0);
        let (mut found, mut n) = (None, 0);
        while let Some(value) = array.next_element::<&RawValue>()? {
            found = if place == Some(n) { Some(value.get()) } else { found };
            n = n.saturating_add(1);
        }
        Ok(found)
    }
}

/// Whether a name is this one.
struct Name<'n>(&'n str);

impl<'a> DeserializeSeed<'a> for Name<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'a>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// The text of a JSON value: decoded if it is a string, and as written if it is a number, `true` or `false`. `None` for
/// `null`, objects and arrays.
pub fn text(json: &str) -> Result<Option<Cow<'_, str>>, Error> {
    Ok(match json.as_bytes().first() {
        Some(b'"') if memchr(b'\\', json.as_bytes()).is_none() => Some(json[1..json.len() - 1].into()),
        Some(b'"') => Some(serde_json::from_str::<String>(json)?.into()),
        Some(b'{' | b'[' | b'n') => None,
        _ => Some(json.into()),
    })
}

/// Finds where bytes of a text are in its JSON. Asked in order, it reads the JSON once.
pub struct Places<'a> {
    json: &'a [u8],
    at: usize,
    /// Bytes of the text before `at`.
    decoded: usize,
}

impl<'a> Places<'a> {
    pub fn of(json: &'a str) -> Self {
        Self { json: json.as_bytes(), at: usize::from(json.starts_with('"')), decoded: 0 }
    }

    pub fn range(&mut self, text: Range<usize>) -> Range<usize> {
        self.place(text.start)..self.place(text.end)
    }

    fn place(&mut self, decoded: usize) -> usize {
        while self.decoded < decoded {
            let rest = &self.json[self.at..];
            let left = decoded - self.decoded;
            let plain = memchr(b'\\', &rest[..left]).unwrap_or(left);
            let (n, n_decoded) = if plain > 0 { (plain, plain) } else { escape(rest) };
            self.at += n;
            self.decoded += n_decoded;
        }
        self.at
    }
}

/// The length of an escape in a string that was decoded, and of the UTF-8 that it stands for.
fn escape(json: &[u8]) -> (usize, usize) {
    match json {
        [b'\\', b'u', a, b, c, d, ..] => {
            let unit = [a, b, c, d]
                .iter()
                .fold(0, |unit, &&digit| unit << 4 | char::from(digit).to_digit(16).unwrap_or(0));
            match unit {
                0..0x80 => (6, 1),
                0x80..0x800 => (6, 2),
                0xd800..0xdc00 => (12, 4),
                _ => (6, 3),
            }
        }
        _ => (2, 1),
    }
}
