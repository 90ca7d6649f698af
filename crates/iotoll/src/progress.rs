//! The progress line: on standard error, and only when that is a terminal. A stopped terminal (Ctrl-S) is left out. Guests take minutes:
//! where there is no terminal, what is done is said every ten seconds.

use crate::arguments::is_dumb;
use crate::standard_error;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::progress::Progress;
use report::number::{COUNT, with_unit};
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between lines about guests where no line can be redrawn.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// One line that is redrawn in place.
pub struct ProgressLine {
    bar: ProgressBar,
    quiet: bool,
    shown: bool,
    /// When it began, or the latest line about guests.
    told: Cell<Instant>,
}

impl ProgressLine {
    /// A visible line, or a hidden one if standard error is not a terminal or cannot redraw a line.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal() && !is_dumb(&|name| std::env::var_os(name));
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {msg}") {
            bar.set_style(style);
        }
        Self { bar, quiet, shown, told: Cell::new(Instant::now()) }
    }

    /// Shows what happens.
    pub fn show(&self, progress: &Progress) {
        match progress {
            // It is not iotoll's result, so it goes to standard error.
            Progress::Printed(text) => {
                let _ = std::io::stderr().write_all(text.as_bytes());
                return;
            }
            Progress::Guests(text) if self.is_due(Instant::now()) => standard_error::say(&format!("iotoll: {text}")),
            _ => {}
        }
        self.draw(describe(progress));
    }

    /// Whether a line about guests is due where none can be redrawn.
    fn is_due(&self, now: Instant) -> bool {
        let due = !self.shown && !self.quiet && now.duration_since(self.told.get()) >= BETWEEN_LINES;
        if due {
            self.told.set(now);
        }
        due
    }

    pub fn clear(&self) {
        if self.bar.is_finished() {
            return;
        }
        if !self.may_draw() {
            // Finishing draws too.
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        self.bar.finish_and_clear();
    }

    /// Draws the line, unless that would wait for the terminal.
    fn draw(&self, text: String) {
        if self.may_draw() {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    fn may_draw(&self) -> bool {
        self.shown && standard_error::is_ready()
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn describe(progress: &Progress) -> String {
    match progress {
        Progress::Guests(text) | Progress::Printed(text) => (*text).to_owned(),
        Progress::Starting { service } => format!("starting service '{service}'"),
        Progress::LayingOut { path, done, total } => {
            format!("laying out {}: {:.0} %", path.display(), percent(*done, *total))
        }
        Progress::ReadingIn { path, done, total } => {
            format!("reading {} into the page cache: {:.0} %", path.display(), percent(*done, *total))
        }
        Progress::Background { elapsed, total } => {
            format!("measuring the background: {}", of(*elapsed, Some(*total)))
        }
        Progress::Running { number, count, elapsed, total, iops } => {
            let which = if *count > 1 { format!("{} of {count}: ", number + 1) } else { String::new() };
            let rate = iops.map(|iops| format!(", {} IOPS", with_unit(COUNT, iops))).unwrap_or_default();
            format!("measuring {which}{}{rate}", of(*elapsed, *total))
        }
        Progress::Packets { rounds, of, point, delivered_per_second } => {
            let rate = with_unit(COUNT, *delivered_per_second);
            format!("round {} of {of}: {point}, {rate} packets/s delivered", rounds + 1)
        }
        Progress::Explaining { rounds, elapsed, of: time } => {
            format!("explaining round {rounds}, {}", of(*elapsed, Some(*time)))
        }
        Progress::Comparing { rounds, elapsed, budget, standing } => {
            let so_far = format!("round {rounds}, {}", of(*elapsed, Some(*budget)));
            let Some(standing) = standing else { return so_far };
            // The error shrinks with the square root of the time.
            let left = elapsed.as_secs_f64() * ((standing.half_width / standing.wanted).powi(2) - 1.0);
            let left = if left > 0.0 && elapsed.as_secs_f64() + left < budget.as_secs_f64() {
                format!(", about {left:.0} s more")
            } else {
                String::new()
            };
            format!(
                "{so_far}: {} {:+.1} % ± {:.1} %, until ± {:.1} %{left}",
                standing.metric.name(),
                standing.change * 100.0,
                standing.half_width * 100.0,
                standing.wanted * 100.0
            )
        }
    }
}

fn percent(done: u64, total: u64) -> f64 {
    if total > 0 { done as f64 * 100.0 / total as f64 } else { 100.0 }
}

fn of(elapsed: Duration, total: Option<Duration>) -> String {
    match total {
        Some(total) => format!("{:.1} of {:.1} s", elapsed.as_secs_f64(), total.as_secs_f64()),
        None => format!("{:.1} s", elapsed.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_told_of_every_ten_seconds_where_no_line_is_drawn() {
        let line = |quiet| {
            let mut line = ProgressLine::new(quiet);
            line.shown = false;
            line
        };
        let after = |line: &ProgressLine, seconds| line.is_due(Instant::now() + Duration::from_secs(seconds));
        let told = line(false);
        assert_eq!([9, 11, 19, 22].map(|seconds| after(&told, seconds)), [false, true, false, true]);
        assert!(!after(&line(true), 100));
    }
}
