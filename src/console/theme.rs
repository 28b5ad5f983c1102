//! Colours and symbols. Meaning is always in a word or a symbol too; colour only helps the eye.

use ratatui::{
    style::{Color, Modifier, Style},
    symbols::border,
};

/// What the colours are to be read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// The terminal's own dark background.
    #[default]
    Dark,
    /// The terminal's own light background.
    Light,
    /// White and bright colours on black, whatever the terminal's background is; nothing is dimmed.
    Contrast,
}

/// The colours that a theme is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Palette {
    /// Bold, dim and reversed only.
    None,
    /// The terminal's own sixteen, as they are read on a dark background.
    Sixteen,
    /// The terminal's own sixteen without those that are pale on a light background.
    SixteenLight,
    /// The brightest of the terminal's own sixteen, on black.
    SixteenContrast,
    /// Of 256 colours, those that are read on a dark background.
    Dark,
    /// Of 256 colours, those that are read on a light background.
    Light,
    /// Of 256 colours, the brightest, on black.
    Contrast,
}

/// Foregrounds of a palette, and the background where it has one of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Colours {
    good: Option<Color>,
    warn: Option<Color>,
    bad: Option<Color>,
    accent: Option<Color>,
    /// What is of less weight; without a colour it is dimmed.
    dim: Option<Color>,
    base: Option<(Color, Color)>,
}

impl Palette {
    /// The colours for a tone on a terminal that shows so many.
    const fn of(tone: Tone, many: bool) -> Self {
        match (tone, many) {
            (Tone::Dark, true) => Self::Dark,
            (Tone::Light, true) => Self::Light,
            (Tone::Contrast, true) => Self::Contrast,
            (Tone::Dark, false) => Self::Sixteen,
            (Tone::Light, false) => Self::SixteenLight,
            (Tone::Contrast, false) => Self::SixteenContrast,
        }
    }

    fn colours(self) -> Colours {
        use Color::{
            Black, Blue, Cyan, Green, Indexed, LightCyan, LightGreen, LightRed, LightYellow,
            Magenta, Red, White, Yellow,
        };
        let of = |[good, warn, bad, accent]: [Color; 4]| Colours {
            good: Some(good),
            warn: Some(warn),
            bad: Some(bad),
            accent: Some(accent),
            dim: None,
            base: None,
        };
        let on_black = |colours, dim, white, black| Colours {
            dim: Some(dim),
            base: Some((white, black)),
            ..of(colours)
        };
        match self {
            Self::None => Colours::default(),
            Self::Sixteen => of([Green, Yellow, Red, Cyan]),
            Self::SixteenLight => of([Green, Magenta, Red, Blue]),
            Self::SixteenContrast => {
                on_black([LightGreen, LightYellow, LightRed, LightCyan], Color::Gray, White, Black)
            }
            Self::Dark => of([78, 214, 203, 75].map(Indexed)),
            Self::Light => of([22, 94, 124, 25].map(Indexed)),
            Self::Contrast => {
                let bright = [120, 226, 217, 159].map(Indexed);
                on_black(bright, Indexed(252), Indexed(231), Indexed(16))
            }
        }
    }
}

/// Every style and symbol of the screen.
#[derive(Clone, Debug)]
pub(super) struct Theme {
    /// What everything is drawn on.
    pub base: Style,
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
        let colours = palette.colours();
        let fg = |colour: Option<Color>| colour.map_or(plain, |colour| plain.fg(colour));
        let base = colours.base.map_or(plain, |(fg, bg)| plain.fg(fg).bg(bg));
        let dim = match colours.dim {
            Some(colour) => plain.fg(colour),
            None => plain.add_modifier(Modifier::DIM),
        };
        Self {
            base,
            plain,
            strong: bold,
            dim,
            good: fg(colours.good),
            warn: fg(colours.warn).add_modifier(Modifier::BOLD),
            bad: fg(colours.bad).add_modifier(Modifier::BOLD),
            accent: fg(colours.accent),
            selected: fg(colours.accent).add_modifier(Modifier::BOLD),
            marked: plain.add_modifier(Modifier::REVERSED),
            ascii,
            symbols: if ascii { ASCII } else { UNICODE },
        }
    }

    /// The theme that the operator, the terminal and the environment call for.
    pub(super) fn detect(tone: Tone, no_color: bool, ascii: bool) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let term = variable("TERM");
        let palette = if no_color || !variable("NO_COLOR").is_empty() || term == "dumb" {
            Palette::None
        } else {
            let many = !variable("COLORTERM").is_empty() || term.contains("256");
            Palette::of(tone, many)
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
        for style in [theme.base, theme.good, theme.warn, theme.bad, theme.accent, theme.selected] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }

    #[test]
    fn a_tone_takes_what_the_terminal_has() {
        assert_eq!(Palette::of(Tone::Light, true), Palette::Light);
        assert_eq!(Palette::of(Tone::Contrast, false), Palette::SixteenContrast);
        assert_eq!(Palette::of(Tone::default(), true), Palette::Dark);
    }

    /// The relative luminance of one of the 256 colours, as WCAG 2 has it, 0 to 1.
    fn luminance(index: u8) -> f64 {
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        let rgb = match index {
            232.. => [8 + 10 * (index - 232); 3],
            16.. => {
                let cube = index - 16;
                [cube / 36, cube / 6 % 6, cube % 6].map(level)
            }
            _ => panic!("{index} is the terminal's own"),
        };
        let linear = rgb.map(|channel| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(one: u8, other: u8) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_can_be_read_on_their_backgrounds() {
        let index = |colour: Option<Color>| match colour {
            Some(Color::Indexed(index)) => index,
            other => panic!("{other:?}"),
        };
        // Black and the greys that terminals take for dark; white and a grey that is nearly white.
        let cases: [(Palette, &[u8], f64); 3] = [
            (Palette::Dark, &[16, 234, 235], 4.5),
            (Palette::Light, &[231, 255], 4.5),
            (Palette::Contrast, &[16], 7.0),
        ];
        for (palette, backgrounds, least) in cases {
            let colours = palette.colours();
            for colour in [colours.good, colours.warn, colours.bad, colours.accent] {
                for background in backgrounds {
                    let ratio = contrast(index(colour), *background);
                    assert!(ratio >= least, "{palette:?} {colour:?} on {background}: {ratio:.1}");
                }
            }
        }
        let theme = Theme::new(Palette::Contrast, false);
        assert!(contrast(index(theme.base.fg), index(theme.base.bg)) >= 7.0);
        assert!(contrast(index(theme.dim.fg), index(theme.base.bg)) >= 7.0);
    }
}
