//! What runs of `file` store, arbitrarily.

use iolens_model::copy::{CopyAxes, CopySetting, CopySync, External, ProgramStart};
use iolens_model::file::{
    CacheState, Consumer, DestinationFacts, EngineFacts, FileAxes, FileCounts, FileFacts,
    FileSetting, Pattern,
};
use iolens_model::units::{Bytes, Nanos};
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
        // Programs have no depth, and an argument list.
        let program = (!has_depth && is_direct).then(|| vec![id.clone(), summary.clone()]);
        EngineFacts { id, summary, path, is_direct, has_depth, program }
    })
}

prop_compose! {
    pub(super) fn file_facts()(
        (place, size_reason, file_system) in (text(), text(), text()),
        is_ours in any::<bool>(),
        bytes in bytes(),
        first_pass in option::of(count().prop_map(Nanos)),
        warnings in vec(text(), 0..3),
        destination in option::of((text(), text())),
    ) -> FileFacts {
        let destination =
            destination.map(|(place, file_system)| DestinationFacts { place, file_system });
        FileFacts {
            place,
            is_ours,
            bytes,
            size_reason,
            file_system,
            first_pass,
            warnings,
            destination,
        }
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

pub(super) fn copy_setting() -> impl Strategy<Value = CopySetting> {
    (count(), select(CacheState::ALL), select(CopySync::ALL))
        .prop_map(|(block, cache, sync)| CopySetting { block_bytes: Bytes(block), cache, sync })
}

prop_compose! {
    pub(super) fn copy_axes()(
        settings in vec(copy_setting(), 0..3),
        (file, dir) in (option::of(text()), option::of(text())),
        evict in any::<bool>(),
        external in vec((text(), vec(text(), 0..3)), 0..3),
    ) -> CopyAxes {
        CopyAxes {
            block: settings.iter().map(|one| one.block_bytes).collect(),
            cache: settings.iter().map(|one| one.cache).collect(),
            sync: settings.iter().map(|one| one.sync).collect(),
            file,
            dir,
            evict,
            external: external.into_iter().map(|(name, argv)| External { name, argv }).collect(),
        }
    }
}

prop_compose! {
    pub(super) fn program_start()(
        (arm, runs) in any::<(usize, u32)>(),
        [median_ns, min_ns, max_ns] in [count(), count(), count()],
    ) -> ProgramStart {
        ProgramStart { arm, runs, median_ns, min_ns, max_ns }
    }
}
