//! What runs of `file` store, arbitrarily.

use iolens_model::file::{
    CacheState, Consumer, EngineFacts, FileAxes, FileCounts, FileFacts, FileSetting, Pattern,
};
use iolens_model::units::Nanos;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{bytes, count, text};

pub(super) fn file_counts() -> impl Strategy<Value = FileCounts> {
    let found = [(); 3].map(|()| option::of(count()));
    (found, count(), count()).prop_map(|([before, after, device], short_reads, would_block)| {
        FileCounts {
            resident_before_bytes: before,
            resident_after_bytes: after,
            device_bytes: device,
            short_reads,
            would_block,
        }
    })
}

pub(super) fn file_setting() -> impl Strategy<Value = FileSetting> {
    let words = (select(CacheState::ALL), select(Pattern::ALL), select(Consumer::ALL));
    (words, any::<u32>()).prop_map(|((cache, pattern, consumer), depth)| FileSetting {
        cache,
        pattern,
        consumer,
        depth,
    })
}

pub(super) fn engine() -> impl Strategy<Value = EngineFacts> {
    let texts = (text(), text(), text());
    (texts, any::<(bool, bool)>()).prop_map(|((id, summary, path), (is_direct, has_depth))| {
        EngineFacts { id, summary, path, is_direct, has_depth }
    })
}

prop_compose! {
    pub(super) fn file_facts()(
        (place, size_reason, file_system) in (text(), text(), text()),
        is_ours in any::<bool>(),
        bytes in bytes(),
        first_pass in option::of(count().prop_map(Nanos)),
        warnings in vec(text(), 0..3),
    ) -> FileFacts {
        FileFacts { place, is_ours, bytes, size_reason, file_system, first_pass, warnings }
    }
}

prop_compose! {
    pub(super) fn file_axes()(
        settings in vec(file_setting(), 0..3),
        (file, dir) in (option::of(text()), option::of(text())),
        file_bytes in option::of(bytes()),
        evict in any::<bool>(),
    ) -> FileAxes {
        FileAxes {
            cache: settings.iter().map(|one| one.cache).collect(),
            pattern: settings.iter().map(|one| one.pattern).collect(),
            consumer: settings.iter().map(|one| one.consumer).collect(),
            depth: settings.iter().map(|one| one.depth).collect(),
            file,
            dir,
            file_bytes,
            evict,
        }
    }
}
