//! A plan as the user writes it, on the command line or in an experiment file (TOML), and its points.

use super::finding::axis;
use super::plan::{
    GuestPlan, IOS, MODULE, MOST_POINTS, MOST_REPLICATES, OWN_MODULES, Place, Point, Published, REPLICATES, SIZE,
};
use model::elided_list::elided_list;
use model::experiment::{Axis, Rules};
use model::experiment_kind::ExperimentKind;
use model::plan::{JobPlan, Phase, Plan, Settings, Size, parse, value};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Bounds of the warm-up: all caches of the kernel are warm after the first, and a pass over a large file takes too long.
const FEWEST_WARM_UP: u64 = 64;
const MOST_WARM_UP: u64 = 4096;
/// Bounds of the measured I/Os.
const MOST_IOS: u64 = 10_000_000;

/// A change below this fraction does not matter, if the user says nothing else.
const MARGIN: f64 = 0.01;

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The title; empty for one made of the jobs.
    #[serde(default)]
    pub title: String,
    pub kernels: Vec<String>,
    /// Alternatives of kernel parameters.
    #[serde(default)]
    pub parameters: Vec<String>,
    #[serde(default, rename = "job")]
    pub jobs: Vec<JobDraft>,
    /// What is swept: a job option, `sysctl:NAME`, `mount` or `module`, and its values.
    #[serde(default, rename = "sweep")]
    pub sweeps: Vec<Axis>,
    /// Sysctls that are the same everywhere: `NAME=VALUE`.
    #[serde(default)]
    pub sysctls: Vec<String>,
    /// What is compared, if the user says so.
    #[serde(rename = "compare")]
    pub compared: Option<String>,
    pub replicates: Option<u32>,
    /// Count by function.
    #[serde(default)]
    pub by_function: bool,
    /// A change below this fraction does not matter.
    #[serde(default, deserialize_with = "margin")]
    pub margin: Option<f64>,
    #[serde(default)]
    pub published: Vec<Published>,
}

/// A job, and the stacks that it runs on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobDraft {
    /// Its name; that of a job file's job if empty.
    pub name: String,
    #[serde(rename = "stack", deserialize_with = "one_or_more")]
    pub stacks: Vec<String>,
    /// What it does, in fio's language: `rw=randread`. They override those of its job file.
    pub options: Vec<String>,
    /// The name of its job file, for messages, and its text.
    #[serde(skip)]
    pub file: Option<(String, String)>,
    /// Mount options beside the stack's.
    #[serde(rename = "mount")]
    pub mount_options: Option<String>,
    /// Sweeps of this job, if they are not those of all jobs.
    #[serde(rename = "sweep")]
    pub sweeps: Option<Vec<Axis>>,
}

/// A fraction from a percentage: "1%", "0.5 %".
fn margin<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(from)?;
    Rules::parse_percent(&text).map(Some).map_err(|wrong| D::Error::custom(format!("margin = \"{text}\": {wrong}")))
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a name, or a list of names")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(from)? {
        OneOrMore::One(name) => vec![name],
        OneOrMore::More(names) => names,
    })
}

/// One combination of the axes: the stack, what is swept, the kernel and its parameters, each with a value.
type Combination<'a> = [(&'a str, &'a str)];

impl JobDraft {
    /// Its name, or that of its file.
    fn label(&self) -> &str {
        match &self.file {
            Some((name, _)) if self.name.is_empty() => name,
            _ => &self.name,
        }
    }
}

