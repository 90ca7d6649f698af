//! Programs that only start another one: a command is looked through for the program that does the work.

use std::path::Path;

/// A program that only starts another one.
struct Starter {
    program: &'static str,
    /// Letters of its options whose value follows, in the same word or as a word of its own.
    valued: &'static str,
    /// Letters of its options whose value, if there is one, is in the same word.
    attached: &'static str,
    /// Names of long options whose value may be a word of its own, between spaces.
    long_valued: &'static str,
    /// Its own words before the program: priorities, masks, durations.
    own_words: usize,
}

const fn starter(program: &'static str, valued: &'static str, long: &'static str, own: usize) -> Starter {
    Starter { program, valued, attached: "", long_valued: long, own_words: own }
}

/// From their manuals (util-linux 2.38, coreutils 9.1, sudo 1.9, numactl 2.0).
static STARTERS: [Starter; 17] = [
    starter("chrt", "TPD", "sched-runtime sched-period sched-deadline", 1),
    starter("env", "uCS", "unset chdir split-string", 0),
    starter("ionice", "cn", "class classdata", 0),
    starter("nice", "n", "adjustment", 0),
    starter("nohup", "", "", 0),
    Starter { attached: "muinpCUTrw", ..starter("nsenter", "tSGWe", "target setuid setgid wdns env", 0) },
    starter("numactl", "iNmCpPw", "interleave cpunodebind membind physcpubind preferred weighted-interleave", 0),
    starter("prlimit", "", "", 0),
    starter("runuser", "ugGswTP", "user group supp-group shell whitelist-environment", 0),
    starter(
        "setpriv",
        "",
        "ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig selinux-label apparmor-profile",
        0,
    ),
    starter("setsid", "", "", 0),
    starter("stdbuf", "ioe", "input output error", 0),
    starter(
        "sudo",
        "ughpCDRrtTU",
        "user group host prompt close-from chdir chroot role type command-timeout other-user",
        0,
    ),
    starter("taskset", "", "", 1),
    starter("time", "fo", "format output", 0),
    starter("timeout", "ks", "kill-after signal", 1),
    Starter {
        attached: "muinpUCT",
        ..starter(
            "unshare",
            "SGRw",
            "setuid setgid root wd map-user map-group map-users map-groups propagation setgroups monotonic boottime",
            0,
        )
    },
];

/// How many words of a command come before the program that does the work.
pub(crate) fn look_through(command: &[String]) -> usize {
    let mut before = 0;
    while let Some(name) = command.get(before).and_then(|word| Path::new(word).file_name()?.to_str())
        && let Some(words) = next(name, command.get(before..).unwrap_or_default())
    {
        before += words;
    }
    before
}

/// The words before the program that follows a starter; `None` if this is no starter, or no program follows it.
fn next(name: &str, command: &[String]) -> Option<usize> {
    if name == "ip" {
        return of_ip(command);
    }
    let starter = STARTERS.iter().find(|starter| starter.program == name)?;
    let (mut place, mut own) = (1, starter.own_words);
    loop {
        let word = command.get(place)?;
        place += 1;
        let apart = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            // No more options after `--`.
            (Some(""), _) => {
                place += own;
                break;
            }
            (Some(name), _) => {
                let (name, value) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
                !value && starter.long_valued.split_whitespace().any(|long| long == name)
            }
            (None, Some(letters)) => starter.value_follows(letters),
            // env and sudo: variables of the program.
            (None, None) if own == 0 && word.contains('=') && !word.contains('/') => continue,
            (None, None) if own == 0 && is_assignment(word) => continue,
            (None, None) if own > 0 => {
                own -= 1;
                continue;
            }
            (None, None) => {
                place -= 1;
                break;
            }
        };
        place += usize::from(apart);
    }
    command.get(place).map(|_| place)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

impl Starter {
    /// Of letters in one word: whether the value of the last one is the next word.
    fn value_follows(&self, letters: &str) -> bool {
        let mut left = letters.chars();
        while let Some(letter) = left.next() {
            if self.valued.contains(letter) {
                // In `-n5` the value follows its letter.
                return left.as_str().is_empty();
            }
            let value = left.as_str().starts_with(|letter: char| !letter.is_ascii_alphabetic());
            if self.attached.contains(letter) && value {
                return false;
            }
        }
        false
    }
}

/// `ip netns exec NAME PROGRAM` and `ip vrf exec NAME PROGRAM`. ip accepts abbreviations.
fn of_ip(command: &[String]) -> Option<usize> {
    let mut place = 1;
    loop {
        let word = command.get(place)?;
        match word.as_str() {
            "-n" | "-netns" | "-b" | "-batch" | "-f" | "-family" | "-rc" | "-rcvbuf" => place += 2,
            word if word.starts_with('-') => place += 1,
            _ => break,
        }
    }
    let [object, action] = [command.get(place)?, command.get(place + 1)?];
    let network = object.len() >= 3 && "netns".starts_with(object.as_str());
    let is_exec = !action.is_empty() && "exec".starts_with(action.as_str());
    let words = place + 3;
    (is_exec && (network || object == "vrf") && command.get(words).is_some()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_after_its_starters() {
        for (text, program) in [
            ("taskset -c 0 fio job.fio", "fio job.fio"),
            ("/usr/bin/nice -n 5 /opt/fio", "/opt/fio"),
            ("sudo -u fio -E nice -5 fio job.fio", "fio job.fio"),
            ("env -i A=fio B=/x /usr/bin/iperf3 -c x", "/usr/bin/iperf3 -c x"),
            ("chrt -f 10 fio j", "fio j"),
            ("sudo -- numactl --cpunodebind=0 -m 0 fio j", "fio j"),
            ("stdbuf -oL fio j", "fio j"),
            ("ionice -c2 -n 0 setsid fio j", "fio j"),
            ("runuser -u other -- fio j", "fio j"),
            ("setpriv --reuid other --clear-groups fio j", "fio j"),
            ("timeout 10 fio j", "fio j"),
            ("timeout -s INT -k 5 1m fio j", "fio j"),
            ("timeout --signal=INT --kill-after 5 10 nice fio j", "fio j"),
            ("ip netns exec a iperf3 -s", "iperf3 -s"),
            ("ip -n b netns exec a timeout 5 iperf3 -s", "iperf3 -s"),
            ("ip net e a iperf3", "iperf3"),
            ("ip vrf exec red fio j", "fio j"),
            ("nsenter -t 5 -n fio j", "fio j"),
            ("nsenter -at 5 fio j", "fio j"),
            ("nsenter --net=/run/netns/tSG --target 5 fio j", "fio j"),
            ("nsenter -n/run/netns/t fio j", "fio j"),
            ("unshare -nr --map-user 5 --kill-child fio j", "fio j"),
            ("nohup setsid time -f %e fio j", "fio j"),
            ("sudo cat job", "cat job"),
            ("nice cat fio", "cat fio"),
            ("taskset -c 0", "taskset -c 0"),
            ("sudo --user", "sudo --user"),
            ("ip link show fio x y", "ip link show fio x y"),
            ("ip netns add a fio", "ip netns add a fio"),
            ("", ""),
        ] {
            let command: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(command[look_through(&command)..].join(" "), program, "{text}");
        }
    }
}
