//! Every option accepts its valid example and refuses its invalid one.

use super::*;
use crate::plan::ENGINES;

#[test]
fn every_option_accepts_its_valid_and_refuses_its_invalid_example() {
    for option in all() {
        let mut draft = Draft::default();
        assert_eq!(option.apply(&mut draft, Some(option.example)), Ok(()), "{}", option.name);
        let changes = draft != Draft::default();
        assert_eq!(changes, option.has_effect(), "{} {changes}", option.name);

        let mut draft = Draft::default();
        let wrong = option.apply(&mut draft, Some(option.bad_example)).expect_err(option.name);
        let mend = format!("for example {}={}", option.name, option.example);
        assert!(wrong.reason.contains("; expected ") && wrong.reason.ends_with(&mend), "{}", wrong.reason);
        assert_eq!(draft, Draft::default(), "{} was refused and changed the job", option.name);
    }
}

#[test]
fn giving_the_default_changes_nothing() {
    for option in all() {
        // A row that forgets its default has that of all rows.
        assert!(!matches!(option.default, Default::Required) || !option.engines.is_empty(), "{}", option.name);
        let Default::Is(value) = option.default else { continue };
        let mut draft = Draft::default();
        assert_eq!(option.apply(&mut draft, Some(value)), Ok(()), "{}", option.name);
        // `buffered` and `direct` also note which of the two was given.
        draft.cache = Draft::default().cache;
        assert_eq!(draft, Draft::default(), "{}={value}", option.name);
    }
}

#[test]
fn a_value_that_is_shown_can_be_given_again_and_means_the_same() {
    let mut shown = 0;
    for option in all() {
        for text in [option.example].into_iter().chain(match option.default {
            Default::Is(default) => Some(default),
            Default::Words(_) | Default::Required => None,
        }) {
            let mut draft = Draft::default();
            assert_eq!(option.apply(&mut draft, Some(text)), Ok(()), "{}={text}", option.name);
            let Some(value) = (option.get)(&draft.job) else { continue };
            let mut again = Draft::default();
            assert_eq!(option.apply(&mut again, Some(&value)), Ok(()), "{}={value}", option.name);
            assert_eq!(again, draft, "{}={text} is shown as {value}", option.name);
            shown += 1;
        }
    }
    assert!(shown > 80, "{shown}");
    // Whatever defines the work is shown, once it is given.
    for option in all().filter(|option| option.has_effect() && option.role != Role::Other) {
        let mut draft = Draft::default();
        assert_eq!(option.apply(&mut draft, Some(option.example)), Ok(()), "{}", option.name);
        let found = super::shown(&draft.job, &[]);
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [option.name]);
    }
}

#[test]
fn only_switches_and_names_of_logs_work_without_a_value() {
    for option in all() {
        let outcome = option.apply(&mut Draft::default(), None);
        let may_be_empty = matches!(option.set, Value::Name(..));
        assert_eq!(outcome.is_err(), option.takes_value() && !may_be_empty, "{}", option.name);
        assert_eq!(option.apply(&mut Draft::default(), Some("")).is_err(), !may_be_empty, "{}", option.name);
    }
    assert!(!find("time_based").is_some_and(JobOption::takes_value));
    assert!(find("direct").is_some_and(JobOption::takes_value));
}

#[test]
fn every_name_is_unique_and_found() {
    let ours: Vec<_> = all().flat_map(JobOption::names).collect();
    let refused: Vec<_> = fio_names::REFUSED.iter().flat_map(fio_names::Refused::names).collect();
    let unique: std::collections::BTreeSet<_> = ours.iter().chain(&refused).collect();
    assert_eq!(unique.len(), ours.len() + refused.len());
    for name in ours.into_iter().chain(fio_names::OWN.split_whitespace()) {
        assert!(find(name).is_some_and(|option| option.names().any(|known| known == name)), "{name}");
    }
    for name in &refused {
        let wrong = unknown(name);
        assert!(wrong.suggestion.is_none() && wrong.reason.starts_with("known to fio, not supported"), "{name}");
    }
    assert_eq!(of_fio().iter().filter(|(_, what)| matches!(what, OfFio::Refused(_))).count(), refused.len());
    assert!(of_fio().contains(&("readwrite", OfFio::Supported("rw"))));
}

#[test]
fn unknown_options_differ_from_unsupported_options_of_fio() {
    let wrong = unknown("iodepht");
    assert_eq!((wrong.reason.as_str(), wrong.suggestion.as_deref()), ("unknown", Some("iodepth")));
    let wrong = unknown("uid");
    assert_eq!(wrong.reason, "known to fio, not supported; start iotoll as that user, or in that control group");
    assert!(unknown("stats").reason.starts_with("known to fio, not supported (no I/O depends on it); each"));
    for name in fio_names::ENGINES.split_whitespace().filter(|name| choice::<EngineKind>(name).is_err()) {
        let wrong = engine(name).expect_err(name);
        assert!(wrong.suggestion.is_none() && wrong.reason.contains("is an engine of fio"), "{name}");
    }
    assert_eq!(engine("psnyc").expect_err("misspelled").suggestion.as_deref(), Some("psync"));
}

#[test]
fn help_names_the_engine_and_the_default() {
    let help = |name| reference().find(|option| option.name == name).map(JobOption::full_help).unwrap_or_default();
    assert_eq!(help("bs"), "Block size of the I/O [default: 4k]");
    assert_eq!(help("spin_cycles"), "Engine spin: burn this many ticks of the time-stamp counter for each I/O");
    assert!(help("tx_task_cpus").starts_with("Engine nbd: CPUs of"), "{}", help("tx_task_cpus"));
}

#[test]
fn the_reference_says_units_and_ranges() {
    let takes = |name| reference().find(|option| option.name == name).map(JobOption::values).unwrap_or_default();
    assert_eq!(reference().count(), all().filter(|option| option.has_effect()).count());
    assert_eq!(takes("iodepth"), "1 to 65536 I/Os");
    assert_eq!(takes("bs"), "1 to 4194300k bytes (READ,WRITE,TRIM)");
    assert_eq!(takes("size"), "1 to 9223372036854775807 bytes, or 1 to 200%");
    assert_eq!(takes("thinktime"), "microseconds, or a time in us, ms, s, m, h or d, up to 365d");
    assert_eq!(takes("direct"), "1 or 0");
    assert!(takes("cpus_allowed").ends_with(&format!("0 to {}", value::LARGEST_CPU)));
    assert!(takes("percentile_list").starts_with(&format!("up to {} percentiles", value::MOST_PERCENTILES)));
    let engines = ENGINES.each_ref().map(|engine| engine.name).join(", ");
    assert_eq!(takes("ioengine"), format!("one of {engines}"));
}
