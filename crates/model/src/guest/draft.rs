//! A plan as the user writes it, and its points.

use super::plan::{
    GuestPlan, IOS, MODULE, MOST_POINTS, MOST_REPLICATES, OWN_MODULES, Point, Published, REPLICATES, SIZE,
};
use crate::plan::{DeviceWrites, JobPlan, Phase, Plan, Settings, Size, UnknownOptions, parse, value};

/// Bounds of the warm-up: all caches of the kernel are warm after the first, and a pass over a large file takes too long.
const FEWEST_WARM_UP: u64 = 64;
const MOST_WARM_UP: u64 = 4096;
/// Bounds of the measured I/Os.
const MOST_IOS: u64 = 10_000_000;

/// What the user asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The title; empty for one made of the jobs.
    pub title: String,
    pub kernels: Vec<String>,
    /// Alternatives of kernel parameters.
    pub parameters: Vec<String>,
    pub jobs: Vec<JobDraft>,
    /// What is swept: a job option, `sysctl:NAME`, `mount` or `module`, and its values.
    pub sweeps: Vec<(String, Vec<String>)>,
    /// Sysctls that are the same everywhere: `NAME=VALUE`.
    pub sysctls: Vec<String>,
    /// What is compared, if the user says so.
    pub compared: Option<String>,
    pub replicates: u32,
    /// Count by function.
    pub functions: bool,
    /// Follow calls.
    pub chains: bool,
    /// A change below this fraction does not matter.
    pub margin: f64,
    pub published: Vec<Published>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            title: String::new(),
            kernels: Vec::new(),
            parameters: Vec::new(),
            jobs: Vec::new(),
            sweeps: Vec::new(),
            sysctls: Vec::new(),
            compared: None,
            replicates: REPLICATES,
            functions: false,
            chains: false,
            margin: 0.01,
            published: Vec::new(),
        }
    }
}

/// A job, and the stacks that it runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDraft {
    /// Its name; that of a job file's job if empty.
    pub name: String,
    pub stacks: Vec<String>,
    /// What it does.
    pub text: JobText,
    /// Mount options beside the stack's.
    pub mount_options: Option<String>,
    /// Sweeps of this job, if they are not those of all jobs.
    pub sweeps: Option<Vec<(String, Vec<String>)>>,
}

impl JobDraft {
    /// Its name, or that of its file.
    fn label(&self) -> &str {
        match &self.text {
            JobText::File { name, .. } if self.name.is_empty() => name,
            JobText::File { .. } | JobText::Options(_) => &self.name,
        }
    }
}

/// What a job does, in fio's language.
#[derive(Clone, Debug, PartialEq)]
pub enum JobText {
    /// Options: `rw=randread`.
    Options(Vec<String>),
    /// A job file, and options that override it.
    File {
        /// Its name, for messages.
        name: String,
        text: String,
        overrides: Vec<String>,
    },
}

impl Default for JobText {
    fn default() -> Self {
        Self::Options(Vec::new())
    }
}

/// One combination of the axes.
#[derive(Clone, Debug)]
struct Combination<'a> {
    kernel: &'a str,
    parameters: &'a str,
    stack: &'a str,
    swept: Vec<(&'a str, &'a str)>,
}

