//! The page that says what iotoll makes of each option of fio.

use super::super::markdown::{Page, code, prose};
use model::plan::options::{OfFio, of_fio, reference};

pub fn page() -> String {
    let options = of_fio();
    let count = |which: fn(&OfFio) -> bool| options.iter().filter(|(_, what)| which(what)).count();
    let mut page = Page::new("Options of fio");
    page.paragraph(&format!(
        "All options of fio 3.33 with their other names and the options of its engines: {} are *supported* (see [Job options](job-options.md), \
         and [Where a job differs from fio's](../guide/fio.md)), {} are accepted with *no effect* (what fio would do otherwise is said), and {} are \
         *refused*, each with its reason. A plan with a refused option does not run, unless `--ignore-unknown` leaves it out.",
        count(|what| matches!(what, OfFio::Supported(_))),
        count(|what| matches!(what, OfFio::Accepted(_))),
        count(|what| matches!(what, OfFio::Refused(_)))
    ));
    let rows: Vec<Vec<String>> = options.iter().map(|(name, what)| row(name, *what)).collect();
    page.table(&["Option", "iotoll", "Meaning, or the reason"], &rows);
    page.finish()
}

fn row(name: &str, what: OfFio) -> Vec<String> {
    let help = |of: &str| {
        let option = reference().find(|option| option.name == of);
        let help = option.map_or_else(String::new, |option| prose(option.help));
        if of == name { help } else { format!("As {}", code(of)) }
    };
    let (state, meaning) = match what {
        OfFio::Supported(of) => ("supported", help(of)),
        OfFio::Accepted(of) => ("no effect", help(of)),
        OfFio::Refused(why) => ("refused", prose(why)),
    };
    vec![code(name), state.to_owned(), meaning]
}
