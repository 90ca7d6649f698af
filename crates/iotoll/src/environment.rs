//! What job files may refer to: variables of the environment, and fio's keywords, which are facts of this machine.

/// The value of the variable or keyword `name`.
pub fn value(name: &str) -> Option<String> {
    match name {
        "$pagesize" => Some(rustix::param::page_size().to_string()),
        "$ncpus" => Some(configured_cpus()?.to_string()),
        "$mb_memory" => memory_mebibytes().map(|megabytes| megabytes.to_string()),
        name => std::env::var(name).ok(),
    }
}

/// As in fio, offline CPUs too.
fn configured_cpus() -> Option<usize> {
    let is_cpu = |name: &str| {
        name.strip_prefix("cpu")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let entries = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let cpus = entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_cpu)));
    Some(cpus.count()).filter(|cpus| *cpus > 0)
}

/// As in fio, the physical memory.
fn memory_mebibytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::parse::KEYWORDS;

    #[test]
    fn every_keyword_has_a_value() {
        for keyword in KEYWORDS {
            let number = value(keyword).and_then(|text| text.parse::<u64>().ok());
            assert!(number.is_some_and(|number| number > 0), "{keyword}");
        }
        assert_eq!(value("$other"), None);
    }
}