impl Draft {
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
        if !(1..=MOST_REPLICATES).contains(&self.replicates) {
            return Err(format!(
                "replicates: {} is not within 1 to {MOST_REPLICATES}; give --replicates 5",
                self.replicates
            ));
        }
        for (name, values) in self.all_sweeps() {
            if values.is_empty() {
                return Err(format!("sweep '{name}': no values; give {name}=VALUE,VALUE…"));
            }
        }
        self.once()?;
        let count = self.count();
        if count > MOST_POINTS {
            return Err(format!("{count} points are more than {MOST_POINTS}; sweep fewer values"));
        }
        let compared = self.compared()?;
        let none = [String::new()];
        let parameters = if self.parameters.is_empty() { &none[..] } else { &self.parameters };
        let mut points = Vec::new();
        let mut arms: Vec<String> = Vec::new();
        for job in &self.jobs {
            for stack in &job.stacks {
                for swept in combinations(job.sweeps.as_ref().unwrap_or(&self.sweeps)) {
                    for kernel in &self.kernels {
                        for parameters in parameters {
                            let combination = Combination { kernel, parameters, stack, swept: swept.clone() };
                            let arm = combination.arm(compared.as_deref());
                            let number = arms.iter().position(|known| *known == arm).unwrap_or_else(|| {
                                arms.push(arm);
                                arms.len() - 1
                            });
                            points.push(self.point(job, &combination, number, outside)?);
                        }
                    }
                }
            }
        }
        Ok(GuestPlan {
            title: if self.title.is_empty() { self.own_title() } else { self.title.clone() },
            compared: compared.filter(|_| arms.len() > 1),
            arms,
            replicates: self.replicates,
            functions: self.functions,
            chains: self.chains,
            margin: self.margin,
            points,
            published: self.published.clone(),
        })
    }

    /// Refuses what is given twice: both would be one arm.
    fn once(&self) -> Result<(), String> {
        let stacks = self.jobs.iter().map(|job| ("stack", &job.stacks));
        let sweeps = self.all_sweeps().map(|(name, values)| (name.as_str(), values));
        let axes = [("kernel", &self.kernels), ("parameters", &self.parameters)].into_iter();
        for (name, values) in axes.chain(stacks).chain(sweeps) {
            let before = |place: usize, value: &String| values.iter().take(place).any(|other| other == value);
            if let Some((_, value)) = values.iter().enumerate().find(|(place, value)| before(*place, value)) {
                return Err(format!("{name} '{value}': given twice; remove one"));
            }
        }
        Ok(())
    }

    /// Those of all jobs, and those of single jobs.
    fn all_sweeps(&self) -> impl Iterator<Item = &(String, Vec<String>)> {
        self.sweeps.iter().chain(self.jobs.iter().flat_map(|job| job.sweeps.iter().flatten()))
    }

    /// The number of points.
    fn count(&self) -> usize {
        let of = |job: &JobDraft| {
            let sweeps = job.sweeps.as_ref().unwrap_or(&self.sweeps);
            sweeps.iter().fold(job.stacks.len(), |count, (_, values)| count.saturating_mul(values.len()))
        };
        let jobs = self.jobs.iter().map(of).fold(0, usize::saturating_add);
        [self.kernels.len(), self.parameters.len().max(1)].into_iter().fold(jobs, usize::saturating_mul)
    }

    /// What has several values and is compared: what the user says, otherwise kernels before parameters, stacks and sweeps.
    fn compared(&self) -> Result<Option<String>, String> {
        let stacks = self.jobs.iter().map(|job| job.stacks.len()).max().unwrap_or(0);
        let mut axes = vec![("kernel", self.kernels.len()), ("parameters", self.parameters.len()), ("stack", stacks)];
        for (name, values) in self.all_sweeps() {
            match axes.iter_mut().find(|(axis, _)| axis == name) {
                Some((_, count)) => *count = values.len().max(*count),
                None => axes.push((name, values.len())),
            }
        }
        match &self.compared {
            Some(name) => match axes.iter().find(|(axis, _)| axis == name) {
                Some((_, count)) if *count > 1 => Ok(Some(name.clone())),
                Some(_) => Err(format!("compare '{name}': it has fewer than two values; give it two")),
                None => {
                    let names: Vec<_> = axes.iter().map(|(axis, _)| *axis).collect();
                    Err(format!(
                        "compare '{name}': nothing with several values has this name; there are {}",
                        names.join(", ")
                    ))
                }
            },
            None => Ok(axes.into_iter().find(|(_, count)| *count > 1).map(|(name, _)| name.to_owned())),
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
        let kernels = crate::elided_list::elided_list(&self.kernels, ", ");
        format!("{}{on}: {kernels}", crate::elided_list::elided_list(&names, ", "))
    }

    fn point(&self, job: &JobDraft, at: &Combination, arm: usize, outside: &Settings) -> Result<Point, String> {
        let mut sysctls = self.sysctls.iter().map(|text| sysctl(text)).collect::<Result<Vec<_>, _>>()?;
        let mut mount_options = job.mount_options.clone();
        let mut overrides = Vec::new();
        let mut module = String::new();
        for (name, value) in &at.swept {
            match name.split_once(':') {
                Some(("sysctl", name)) => sysctls.push((name.to_owned(), (*value).to_owned())),
                _ if *name == "mount" => {
                    let all = [mount_options.as_deref().unwrap_or_default(), *value];
                    mount_options = Some(all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(","));
                }
                _ if *name == MODULE => module = (*value).to_owned(),
                _ => overrides.push(format!("{name}={value}")),
            }
        }
        let plan = parsed(job, &overrides, outside)?;
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
            job: name.to_owned(),
            arm,
            kernel: at.kernel.to_owned(),
            stack: at.stack.to_owned(),
            parameters: at.parameters.to_owned(),
            cell: at.swept.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            warm_up_ios: phase.jobs.iter().map(warm_up).max().unwrap_or(FEWEST_WARM_UP),
            ios,
            phase,
            sysctls,
            mount_options,
            module,
        })
    }
}

