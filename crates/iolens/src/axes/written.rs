//! How values are written into plan files: as their parsers read them.

use std::net::IpAddr;
use std::path::PathBuf;

use iolens_engine::far::Launcher;
use iolens_engine::perf_control::PerfControl;
use iolens_model::axes::{Counting, Direction, Iovec, IpVersion, Mode, WorkingSet};
use iolens_model::copy::{CopySync, External};
use iolens_model::file::{CacheState, Consumer, Destination, DropMode, Pattern};
use iolens_model::load::{Arrivals, Length};
use iolens_model::plan::Passes;
use iolens_model::search::Slo;
use iolens_model::server::LoadLevel;
use iolens_model::units::{Bytes, Nanos};
use toml::Value;

use crate::args::ProgressKind;
use crate::values::{self, List, Stand};

/// A value of a plan file.
pub(super) trait Written {
    fn written(&self) -> Value;
}

impl<T: Written> Written for List<T> {
    fn written(&self) -> Value {
        Value::Array(self.0.iter().map(Written::written).collect())
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
        $(impl $crate::axes::written::Written for $type {
            fn written(&self) -> toml::Value {
                let text: fn(&$type) -> String = $text;
                toml::Value::String(text(self))
            }
        })+
    };
}

pub(super) use as_text;

as_text! {
    String: String::clone;
    f64: |x| values::written_fraction(*x);
    Bytes: |size| values::written_size(*size);
    Nanos: |span| values::written_span(*span);
    Passes: |passes| values::written_passes(*passes);
    External: values::written_external;
    Stand: |stand| stand.word().to_owned();
    // Completions that are read after so many sends, and calls in a row.
    Option<u32>: |batch| values::written_reap_batch(*batch);
    Option<Bytes>: |size| values::written_size(size.unwrap_or_default());
    Option<u64>: |calls| values::written_burst(*calls);
    Length: |length| values::server::keep_alive_word(*length).to_owned();
    PathBuf: |path| path.display().to_string();
    ProgressKind: |how| how.word().to_owned();
    Arrivals: ToString::to_string;
    CacheState: ToString::to_string;
    Consumer: ToString::to_string;
    CopySync: ToString::to_string;
    Counting: ToString::to_string;
    Destination: ToString::to_string;
    Direction: ToString::to_string;
    DropMode: ToString::to_string;
    Iovec: ToString::to_string;
    IpAddr: ToString::to_string;
    IpVersion: ToString::to_string;
    Launcher: ToString::to_string;
    LoadLevel: ToString::to_string;
    Mode: ToString::to_string;
    Pattern: ToString::to_string;
    PerfControl: ToString::to_string;
    Slo: ToString::to_string;
    WorkingSet: ToString::to_string;
}
