//! Man pages: one for the program, one for each verb, also of a verb of a verb.

use super::GeneratedFile;
use crate::arguments::documented;
use clap::Command;
use clap_mangen::Man;
use std::io;

/// The pages with their file names.
///
/// # Errors
/// Never in practice: they are written to memory.
pub fn files() -> io::Result<Vec<GeneratedFile>> {
    let mut program = documented();
    // Gives each verb its usage.
    program.build();
    commands(&program).into_iter().map(page).collect()
}

/// The command and all below it, without the `help` that clap adds.
fn commands(command: &Command) -> Vec<Command> {
    let below = command.get_subcommands().filter(|verb| verb.get_name() != "help").flat_map(commands);
    std::iter::once(command.clone()).chain(below).collect()
}

fn page(mut command: Command) -> io::Result<GeneratedFile> {
    let usage = command.render_usage().to_string();
    let man = Man::new(command).source(concat!("iotoll ", env!("CARGO_PKG_VERSION"))).manual("User Commands");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\nExit status: ", ".SH \"EXIT STATUS\"\n");
    Ok(GeneratedFile { name: man.get_filename(), text: with_synopsis(&text, &usage) })
}

/// The page with the usage as its synopsis: clap_mangen lists every option there, and those of a job are many.
fn with_synopsis(page: &str, usage: &str) -> String {
    const BEGIN: &str = ".SH SYNOPSIS\n";
    const END: &str = ".SH DESCRIPTION\n";
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else { return page.to_owned() };
    let usage = usage.trim().trim_start_matches("Usage: ").replace('\\', "\\e").replace('-', "\\-");
    format!("{before}{BEGIN}{usage}\n{END}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_version_and_how_to_call_it() {
        let files = files().unwrap();
        let text = |name: &str| &files.iter().find(|file| file.name == name).unwrap().text;
        let version = concat!("\"iotoll ", env!("CARGO_PKG_VERSION"), "\" \"User Commands\"");
        for (name, title, synopsis) in [
            ("iotoll.1", ".TH iotoll 1  ", "iotoll <COMMAND>\n"),
            (
                "iotoll-run.1",
                ".TH iotoll-run 1  ",
                "iotoll run [OPTIONS] [JOB.fio | EXPERIMENT.toml | \\-\\-OPTION=VALUE]...\n",
            ),
            (
                "iotoll-guest-run.1",
                ".TH iotoll-guest-run 1  ",
                "iotoll guest run [OPTIONS] [JOB.fio | EXPERIMENT.toml | \\-\\-OPTION=VALUE]...\n",
            ),
            ("iotoll-cost.1", ".TH iotoll-cost 1  ", "iotoll cost [OPTIONS] [\\-\\- <COMMAND>...]\n"),
        ] {
            let text = text(name);
            assert!(text.contains(&format!("{title}{version}")), "{text}");
            assert!(text.contains(&format!(".SH SYNOPSIS\n{synopsis}.SH DESCRIPTION\n")), "{text}");
        }
        assert!(text("iotoll.1").contains(".SH \"EXIT STATUS\"\n0 done"), "{}", text("iotoll.1"));
    }
}
