//! The probes that this machine has, for `--probe list`: what each reads, or why it cannot be read here.

use super::ProbeSet;
use model::probe::{FAMILIES, Family, Instance, Listed, Probe, ROWS};
use model::reading::Reading;

/// Every probe with a fixed name, and each family with its instances on this machine.
pub fn list() -> Vec<Listed> {
    let rows = ROWS.iter().map(|row| {
        let probe = row.probe();
        let meaning = format!("{} ({}, {})", row.meaning, probe.descriptor.unit, probe.descriptor.kind.name());
        let opened = ProbeSet::open(std::slice::from_ref(&probe));
        Listed { name: row.name.to_owned(), meaning: Reading::from(opened.map(|_| meaning)) }
    });
    rows.chain(FAMILIES.iter().flat_map(of_family)).collect()
}

/// The form of a family, then a line for each of its instances.
fn of_family(family: &Family) -> Vec<Listed> {
    let mut found = vec![Listed { name: family.form.to_owned(), meaning: Reading::Taken(family.meaning.to_owned()) }];
    let readable = |name: &str| Probe::parse(name).is_ok_and(|probe| ProbeSet::open(&[probe]).is_ok());
    let line = |begin: String, ends: &[&str]| {
        let there: Vec<&str> = ends.iter().copied().filter(|end| readable(&format!("{begin}{end}"))).collect();
        (!there.is_empty()).then(|| Listed { name: format!("  {begin}…"), meaning: Reading::Taken(there.join(", ")) })
    };
    match family.instances {
        Instance::Any => {}
        Instance::Ends(ends) => found.extend(line(family.prefix.to_owned(), ends)),
        Instance::Folder(folder, ends) => {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort_unstable();
            found.extend(names.iter().filter_map(|name| line(format!("{}{name}.", family.prefix), ends)));
            if names.is_empty() {
                let why = format!("{folder} is empty or missing");
                found.push(Listed { name: format!("  {}", family.prefix), meaning: Reading::Unavailable(why) });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_contains_every_row_and_family() {
        let listed = list();
        let has = |name: &str| listed.iter().any(|line| line.name == name);
        assert!(ROWS.iter().all(|row| has(row.name)) && FAMILIES.iter().all(|family| has(family.form)));
        assert!(has("  softirqs.…"));
        let softirqs = listed.iter().find(|line| line.name == "  softirqs.…").and_then(|line| line.meaning.taken());
        assert!(softirqs.is_some_and(|names| names.contains("net_rx")), "{softirqs:?}");
    }
}
