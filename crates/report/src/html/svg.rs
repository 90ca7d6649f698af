//! A backend of plotters that writes classes instead of colours, so that one drawing works on the light page, the dark
//! page and the printer, with colours from the style sheet.

use super::markup::escape;
use plotters::style::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;
use std::fmt::Write;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// Number of subjects with their own colour; further ones repeat them.
const SUBJECTS: usize = 6;

/// The role of a drawn element, which the style sheet turns into a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Lines of the grid.
    Grid,
    /// Axes and their numbers.
    Axis,
    /// The line at 0, for no change.
    Zero,
    Margin,
    /// A subject, by its index; 0 is the baseline.
    Subject(usize),
}

impl Paint {
    /// plotters only has colours, so they encode class numbers, which [`Drawing`] decodes.
    pub fn colour(self) -> RGBColor {
        let number = match self {
            Self::Grid => 0,
            Self::Axis => 1,
            Self::Zero => 2,
            Self::Margin => 3,
            Self::Subject(index) => 4 + (index % SUBJECTS) as u8,
        };
        RGBColor(0, 0, number)
    }

    /// Its class in the style sheet.
    pub fn class(self) -> String {
        let RGBColor(_, _, number) = self.colour();
        class(BackendColor { alpha: 1.0, rgb: (0, 0, number) })
    }
}

fn class(colour: BackendColor) -> String {
    let (_, _, number) = colour.rgb;
    match number {
        0 => "grid".to_owned(),
        1 => "axis".to_owned(),
        2 => "zero".to_owned(),
        3 => "margin".to_owned(),
        subject => format!("subject{}", subject - 4),
    }
}

pub struct Drawing<'a> {
    into: &'a mut String,
    size: (u32, u32),
    /// Dots with the same class and size are one path, so that thousands of slices result in a small file. The same for
    /// translucent rectangles, of which a heat map has thousands.
    path: Option<Path>,
}

/// The path that is being written: what all its elements have in common.
#[derive(PartialEq)]
enum Path {
    Dots(String, u32),
    Cells(String, String),
}

impl<'a> Drawing<'a> {
    /// A drawing of this size in units. Its elements are appended to `into`, without an enclosing `svg` element.
    pub fn new(into: &'a mut String, size: (u32, u32)) -> Self {
        Self { into, size, path: None }
    }

    fn write(&mut self, element: std::fmt::Arguments) -> Drawn {
        self.end_path();
        // Writing to a string does not fail.
        let _ = self.into.write_fmt(element);
        self.into.push('\n');
        Ok(())
    }

    fn end_path(&mut self) {
        if self.path.take().is_some() {
            self.into.push_str("\"/>\n");
        }
    }

    fn path(
        &mut self,
        points: impl Iterator<Item = BackendCoord>,
        kind: &str,
        width: u32,
        colour: BackendColor,
    ) -> Drawn {
        let points = points.map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ");
        let tag = if kind == "f" { "polygon" } else { "polyline" };
        let width = if kind == "f" { String::new() } else { format!(" stroke-width=\"{width}\"") };
        self.write(format_args!(
            "<{tag} class=\"{kind} {}\"{width}{} points=\"{points}\"/>",
            class(colour),
            opacity(colour)
        ))
    }
}

fn opacity(colour: BackendColor) -> String {
    if colour.alpha < 1.0 { format!(" opacity=\"{}\"", colour.alpha) } else { String::new() }
}

impl DrawingBackend for Drawing<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.end_path();
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        let class = class(colour);
        self.write(format_args!("<rect class=\"f {class}\" x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\"/>"))
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn {
        let colour = style.color();
        let (class, opacity, kind) = (class(colour), opacity(colour), if fill { "f" } else { "s" });
        let (x, y) = (from.0.min(to.0), from.1.min(to.1));
        let (width, height) = (from.0.abs_diff(to.0), from.1.abs_diff(to.1));
        if fill && !opacity.is_empty() {
            let cells = Path::Cells(class, opacity);
            if self.path.as_ref() != Some(&cells) {
                self.end_path();
                if let Path::Cells(class, opacity) = &cells {
                    let _ = write!(self.into, "<path class=\"f {class}\"{opacity} d=\"");
                }
                self.path = Some(cells);
            }
            let _ = write!(self.into, "M{x},{y}h{width}v{height}h-{width}z");
            return Ok(());
        }
        self.write(format_args!(
            "<rect class=\"{kind} {class}\"{opacity} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        if style.color().alpha == 0.0 {
            Ok(())
        } else {
            self.path(path.into_iter(), "s", style.stroke_width(), style.color())
        }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        self.path(path.into_iter(), "f", 0, style.color())
    }

    fn draw_circle<S: BackendStyle>(&mut self, (x, y): BackendCoord, radius: u32, style: &S, _fill: bool) -> Drawn {
        let class = class(style.color());
        let dots = Path::Dots(class.clone(), radius);
        if self.path.as_ref() != Some(&dots) {
            self.end_path();
            let opacity = opacity(style.color());
            let _ = write!(self.into, "<path class=\"dots {class}\"{opacity} stroke-width=\"{}\" d=\"", radius * 2);
            self.path = Some(dots);
        }
        // A line of zero length with round ends is a dot.
        let _ = write!(self.into, "M{x},{y}h0");
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Drawn {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let dy = match style.anchor().v_pos {
            VPos::Top => "0.76em",
            VPos::Center => "0.35em",
            VPos::Bottom => "-0.3em",
        };
        let turn = match style.transform() {
            FontTransform::Rotate90 => format!(" transform=\"rotate(90 {x} {y})\""),
            FontTransform::Rotate180 => format!(" transform=\"rotate(180 {x} {y})\""),
            FontTransform::Rotate270 => format!(" transform=\"rotate(270 {x} {y})\""),
            FontTransform::None => String::new(),
        };
        let (class, text) = (class(style.color()), escape(text));
        self.write(format_args!(
            "<text class=\"t {class}\" x=\"{x}\" y=\"{y}\" dy=\"{dy}\" text-anchor=\"{anchor}\"{turn}>{text}</text>"
        ))
    }
}
