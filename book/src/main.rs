//! Builds the book in the given folder as HTML, into the directory that its `book.toml` names.

use mdbook_driver::MDBook;
use mdbook_driver::errors::{Error, Result};

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::msg("usage: iotoll-book FOLDER"))?;
    let book = MDBook::load(&folder)?;
    book.build()?;
    let page = book.build_dir_for("html").join("index.html");
    // mdBook logs some of its errors instead of returning them.
    page.metadata().map_err(|error| Error::msg(format!("{}: no first page was built: {error}", page.display())))?;
    Ok(())
}