impl Draft {
    /// Parses an experiment file.
    ///
    /// # Errors
    /// One line, with the file's name and what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        ExperimentKind::Guest.parse(name, text)
    }

    /// Resolves it into points.
    ///
    /// # Errors
    /// One line: what is wrong, and how to fix it.
    pub fn resolve(&self, outside: &Settings) -> Result<GuestPlan, String> {
        if self.kernels.is_empty() {
            return Err("no kernel; give --kernel debian:6.1, a .deb, a vmlinuz, or the folder of a build".to_owned());
        }
        if self.jobs.is_empty() {
            return Err("no job; give JOB.fio, or --rw=randread --bs=4k …".to_owned());
        }
        if let Some(job) = self.jobs.iter().find(|job| job.stacks.is_empty()) {
            return Err(format!("job '{}': no stack; `iotoll guest list` lists them", job.label()));
        }
        let replicates = self.replicates.unwrap_or(REPLICATES);
        if !(1..=MOST_REPLICATES).contains(&replicates) {
            return Err(format!("replicates: {replicates} is not within 1 to {MOST_REPLICATES}; give --replicates 5"));
        }
        self.check_axes()?;
        let compared = self.compared()?;
        let mut points = Vec::new();
        let mut arms: Vec<String> = Vec::new();
        for job in &self.jobs {
            for combination in combinations(&self.axes(job)) {
                let arm = arm(&combination, compared.as_deref());
                let number = arms.iter().position(|known| *known == arm).unwrap_or_else(|| {
                    arms.push(arm);
                    arms.len() - 1
                });
                points.push(self.point(job, &combination, number, outside)?);
            }
        }
        Ok(GuestPlan {
            title: if self.title.is_empty() { self.own_title() } else { self.title.clone() },
            compared: compared.filter(|_| arms.len() > 1),
            arms,
            replicates,
            functions: self.by_function,
            margin: self.margin.unwrap_or(MARGIN),
            points,
            published: self.published.clone(),
        })
    }

    /// The axes of a job, in the order of its points: the last is the fastest.
    fn axes<'a>(&'a self, job: &'a JobDraft) -> Vec<(&'a str, &'a [String])> {
        static NO_PARAMETERS: [String; 1] = [String::new()];
        let parameters = if self.parameters.is_empty() { &NO_PARAMETERS[..] } else { &self.parameters };
        let sweeps = job
            .sweeps
            .as_ref()
            .unwrap_or(&self.sweeps)
            .iter()
            .map(|sweep| (sweep.name.as_str(), sweep.values.as_slice()));
        let stacks = [("stack", job.stacks.as_slice())].into_iter();
        stacks.chain(sweeps).chain([("kernel", self.kernels.as_slice()), ("parameters", parameters)]).collect()
    }

    /// Refuses an axis without values, values that are given twice, which would be one arm, and too many points.
    fn check_axes(&self) -> Result<(), String> {
        let mut points = 0_usize;
        for axes in self.jobs.iter().map(|job| self.axes(job)) {
            for (name, values) in &axes {
                if values.is_empty() {
                    return Err(format!("sweep '{name}': no values; give {name}=VALUE,VALUE…"));
                }
                let twice = |(place, value): &(usize, &String)| values.iter().take(*place).any(|other| other == *value);
                if let Some((_, value)) = values.iter().enumerate().find(twice) {
                    return Err(format!("{name} '{value}': given twice; remove one"));
                }
            }
            let own = axes.iter().fold(1, |count: usize, (_, values)| count.saturating_mul(values.len()));
            points = points.saturating_add(own);
        }
        match points > MOST_POINTS {
            true => Err(format!("{points} points are more than {MOST_POINTS}; sweep fewer values")),
            false => Ok(()),
        }
    }

    /// What has several values and is compared: what the user says, otherwise kernels before parameters, stacks and sweeps.
    fn compared(&self) -> Result<Option<String>, String> {
        let mut axes = vec![("kernel", 0), ("parameters", 0), ("stack", 0)];
        for (name, values) in self.jobs.iter().flat_map(|job| self.axes(job)) {
            match axes.iter_mut().find(|(axis, _)| *axis == name) {
                Some((_, count)) => *count = values.len().max(*count),
                None => axes.push((name, values.len())),
            }
        }
        let Some(name) = &self.compared else {
            return Ok(axes.into_iter().find(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()));
        };
        match axes.iter().find(|(axis, _)| axis == name) {
            Some((_, count)) if *count > 1 => Ok(Some(name.clone())),
            Some(_) => Err(format!("compare '{name}': it has fewer than two values; give it two")),
            None => {
                let names: Vec<_> = axes.iter().map(|(axis, _)| *axis).collect();
                Err(format!(
                    "compare '{name}': nothing with several values has this name; there are {}",
                    names.join(", ")
                ))
            }
        }
    }

    /// "1k write on nfs-rdma: debian:6.1, debian:6.12".
    fn own_title(&self) -> String {
        let names: Vec<_> = self.jobs.iter().map(|job| job.label().to_owned()).collect();
        let mut stacks: Vec<&String> = self.jobs.iter().flat_map(|job| &job.stacks).collect();
        stacks.sort();
        stacks.dedup();
        let on = match stacks.as_slice() {
            [stack] => format!(" on {stack}"),
            _ => String::new(),
        };
        format!("{}{on}: {}", elided_list(&names, ", "), elided_list(&self.kernels, ", "))
    }

    fn point(&self, job: &JobDraft, at: &Combination, arm: usize, outside: &Settings) -> Result<Point, String> {
        let [(_, stack), swept @ .., (_, kernel), (_, parameters)] = at else {
            return Err(format!("job '{}': no stack or no kernel", job.label()));
        };
        let mut sysctls = self.sysctls.iter().map(|text| sysctl(text)).collect::<Result<Vec<_>, _>>()?;
        let mut mount_options = job.mount_options.clone();
        let mut options = job.options.clone();
        let mut module = String::new();
        for (name, value) in swept {
            match name.split_once(':') {
                Some(("sysctl", name)) => sysctls.push((name.to_owned(), (*value).to_owned())),
                _ if *name == "mount" => {
                    let all = [mount_options.as_deref().unwrap_or_default(), *value];
                    mount_options = Some(all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(","));
                }
                _ if *name == MODULE => module = (*value).to_owned(),
                _ => options.push(format!("{name}={value}")),
            }
        }
        let plan = parsed(job, &options, outside)?;
        if let Some(why) = plan.only_for_run() {
            return Err(why);
        }
        let [phase] = plan.phases.as_slice() else {
            return Err(format!(
                "job '{}': {} phases, but a guest measures one; remove stonewall",
                job.label(),
                plan.phases.len()
            ));
        };
        let mut phase: Phase = phase.clone();
        phase.jobs.iter_mut().for_each(adapt);
        let ios = phase.jobs.iter().filter_map(|job| job.duration.number_ios).max().unwrap_or(IOS);
        if !(1..=MOST_IOS).contains(&ios) {
            return Err(format!(
                "job '{}': number_ios={ios} is not within 1 to {MOST_IOS}; give another number_ios",
                job.label()
            ));
        }
        let name = if job.name.is_empty() { phase.jobs.first().map_or("", |job| &job.name) } else { &job.name };
        Ok(Point {
            place: Place {
                job: name.to_owned(),
                kernel: (*kernel).to_owned(),
                stack: (*stack).to_owned(),
                parameters: (*parameters).to_owned(),
                cell: swept.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            },
            arm,
            warm_up_ios: phase.jobs.iter().map(warm_up).max().unwrap_or(FEWEST_WARM_UP),
            ios,
            phase,
            sysctls,
            mount_options,
            module,
        })
    }
}

