//! Copies bytes that other threads may access at the same time, with a choice of methods.

/// Copy method. Which is cheapest depends on the processor, the number of bytes, and who uses them next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Sixteen bytes at a time, through the caches.
    Plain,
    /// The processor's own copy loop (`rep movsb`).
    #[default]
    RepMovsb,
    /// Bypasses the caches with non-temporal prefetches and stores (`prefetchnta`, `movnti`).
    NonTemporal,
}

/// Bytes per iteration of the loops below.
#[cfg(target_arch = "x86_64")]
const ROUND: usize = 64;

/// Copies bytes that other threads may change at the same time. Inline assembly is opaque to the compiler, so this is
/// not a data race in its model.
///
/// # Safety
/// Both ranges are valid for `count` bytes and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn copy(how: Copying, into: *mut u8, from: *const u8, count: usize) {
    let looped = if how == Copying::RepMovsb { 0 } else { count / ROUND * ROUND };
    if looped > 0 {
        // SAFETY: guaranteed by the caller; the loops cover the first `looped` bytes, which is a positive multiple of a
        // round, and the prefetch beyond them is a hint that accesses nothing.
        unsafe {
            match how {
                Copying::NonTemporal => past_caches(into, from, looped),
                Copying::Plain | Copying::RepMovsb => through_caches(into, from, looped),
            }
        }
    }
    // SAFETY: guaranteed by the caller, for the rest; the direction flag is clear on entry, as the ABI requires.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") count - looped => _,
            inout("rdi") into.wrapping_add(looped) => _,
            inout("rsi") from.wrapping_add(looped) => _,
            options(nostack, preserves_flags)
        );
    }
}

/// A loop over rounds: moves `$count` bytes from `$from` to `$into` through registers `a` to `d` of a class.
#[cfg(target_arch = "x86_64")]
macro_rules! rounds {
    ($into:ident, $from:ident, $count:ident, $class:ident, $($instruction:literal)*) => {
        std::arch::asm!(
            "2:",
            $($instruction,)*
            "add {from}, 64",
            "add {into}, 64",
            "sub {count}, 64",
            "jnz 2b",
            from = inout(reg) $from => _,
            into = inout(reg) $into => _,
            count = inout(reg) $count => _,
            a = out($class) _,
            b = out($class) _,
            c = out($class) _,
            d = out($class) _,
            options(nostack)
        )
    };
}

/// # Safety
/// As for [`copy`]; `count` is a positive multiple of [`ROUND`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn through_caches(into: *mut u8, from: *const u8, count: usize) {
    // SAFETY: guaranteed by the caller. SSE2 is part of x86-64.
    unsafe {
        rounds!(into, from, count, xmm_reg,
            "movups {a}, [{from}]"
            "movups {b}, [{from} + 16]"
            "movups {c}, [{from} + 32]"
            "movups {d}, [{from} + 48]"
            "movups [{into}], {a}"
            "movups [{into} + 16], {b}"
            "movups [{into} + 32], {c}"
            "movups [{into} + 48], {d}");
    }
}

/// # Safety
/// As for [`copy`]; `count` is a positive multiple of [`ROUND`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn past_caches(into: *mut u8, from: *const u8, count: usize) {
    // SAFETY: guaranteed by the caller. SSE2 is part of x86-64. The fence orders the non-temporal stores before later
    // writes.
    unsafe {
        rounds!(into, from, count, reg,
            "prefetchnta [{from} + 512]"
            "mov {a}, [{from}]"
            "mov {b}, [{from} + 8]"
            "mov {c}, [{from} + 16]"
            "mov {d}, [{from} + 24]"
            "movnti [{into}], {a}"
            "movnti [{into} + 8], {b}"
            "movnti [{into} + 16], {c}"
            "movnti [{into} + 24], {d}"
            "mov {a}, [{from} + 32]"
            "mov {b}, [{from} + 40]"
            "mov {c}, [{from} + 48]"
            "mov {d}, [{from} + 56]"
            "movnti [{into} + 32], {a}"
            "movnti [{into} + 40], {b}"
            "movnti [{into} + 48], {c}"
            "movnti [{into} + 56], {d}");
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies bytes that other threads may change at the same time. This architecture has only one method.
///
/// # Safety
/// Both ranges are valid for `count` bytes and do not overlap.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) unsafe fn copy(_: Copying, into: *mut u8, from: *const u8, count: usize) {
    use std::sync::atomic::{AtomicU8, Ordering};
    for place in 0..count {
        // SAFETY: guaranteed by the caller; every byte is accessed as an atomic, so other threads may access it at the
        // same time.
        unsafe {
            let byte = AtomicU8::from_ptr(from.add(place).cast_mut()).load(Ordering::Relaxed);
            AtomicU8::from_ptr(into.add(place)).store(byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_copies_exactly_the_range() {
        let from: Vec<u8> = (0..1000_u32).map(|place| (place * 7) as u8 | 1).collect();
        for how in [Copying::Plain, Copying::RepMovsb, Copying::NonTemporal] {
            for begin in [0, 1, 7] {
                for count in [0, 1, 63, 64, 65, 127, 128, 900] {
                    let mut into = vec![0; 1000];
                    // SAFETY: both are longer than `begin + 3 + count` and do not overlap.
                    unsafe { copy(how, into.as_mut_ptr().add(begin + 3), from.as_ptr().add(begin), count) };
                    assert_eq!(into[begin + 3..][..count], from[begin..][..count], "{how:?} {begin} {count}");
                    assert!(into[..begin + 3].iter().chain(&into[begin + 3 + count..]).all(|byte| *byte == 0));
                }
            }
        }
    }
}
