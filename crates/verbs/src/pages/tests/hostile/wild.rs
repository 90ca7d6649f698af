//! The deserializer that returns wrong values. It knows the type of a field, but not its name.

use super::Fate;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// A value that may be replaced by a wrong one.
#[derive(Clone, Copy)]
pub(super) struct Wild<'a> {
    pub(super) value: &'a Value,
    pub(super) fate: &'a Fate,
}

impl<'a> Wild<'a> {
    fn of(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    fn fields(self, may_lack: bool) -> impl Iterator<Item = (&'a str, Self)> {
        let fields = self.value.as_object().into_iter().flatten();
        let fields = fields.filter(move |_| !(may_lack && self.fate.bends()));
        fields.map(move |(name, value)| (name.as_str(), self.of(value)))
    }
}

struct List<I>(I);

impl<'de, 'a, I: Iterator<Item = Wild<'a>>> SeqAccess<'de> for List<I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|value| seed.deserialize(value)).transpose()
    }
}

/// The name of a field, or a number such as that of a CPU.
struct Key<'a>(&'a str);

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.parse().map_err(Error::custom).and_then(|number| visitor.visit_u32(number))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Fields<'a, I>(I, Option<Wild<'a>>);

impl<'de, 'a, I: Iterator<Item = (&'a str, Wild<'a>)>> MapAccess<'de> for Fields<'a, I> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let next = self.0.next();
        self.1 = next.map(|(_, value)| value);
        next.map(|(name, _)| seed.deserialize(Key(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.1.unwrap())
    }
}

/// A variant, by name, and its contents.
struct Variant<'a>(&'a str, Wild<'a>);

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Error;
    type Variant = Wild<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Wild<'a>), Error> {
        let name: StrDeserializer<Error> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Wild<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.deserialize_struct("", names, visitor)
    }
}

impl<'de> Deserializer<'de> for Wild<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(_) => self.deserialize_bool(visitor),
            // The head of a finding is flattened, so its parts are read without their types: they may be of 32 bits, or of an enum.
            Value::Number(number) if number.is_u64() => self.deserialize_u32(visitor),
            Value::String(word)
                if word.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()) && !word.starts_with("text") =>
            {
                visitor.visit_str(word)
            }
            Value::Number(number) if number.is_i64() => number.deserialize_any(visitor).map_err(Error::custom),
            Value::Number(_) => self.deserialize_f64(visitor),
            Value::String(_) => self.deserialize_string(visitor),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => visitor.visit_map(Fields(self.fields(false), None)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.fate.bends() != self.value.as_bool().unwrap_or(false))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.fate.number(self.value))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.fate.count(self.value, u64::MAX))
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.fate.count(self.value, u64::from(u32::MAX)))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.fate.text(self.value.as_str().unwrap_or_default()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() || self.fate.bends() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let values = self.value.as_array().map_or([].as_slice(), Vec::as_slice);
        let length = values.len() as u64;
        let wild = || self.fate.one_of(&[0, 1, 2, length + 1, (length * 8).min(1000)]);
        let length = if self.fate.bends() { wild() } else { length };
        visitor.visit_seq(List(values.iter().cycle().take(length as usize).map(|value| self.of(value))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(List(self.value.as_array().into_iter().flatten().map(|value| self.of(value))))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // A finding, a cell, a point, what changed, a phase and a job have all their fields.
        let is_whole =
            ["schema", "arm", "submitters", "detected", "wall_seconds"].iter().any(|key| self.value.get(key).is_some());
        visitor.visit_map(Fields(self.fields(!is_whole), None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields(self.fields(false), None))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let inside = self.value.as_object().and_then(|object| object.iter().next());
        match inside {
            Some((name, inside)) => visitor.visit_enum(Variant(name, self.of(inside))),
            None => {
                let name = self.value.as_str().unwrap_or_default();
                visitor.visit_enum(Variant(if self.fate.bends() { self.fate.one_of(names) } else { name }, self))
            }
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 f32 char str bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}