/// The arm of a combination.
fn arm(at: &Combination, compared: Option<&str>) -> String {
    let compared = compared.unwrap_or("kernel");
    let value = at.iter().find(|(name, _)| *name == compared).map_or("", |(_, value)| value);
    match compared {
        "parameters" if value.is_empty() => "no parameters".to_owned(),
        MODULE if value.is_empty() => OWN_MODULES.to_owned(),
        // Mount options and modules are named themselves: "wsize=32768".
        "kernel" | "parameters" | "stack" | "mount" | MODULE => value.to_owned(),
        name => format!("{}={value}", axis(name)),
    }
}

/// Every combination of the values, the last axis fastest.
fn combinations<'a>(axes: &[(&'a str, &'a [String])]) -> Vec<Vec<(&'a str, &'a str)>> {
    axes.iter().fold(vec![Vec::new()], |all, (name, values)| {
        let longer = all.iter().flat_map(|front: &Vec<(&str, &str)>| {
            values.iter().map(|value| front.iter().copied().chain([(*name, value.as_str())]).collect())
        });
        longer.collect()
    })
}

fn sysctl(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("sysctl '{text}': no value; write NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `outside` has the environment.
fn parsed(job: &JobDraft, options: &[String], outside: &Settings) -> Result<Plan, String> {
    let settings = Settings {
        ignore_unknown: false,
        // The devices are those of the guest.
        device_writes: true,
        ..*outside
    };
    let parsed = match &job.file {
        Some((name, text)) => parse::job_file(name, text, &Settings { overrides: options, ..settings }),
        None => {
            // The name of the job's file, too.
            let name = if job.name.is_empty() { "job".to_owned() } else { job.name.replace('/', "-") };
            let (own, swept) = options.split_at(job.options.len());
            let own = own.iter().filter(|option| !option.starts_with("name=")).map(|option| format!("--{option}"));
            let words: Vec<String> =
                [format!("--name={name}"), format!("--size={SIZE}")].into_iter().chain(own).collect();
            parse::flags(&words, &Settings { overrides: swept, ..settings })
        }
    };
    parsed.map_err(|error| error.to_string())
}

/// Makes a job fit a guest: what depends on the host's time does not apply.
fn adapt(job: &mut JobPlan) {
    job.target.size.get_or_insert_with(|| {
        let none = 1..=u64::MAX;
        value::size(SIZE, &none, &(0..=100)).unwrap_or(Size::Percent(100))
    });
    // A guest has one CPU.
    job.thread.cpus_allowed.clear();
}

fn warm_up(job: &JobPlan) -> u64 {
    let block = job.largest_block().0.max(1);
    let size = match job.target.size {
        Some(Size::Bytes(bytes)) => bytes.0,
        _ => 0,
    };
    (size / block).clamp(FEWEST_WARM_UP, MOST_WARM_UP)
}

#[cfg(test)]
mod tests;
