//! Colours and symbols. Meaning is always in a word or a symbol too; colour only helps the eye.

use ratatui::{
    style::{Color, Modifier, Style},
    symbols::border,
};

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Palette {
    /// Bold, dim and reversed only.
    None,
    Sixteen,
    /// 256 or more: mid tones that can be read on light and dark backgrounds.
    Many,
}

/// Every style and symbol of the screen.
#[derive(Clone, Debug)]
pub(super) struct Theme {
    pub plain: Style,
    pub strong: Style,
    pub dim: Style,
    pub good: Style,
    pub warn: Style,
    pub bad: Style,
    pub accent: Style,
    /// The border of what is selected.
    pub selected: Style,
    /// The cursor of a typed field, and what is marked.
    pub marked: Style,
    pub ascii: bool,
    pub symbols: Symbols,
}

/// Symbols of the screen, in Unicode or ASCII.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbols {
    /// Between figures of a line.
    pub dot: &'static str,
    /// Beside what is above its SLO.
    pub over: &'static str,
    pub marker: &'static str,
    /// Where there is no figure.
    pub none: &'static str,
    pub ellipsis: &'static str,
    pub dash: &'static str,
    pub full: &'static str,
    pub empty: &'static str,
    pub limit: &'static str,
    /// The parts of the tail: database, pool, generator.
    pub parts: [&'static str; 3],
    pub spark: [&'static str; 8],
    pub border: border::Set<'static>,
}

const UNICODE: Symbols = Symbols {
    dot: " · ",
    over: "▲",
    marker: "▸",
    none: "–",
    ellipsis: "…",
    dash: "–",
    full: "█",
    empty: "░",
    limit: "│",
    parts: ["█", "▒", "░"],
    spark: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    border: border::PLAIN,
};

const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

const ASCII: Symbols = Symbols {
    dot: " | ",
    over: "^",
    marker: ">",
    none: "-",
    ellipsis: "...",
    dash: "-",
    full: "#",
    empty: ".",
    limit: "|",
    parts: ["#", "=", "."],
    spark: ["_", ".", ",", "-", "=", "+", "*", "#"],
    border: ASCII_BORDER,
};

impl Theme {
    pub(super) fn new(palette: Palette, ascii: bool) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let fg = |sixteen: Color, many: u8| match palette {
            Palette::None => plain,
            Palette::Sixteen => plain.fg(sixteen),
            Palette::Many => plain.fg(Color::Indexed(many)),
        };
        Self {
            plain,
            strong: bold,
            dim: plain.add_modifier(Modifier::DIM),
            good: fg(Color::Green, 35),
            warn: fg(Color::Yellow, 172).add_modifier(Modifier::BOLD),
            bad: fg(Color::Red, 160).add_modifier(Modifier::BOLD),
            accent: fg(Color::Cyan, 32),
            selected: fg(Color::Cyan, 32).add_modifier(Modifier::BOLD),
            marked: plain.add_modifier(Modifier::REVERSED),
            ascii,
            symbols: if ascii { ASCII } else { UNICODE },
        }
    }

    /// The theme that the terminal and the operator's environment call for.
    pub(super) fn detect(no_color: bool, ascii: bool) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let term = variable("TERM");
        let palette = if no_color || !variable("NO_COLOR").is_empty() || term == "dumb" {
            Palette::None
        } else if !variable("COLORTERM").is_empty() || term.contains("256") {
            Palette::Many
        } else {
            Palette::Sixteen
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
        Self::new(palette, ascii || !is_utf8(&locale))
    }
}

/// Whether a locale writes UTF-8: the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set decides.
fn is_utf8(locale: &[String]) -> bool {
    let first = locale.iter().find(|value| !value.is_empty());
    first.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        let locale = |values: [&str; 3]| is_utf8(&values.map(str::to_owned));
        assert!(locale(["", "", "en_US.UTF-8"]));
        assert!(locale(["C.utf8", "", "C"]));
        assert!(!locale(["C", "", "en_US.UTF-8"]));
        assert!(!locale(["", "", ""]));
    }

    #[test]
    fn without_colours_no_style_has_one() {
        let theme = Theme::new(Palette::None, false);
        for style in [theme.good, theme.warn, theme.bad, theme.accent, theme.selected] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
