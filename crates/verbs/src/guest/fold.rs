//! Names of functions made comparable between two kernels: clones of the compiler folded into their function, functions
//! grouped by subsystem.

/// Marks after which a compiler or a linker names a clone, a part or a copy of a function.
const CLONES: [&str; 6] = [".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"];
/// The end of a name since Linux 6.10: the function itself, behind a macro that profiles allocations.
const BEHIND_MACRO: &str = "_noprof";

/// The function that a clone of the compiler belongs to: `f.isra.0`, `f.constprop.0`, `f.part.0`, `f.cold`, `f.llvm.123` and
/// `f_noprof` are `f`.
pub(super) fn function(symbol: &str) -> &str {
    let begins = |mark: &&str| {
        let mut places = symbol.match_indices(*mark).map(|(place, _)| place);
        // A whole word: `.part` is not in `.partition`.
        let whole = |rest: &str| rest.is_empty() || rest.starts_with('.');
        places.find(|place| symbol.get(place + mark.len()..).is_some_and(whole))
    };
    let end = CLONES.iter().filter_map(begins).min().unwrap_or(symbol.len());
    let name = symbol.get(..end).unwrap_or(symbol);
    let name = name.strip_suffix(BEHIND_MACRO).unwrap_or(name);
    if name.is_empty() { symbol } else { name }
}

/// Whether a symbol is a part of a function that the function itself enters: its entries are no calls of the function.
pub(super) fn is_part(symbol: &str) -> bool {
    [".part", ".cold"].iter().any(|mark| {
        let rest = symbol.split_once(mark).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The subsystem of a function, if it is one that is grouped.
pub(super) fn subsystem(function: &str, module: Option<&str>) -> Option<&'static str> {
    let lines = include_str!("fold/subsystems.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once(": "));
    let fits = |(head, words): (&'static str, &'static str)| {
        let mut words = words.split(' ');
        match head.strip_suffix(" modules") {
            Some(name) => words.any(|name| Some(name) == module).then_some(name),
            None => words.any(|begin| function.starts_with(begin)).then_some(head),
        }
    };
    rows.filter_map(fits).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_the_compiler_are_folded() {
        for (symbol, name) in [
            ("tcp_sendmsg", "tcp_sendmsg"),
            ("tcp_v4_rcv.isra.0", "tcp_v4_rcv"),
            ("f.constprop.0.isra.3", "f"),
            ("blk_mq_submit_bio.cold", "blk_mq_submit_bio"),
            (".cold", ".cold"),
            ("submit.llvm.8213412", "submit"),
            ("find_slot.part.0.isra.0.cold", "find_slot"),
            ("kmem_cache_alloc_noprof", "kmem_cache_alloc"),
            ("__kmalloc_noprof.constprop.0", "__kmalloc"),
            ("disk.partition", "disk.partition"),
            ("_noprof", "_noprof"),
        ] {
            assert_eq!(function(symbol), name);
        }
    }

    #[test]
    fn functions_belong_to_subsystems_by_module_first() {
        assert_eq!(subsystem("do_task", Some("rdma_rxe")), Some("rxe (soft RoCE)"));
        assert_eq!(subsystem("tcp_sendmsg", None), Some("network"));
        assert_eq!(subsystem("tcp_sendmsg", Some("nvme_tcp")), Some("NVMe"));
        assert_eq!(subsystem("__schedule", None), Some("scheduler"));
        assert_eq!(subsystem("zzz", None), None);
    }
}