impl Combination<'_> {
    fn swept(&self, name: &str) -> &str {
        self.swept.iter().find(|(swept, _)| *swept == name).map_or("", |(_, value)| value)
    }

    fn arm(&self, compared: Option<&str>) -> String {
        match compared {
            Some("kernel") | None => self.kernel.to_owned(),
            Some("parameters") if self.parameters.is_empty() => "no parameters".to_owned(),
            Some("parameters") => self.parameters.to_owned(),
            Some("stack") => self.stack.to_owned(),
            // Its values are named themselves: "wsize=32768".
            Some("mount") => self.swept("mount").to_owned(),
            Some(MODULE) if self.swept(MODULE).is_empty() => OWN_MODULES.to_owned(),
            Some(MODULE) => self.swept(MODULE).to_owned(),
            Some(name) => {
                let value = self.swept(name);
                format!("{}={value}", name.rsplit([':', '.']).next().unwrap_or(name))
            }
        }
    }
}

/// Every combination of the values, the last axis fastest.
fn combinations(sweeps: &[(String, Vec<String>)]) -> Vec<Vec<(&str, &str)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in sweeps {
        let longer = all.iter().flat_map(|front: &Vec<(&str, &str)>| {
            values.iter().map(|value| front.iter().copied().chain([(name.as_str(), value.as_str())]).collect())
        });
        all = longer.collect();
    }
    all
}

fn sysctl(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("sysctl '{text}': no value; write NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `outside` has the environment and the included files.
fn parsed(job: &JobDraft, overrides: &[String], outside: &Settings) -> Result<Plan, String> {
    let settings = |overrides| Settings {
        overrides,
        unknown_options: UnknownOptions::Refuse,
        // The devices are those of the guest.
        device_writes: DeviceWrites::Allow,
        ..*outside
    };
    match &job.text {
        JobText::Options(options) => {
            // The name of the job's file, too.
            let name = if job.name.is_empty() { "job".to_owned() } else { job.name.replace('/', "-") };
            let words: Vec<String> = [format!("--name={name}"), format!("--size={SIZE}")]
                .into_iter()
                .chain(options.iter().filter(|option| !option.starts_with("name=")).map(|option| format!("--{option}")))
                .collect();
            parse::flags(&words, &settings(overrides)).map_err(|error| error.to_string())
        }
        JobText::File { name, text, overrides: own } => {
            let all: Vec<String> = own.iter().chain(overrides).cloned().collect();
            parse::job_file(name, text, &settings(&all)).map_err(|error| error.to_string())
        }
    }
}

/// Makes a job fit a guest: what depends on the host's time does not apply.
fn adapt(job: &mut JobPlan) {
    job.target.size.get_or_insert_with(|| {
        let none = 1..=u64::MAX;
        value::size(SIZE, &none, &(0..=100)).unwrap_or(Size::Percent(100))
    });
    // A guest has one CPU.
    job.cpus_allowed.clear();
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
