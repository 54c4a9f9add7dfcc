//! Arbitrary runs: every field takes every kind of value it can have, apart from counts above
//! 2^63, which the store refuses (see `refusal`). Types are asked for their fields by way of serde,
//! so that none is forgotten, of whatever study.

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::{Cell, Setting, SyscallSetting};
use iolens_model::outcome::{Counts, SliceOutcome, TrialOutcome};
use iolens_model::plan::{Axes, Plan, SyscallAxes};
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Bytes;
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::Error;

/// A run with up to three trials, ended or not.
pub(crate) fn run() -> impl Strategy<Value = Run> {
    Just(()).prop_perturb(|(), mut random| {
        let random = &mut random;
        Run {
            header: header(random),
            trials: several(random, trial),
            profiles: several(random, any),
            searches: several(random, any),
        }
    })
}

/// A value of any type that serde can read.
fn any<T: DeserializeOwned>(random: &mut TestRng) -> T {
    let value = T::deserialize(Any { random, words: &[], most: u64::MAX });
    value.expect("each of its fields is of a kind that is known here")
}

fn below(random: &mut TestRng, end: usize) -> usize {
    usize::try_from(random.next_u32()).expect("32 bits") % end
}

fn is_heads(random: &mut TestRng) -> bool {
    below(random, 2) == 0
}

fn several<T>(random: &mut TestRng, one: fn(&mut TestRng) -> T) -> Vec<T> {
    (0..below(random, 4)).map(|_| one(random)).collect()
}

/// Its id and start have columns, which hold less than any text and number.
fn header(random: &mut TestRng) -> RunHeader {
    RunHeader {
        id: format!("{:08x}", random.next_u32()),
        started_unix_ns: random.next_u64() >> 1,
        origin: None,
        // No study but `ab` is without.
        calibration: Some(any(random)),
        ..any(random)
    }
}

fn plan(random: &mut TestRng) -> Plan {
    let axes = match below(random, 6) {
        0 => Axes::Net(any(random)),
        1 => Axes::Syscall(SyscallAxes {
            in_a_row: any(random),
            file: any(random),
            external: Vec::new(),
        }),
        2 => Axes::File(any(random)),
        3 => Axes::Write(any(random)),
        4 => Axes::Copy(any(random)),
        _ => Axes::Server(any(random)),
    };
    Plan {
        axes,
        primitives: any(random),
        baseline: any(random),
        sizes: any(random),
        threads: any(random),
        schedule: any(random),
        passes: any(random),
        budget: any(random),
        precision: any(random),
        delta: any(random),
        quick: any(random),
        isolate: any(random),
        seed: any(random),
        cpus: any(random),
        probes: any(random),
    }
}

fn cell(random: &mut TestRng) -> Cell {
    let (threads, size) = (any(random), any(random));
    match below(random, 6) {
        0 => Cell { setting: Setting::Net(any(random)), threads, size },
        1 => Cell { setting: Setting::File(any(random)), threads, size },
        2 => Cell { setting: Setting::Write(any(random)), threads, size },
        3 => Cell { setting: Setting::Copy(any(random)), threads, size },
        4 => Cell { setting: Setting::Server(any(random)), threads, size: Bytes(0) },
        _ => {
            let setting = Setting::Syscall(SyscallSetting { in_a_row: any(random) });
            Cell { setting, threads, size }
        }
    }
}

fn trial(random: &mut TestRng) -> TrialOutcome {
    let arms: Vec<ArmOutcome> = any(random);
    // As positions in a trial: rising, with gaps where slices only warmed.
    let numbers = (0..).step_by(3).take(if arms.is_empty() { 0 } else { below(random, 7) });
    let slices = numbers.map(|seq| slice(random, seq, arms.len())).collect();
    TrialOutcome {
        pass: any(random),
        position: any(random),
        isolated: any(random),
        cell: cell(random),
        started_unix_ns: any(random),
        duration_ns: any(random),
        status: any(random),
        reason: any(random),
        arms,
        slices,
        environment: any(random),
        far_environment: any(random),
        tx: any(random),
        rx: any(random),
    }
}

fn slice(random: &mut TestRng, seq: u32, arms: usize) -> SliceOutcome {
    let (rx, calls): (Option<Counts>, u64) = (any(random), random.next_u64() >> 1);
    SliceOutcome {
        seq,
        arm: below(random, arms),
        all_active_ns: random.next_u64() >> 1,
        // Only the sender may be a program, and a program's calls are not counted.
        rx: rx.map(|rx| Counts { calls: Some(calls), ..rx }),
        ..any(random)
    }
}

