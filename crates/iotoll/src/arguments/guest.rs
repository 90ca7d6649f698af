//! `iotoll guest`: the command line.

use super::{Earlier, Output, value};
use clap::{Args, Subcommand};
use model::experiment::{Axis, Rules};

/// What to do with guests.
#[derive(Clone, Debug, Subcommand)]
pub enum GuestVerb {
    /// Count the instructions of one I/O through real stacks of unmodified kernels
    #[command(after_help = "")]
    Run(Box<GuestRunArguments>),
    /// Download, boot and save the guests of the same command in advance
    #[command(after_help = "")]
    Prepare(Box<GuestRunArguments>),
    /// Boot a stack and look around in it, with a shell on the guest's console
    Shell(GuestShellArguments),
    /// List the stacks, and what the cache holds
    List(GuestListArguments),
}

/// `iotoll guest run` and `iotoll guest prepare`.
#[derive(Args, Clone, Debug)]
pub struct GuestRunArguments {
    /// fio's options as flags (--rw=randread …), a job file, or an experiment file of guests (.toml)
    #[arg(
        value_name = "JOB.fio | EXPERIMENT.toml | --OPTION=VALUE",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub job: Vec<String>,
    /// Boot this kernel: debian:5.10, debian:6.1, debian:6.12, a .deb, a vmlinuz, VMLINUZ,MODULES_FOLDER, or the folder of a build; give it
    /// again to compare kernels, the first is the baseline
    #[arg(long, help_heading = "Guests", value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// Replace a module of the kernel by this file, and compare with the kernel's own; {release} in FILE is the kernel's release.
    /// Several for one arm with blanks between; give it again for another arm
    #[arg(long, help_heading = "Guests", value_name = "NAME=FILE")]
    pub module: Vec<String>,
    /// Send the I/O through this stack, see `iotoll guest list`; give it again for more [default: tmpfs]
    #[arg(long, help_heading = "Guests", value_name = "STACK")]
    pub stack: Vec<String>,
    /// Add these parameters to the kernel's command line; give it again to compare
    #[arg(long, help_heading = "Guests", value_name = "PARAMETERS", allow_hyphen_values = true)]
    pub cmdline: Vec<String>,
    /// Set this sysctl in the guest before the stack mounts; give it again for more
    #[arg(long, help_heading = "Guests", value_name = "NAME=VALUE")]
    pub sysctl: Vec<String>,
    /// Add these options to those that the stack mounts or maps with
    #[arg(long, help_heading = "Guests", value_name = "OPTIONS")]
    pub mount: Option<String>,
    /// Measure every combination of these values of a job option, of sysctl:NAME, of mount, or of module
    #[arg(long, help_heading = "Comparison", value_name = "NAME=A,B,…", value_parser = value::axis)]
    pub sweep: Vec<Axis>,
    /// Compare the values of this: kernel, parameters, stack, or the name of a sweep [default: the first that has several]
    #[arg(long, help_heading = "Comparison", value_name = "WHAT")]
    pub versus: Option<String>,
    /// Boot each guest this often, each time with another memory layout and timing; the interval comes from their spread
    /// [default: 5]
    #[arg(long, help_heading = "Comparison", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub replicates: Option<u32>,
    /// Count instructions by function
    #[arg(long, help_heading = "Functions")]
    pub by_function: bool,
    /// Also follow calls, and report from where each function is called; implies --by-function; slow
    #[arg(long, help_heading = "Functions")]
    pub chains: bool,
    /// Changes below this do not matter [default: 1%]
    #[arg(long, help_heading = "Comparison", value_name = "PERCENT", value_parser = value::by(Rules::parse_percent))]
    pub margin: Option<f64>,
    /// Kill a guest that takes more CPU time than this, or does nothing for as long, and fail
    #[arg(long, help_heading = "Guests", value_name = "TIME", default_value = "120s", value_parser = value::by(Rules::parse_time))]
    pub hang_timeout: f64,
    /// Boot all guests again, instead of restoring those in the cache
    #[arg(long, help_heading = "Cache")]
    pub fresh: bool,
    /// Keep at most this much of saved guests; those that were not used for the longest time go first
    #[arg(long, help_heading = "Cache", value_name = "SIZE", default_value = "8g", value_parser = value::amount)]
    pub cache_limit: u64,
    /// Parse everything, print the plan, and exit
    #[arg(long, help_heading = "Job")]
    pub parse_only: bool,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

/// `iotoll guest list`.
#[derive(Args, Clone, Debug)]
pub struct GuestListArguments {
    /// Remove all guests, kernels and programs from the cache; or only what is superseded: kernels of Debian of which the cache
    /// has a newer one, and their guests
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub clear: Option<GuestClear>,
}

/// `--clear`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestClear {
    /// Everything.
    All,
    /// Superseded kernels and their guests.
    Superseded,
}

/// `iotoll guest shell`.
#[derive(Args, Clone, Debug)]
pub struct GuestShellArguments {
    /// Boot this kernel, as in `iotoll guest run`
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Set up this stack, see `iotoll guest list`
    #[arg(long, value_name = "STACK", default_value = "tmpfs")]
    pub stack: String,
    /// Replace modules of the kernel, as in `iotoll guest run`
    #[arg(long, value_name = "NAME=FILE", default_value = "", hide_default_value = true)]
    pub module: String,
    /// Add these parameters to the kernel's command line
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    pub cmdline: String,
    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
}
