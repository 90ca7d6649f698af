//! How methods, numbers of submitters and CPUs are written, in flags and in experiment files.

use super::plan::{MOST_SUBMITTERS, Method};
use crate::elided_list::distinct;
use crate::placement::Place;

/// Most numbers of submitters in one measurement.
const MOST_NUMBERS: usize = 64;
/// The word for a CPU that the scheduler chooses.
const ANY: &str = "any";

/// Numbers of submitters, ascending: `4`, `1,2,4` or `1..8`.
///
/// # Errors
/// What was expected.
pub fn submitters(text: &str) -> Result<Vec<u32>, String> {
    let expected = || format!("expected numbers from 1 to {MOST_SUBMITTERS}, as 4, 1,2,4 or 1..8");
    let number = |text: &str| {
        let number = text.parse().ok().filter(|number| (1..=MOST_SUBMITTERS).contains(number));
        number.ok_or_else(expected)
    };
    let mut found = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
                found.extend(from..=to);
                if from > to {
                    return Err(expected());
                }
            }
            None => found.push(number(part)?),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.len() > MOST_NUMBERS { Err(format!("at most {MOST_NUMBERS} numbers")) } else { Ok(found) }
}

/// Methods, each once: names separated by commas, `own` or `shared`.
///
/// # Errors
/// What was expected.
pub fn methods(text: &str) -> Result<Vec<Method>, String> {
    let mut found: Vec<Method> = Vec::new();
    for name in text.split(',') {
        let named = match name {
            "own" => Method::OWN.to_vec(),
            "shared" => Method::SHARED.to_vec(),
            name => vec![Method::named(name).ok_or_else(|| {
                let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
                format!("expected {}, own, or shared", names.join(", "))
            })?],
        };
        found.extend(named);
    }
    Ok(distinct(found))
}

/// CPUs in the order given: `0,2-3`.
///
/// # Errors
/// What was expected.
pub fn cpus(text: &str) -> Result<Vec<u32>, String> {
    match Place::parse(text) {
        Ok(Place::Cpus(cpus)) => Ok(cpus),
        Ok(_) | Err(_) => Err("expected a list of CPUs, as 0,2-3".to_owned()),
    }
}

/// CPUs of a thread, one after the other, each once: `any,0,1`; `None` is `any`.
///
/// # Errors
/// What was expected.
pub fn task_cpus(text: &str) -> Result<Vec<Option<u32>>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let named = if part == ANY {
            vec![None]
        } else {
            let expected = |_| format!("expected CPUs or {ANY}, as {ANY},0,1");
            cpus(part).map_err(expected)?.into_iter().map(Some).collect()
        };
        found.extend(named);
    }
    Ok(distinct(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_lists_and_ranges() {
        assert_eq!(submitters("1..4,16,2"), Ok(vec![1, 2, 3, 4, 16]));
        for wrong in ["", "0", "4..1", "1..", "2000", "1..2000", "a", "1..100"] {
            assert!(submitters(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn methods_are_named_once() {
        assert_eq!(methods("gso,sendto,gso"), Ok(vec![Method::Gso, Method::Sendto]));
        assert_eq!(methods("own,lock").map(|methods| methods.len()), Ok(5));
        assert!(methods("sendfile").unwrap_err().contains("sendmmsg"));
    }

    #[test]
    fn a_task_has_cpus_or_none() {
        assert_eq!(task_cpus("any,1,0-1"), Ok(vec![None, Some(1), Some(0)]));
        for wrong in ["", "any,", "other", "-1"] {
            assert!(task_cpus(wrong).unwrap_err().contains("any,0,1"), "{wrong}");
        }
    }
}