/// Texts that only some fields take.
const WORDS: [(&str, &[&str]); 5] = [
    ("ring_flags", &["none", "coop_taskrun", "single_issuer+defer_taskrun", "sqpoll+fixed_file"]),
    ("load", LOADS),
    ("loads", LOADS),
    ("slo", &["p50<1ns", "p99<2ms"]),
    // A line of a file of stacks.
    ("folded", &["", "main;send;µ", "a b;c'\""]),
];

const LOADS: &[&str] = &["closed", "1%", "100%", "searched"];

const TEXTS: [&str; 5] = ["", "send", "µ\u{10ffff}", "a\nb\0c'\"", "\\ / 7"];

/// What answers to every question of serde with some value.
struct Any<'r> {
    random: &'r mut TestRng,
    /// Texts that may be given; none for all.
    words: &'static [&'static str],
    /// Numbers that may be given.
    most: u64,
}

impl Any<'_> {
    fn again(&mut self) -> Any<'_> {
        Any { random: self.random, words: self.words, most: self.most }
    }

    fn number(&mut self, bits: u32) -> u64 {
        let most = (u64::MAX >> (64 - bits)).min(self.most);
        match below(self.random, 4) {
            0 => most,
            1 => below(self.random, 10) as u64,
            _ => self.random.next_u64() & most,
        }
    }

    fn float(&mut self) -> f64 {
        loop {
            let number = f64::from_bits(self.random.next_u64());
            if number.is_finite() {
                return number;
            }
        }
    }

    fn text(&mut self) -> &'static str {
        let words = if self.words.is_empty() { &TEXTS } else { self.words };
        words[below(self.random, words.len())]
    }
}

/// Answers with a number that has so many bits.
macro_rules! numbers {
    ($($ask:ident $bits:literal,)+) => {
        $(fn $ask<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_u64(self.number($bits))
        })+
    };
}

impl<'de> Deserializer<'de> for Any<'_> {
    type Error = Error;

    numbers! { deserialize_u8 8, deserialize_u32 32, deserialize_u64 64, }

    fn deserialize_i32<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(self.number(32).cast_signed() - (1 << 31))
    }

    /// Addresses are numbers, and need no text that is one.
    fn is_human_readable(&self) -> bool {
        false
    }

    /// What is a number or nothing, as `RingDepth`.
    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        match is_heads(self.random) {
            true => visitor.visit_unit(),
            false => visitor.visit_u64(self.number(32)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(is_heads(self.random))
    }

    fn deserialize_f64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.float())
    }

    fn deserialize_string<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match is_heads(self.random) {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = below(self.random, 4);
        self.deserialize_tuple(left, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Parts { any: self, left, fields: &[], field: "" })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Counts are columns.
        let most = if name == "Counts" { u64::MAX >> 1 } else { self.most };
        visitor.visit_map(Parts { any: Any { most, ..self }, left: 0, fields, field: "" })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(Chosen { at: below(self.random, variants.len()), any: self })
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i64 i128 u16 u128 f32 char str bytes byte_buf unit unit_struct map tuple_struct
        identifier ignored_any
    }
}

/// Values of a list, or fields of a struct.
struct Parts<'r> {
    any: Any<'r>,
    left: usize,
    fields: &'static [&'static str],
    field: &'static str,
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(self.any.again()).map(Some)
    }
}

impl<'de> MapAccess<'de> for Parts<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((field, rest)) = self.fields.split_first() else { return Ok(None) };
        (self.field, self.fields) = (field, rest);
        seed.deserialize(StrDeserializer::<Error>::new(field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        // What is written flat does not say what it has.
        match self.field {
            "cell" => return seed.deserialize(serde_json::to_value(cell(self.any.random))?),
            "plan" => return seed.deserialize(serde_json::to_value(plan(self.any.random))?),
            _ => {}
        }
        let words = WORDS.iter().find(|(field, _)| *field == self.field);
        self.any.words = words.map_or(&[], |(_, words)| words);
        seed.deserialize(self.any.again())
    }
}

/// A variant of an enum.
struct Chosen<'r> {
    at: usize,
    any: Any<'r>,
}

impl<'de, 'r> EnumAccess<'de> for Chosen<'r> {
    type Error = Error;
    type Variant = Any<'r>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Any<'r>), Error> {
        let at: U32Deserializer<Error> =
            u32::try_from(self.at).map_err(Error::custom)?.into_deserializer();
        Ok((seed.deserialize(at)?, self.any))
    }
}

impl<'de> VariantAccess<'de> for Any<'_> {
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

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
