//! How values are written into plan files: as their parsers read them.

use std::net::IpAddr;
use std::path::PathBuf;

use iolens_engine::far::Launcher;
use iolens_engine::perf_control::PerfControl;
use iolens_model::copy::External;
use iolens_model::plan::Passes;
use iolens_model::search::Slo;
use iolens_model::server::LoadLevel;
use iolens_model::tuning::{BusyPoll, RingDepth, RingFlags};
use iolens_model::units::{Bytes, Nanos};
use toml::Value;

use crate::values::{self, List, Named};

/// A value of a plan file.
pub(super) trait Written {
    fn written(&self) -> Value;
}

impl<T: Named> Written for T {
    fn written(&self) -> Value {
        Value::String(self.word().to_owned())
    }
}

impl<T: Written> Written for List<T> {
    fn written(&self) -> Value {
        Value::Array(self.iter().map(Written::written).collect())
    }
}

/// A switch is stated by itself.
impl Written for () {
    fn written(&self) -> Value {
        Value::Boolean(true)
    }
}

impl Written for u32 {
    fn written(&self) -> Value {
        Value::Integer(i64::from(*self))
    }
}

/// TOML's integers have a sign; the largest seeds and counts do not fit.
impl Written for u64 {
    fn written(&self) -> Value {
        i64::try_from(*self).map_or_else(|_| Value::String(self.to_string()), Value::Integer)
    }
}

/// Writes types as text.
macro_rules! as_text {
    ($($type:ty: $text:expr;)+) => {
        $(impl Written for $type {
            fn written(&self) -> Value {
                let text: fn(&$type) -> String = $text;
                Value::String(text(self))
            }
        })+
    };
}

as_text! {
    String: String::clone;
    f64: |x| values::written_fraction(*x);
    BusyPoll: ToString::to_string;
    Bytes: |size| values::written_size(*size);
    Nanos: |span| Nanos::written(*span);
    Passes: |passes| values::written_passes(*passes);
    External: values::server::written_external;
    // Completions that are read after so many sends, and calls in a row.
    Option<u32>: |batch| values::written_reap_batch(*batch);
    Option<Bytes>: |size| values::written_size(size.unwrap_or_default());
    Option<u64>: |calls| values::written_burst(*calls);
    PathBuf: |path| path.display().to_string();
    IpAddr: ToString::to_string;
    Launcher: ToString::to_string;
    LoadLevel: ToString::to_string;
    PerfControl: ToString::to_string;
    RingDepth: ToString::to_string;
    RingFlags: ToString::to_string;
    Slo: ToString::to_string;
}
