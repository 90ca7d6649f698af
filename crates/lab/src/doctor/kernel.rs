//! Extra work of the kernel: mitigations and self-checks.

use super::MachineView;
use crate::host::{kernel_config, vulnerabilities};
use model::doctor::{Check, State, Topic};

/// Which mitigations are on. They are never wrong; they are part of what is measured.
pub(super) fn mitigations(view: &MachineView) -> Check {
    let topic = Topic::Mitigations;
    let known = vulnerabilities(view.root);
    if known.is_empty() {
        return view.unseen(
            topic,
            "show the guest its CPU's vulnerabilities",
            "the kernel is too old to list them (4.15)",
        );
    }
    let names = |mark: &str| -> Vec<&str> {
        known.iter().filter(|(_, status)| status.starts_with(mark)).map(|(name, _)| name.as_str()).collect()
    };
    let (active, open) = (names("Mitigation"), names("Vulnerable"));
    let open = if open.is_empty() { String::new() } else { format!("; not mitigated: {}", open.join(", ")) };
    if active.is_empty() {
        return Check::new(topic, State::Good, format!("none active{open}"));
    }
    Check::new(topic, State::Note, format!("{} active: {}{open}", active.len(), active.join(", ")))
        .mend("to see their cost, boot with mitigations=off, on a machine that runs only your own code")
}

/// Options that cost CPU time on every path, from lib/Kconfig.debug and its neighbours; off in most distribution
/// kernels, on in the debugging kernels that developers measure with (seed 000).
const COSTLY: [&str; 19] = [
    "KASAN",
    "KCSAN",
    "KMSAN",
    "PROVE_LOCKING",
    "LOCKDEP",
    "LOCK_STAT",
    "PROVE_RCU",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "DEBUG_VM",
    "DEBUG_PREEMPT",
    "DEBUG_SG",
    "DMA_API_DEBUG",
    "GCOV_KERNEL",
];

/// Boot parameters that turn on such checks if the kernel has them built in.
const COSTLY_WORDS: [&str; 5] = ["debug_pagealloc=on", "page_poison=1", "slub_debug", "slab_debug", "kmemleak=on"];

/// Whether the kernel runs costly self-checks.
pub(super) fn debugging(view: &MachineView) -> Check {
    let topic = Topic::KernelDebugging;
    let command_line = view.root.text("proc/cmdline").unwrap_or_default();
    let asked = |word: &&&str| command_line.split_whitespace().any(|given| is_word(given, word));
    let words: Vec<_> = COSTLY_WORDS.iter().filter(asked).map(|word| (*word).to_owned()).collect();
    let config = kernel_config(view.root);
    let options = config.as_deref().map(costly_options).unwrap_or_default();
    let found: Vec<_> = options.iter().map(|option| format!("CONFIG_{option}")).chain(words).collect();
    match (found.is_empty(), config.is_some()) {
        (false, _) => Check::new(topic, State::Poor, found.join(", "))
            .mend("boot a kernel built without them, such as a distribution's, for numbers to publish"),
        (true, true) => Check::new(topic, State::Good, "none of the costly checks is built in"),
        (true, false) => Check::new(topic, State::Unknown, "the kernel's configuration was not found")
            .mend(format!("run modprobe configs, or copy it to /boot/config-{}", view.host.kernel)),
    }
}

/// `slub_debug` may also have a value: `slub_debug=FZ`.
fn is_word(given: &str, word: &str) -> bool {
    given == word || given.strip_prefix(word).is_some_and(|rest| rest.starts_with('='))
}

fn costly_options(config: &str) -> Vec<&'static str> {
    let on = |option: &&str| {
        config.lines().any(|line| line.strip_prefix("CONFIG_").and_then(|line| line.strip_prefix(option)) == Some("=y"))
    };
    COSTLY.into_iter().filter(on).collect()
}
