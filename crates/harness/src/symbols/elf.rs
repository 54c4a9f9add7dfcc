//! The functions in an ELF file, by their place in the file.

use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::Function;

/// A larger file is not read: ours has tens of MiB, with its line tables.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Functions with their offsets in the file; none where it is no ELF file, or
/// cannot be read, such as `[vdso]`.
pub(super) fn functions(path: &Path) -> Vec<Function> {
    let is_small = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= FILE_BYTES_MAX)
    };
    let bytes = if is_small(path) { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    // A symbol has a virtual address; a mapping tells offsets in the file.
    let segments: Vec<(u64, u64, u64)> = file
        .segments()
        .map(|segment| (segment.address(), segment.size(), segment.file_range().0))
        .collect();
    let offset = |address: u64| {
        let inside = |(start, bytes, _): &&(u64, u64, u64)| {
            address.checked_sub(*start).is_some_and(|at| at < *bytes)
        };
        segments.iter().find(inside).map(|(start, _, offset)| address - start + offset)
    };
    let function = |symbol: object::Symbol<'_, '_>| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let name = symbol.name().ok().filter(|_| is_function)?;
        // Without its hash, which says nothing to a reader.
        let name = format!("{:#}", rustc_demangle::demangle(name));
        Some(Function { start: offset(symbol.address())?, bytes: symbol.size(), name })
    };
    file.symbols().chain(file.dynamic_symbols()).filter_map(function).collect()
}
