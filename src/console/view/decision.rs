//! The pending decision: what is asked, what each answer does and costs, what waiting costs.

use std::cmp::Reverse;

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::model::{
    Basis, Decision, DecisionAction, DecisionOption, Money, UnixMs, format_duration,
};

use super::{
    super::{
        action::{Action, Layer},
        state::{DecisionPanel, State, needs_confirmation, spends_more},
        theme::Theme,
    },
    columns::{Column, Entry, Kind, lay},
    figures::{about, money},
    panel::{Panel, blank},
    text::{Part, Row, line, pad_left, words, wrap},
};

/// The decision as a panel.
pub(super) fn panel(
    state: &State,
    decision: &Decision,
    dialog: &DecisionPanel,
    theme: &Theme,
    width: u16,
) -> Panel {
    let width = Panel::inner_width(width);
    let plain = |rank: u8, text: &str, style| {
        wrap(text, width, &theme.symbols)
            .into_iter()
            .map(move |text| Row::new(rank, Line::styled(text, style)))
    };
    let mut rows: Vec<Row> = plain(4, &decision.situation, theme.plain).collect();
    rows.extend(plain(1, &decision.question, theme.strong));
    rows.push(blank(8));
    rows.extend(options(decision, dialog, theme, width).into_iter().map(|l| Row::new(0, l)));
    rows.push(blank(9));
    rows.push(Row::new(2, waiting(state, decision, theme, width)));
    rows.extend(shares(decision, theme, width).map(|line| Row::new(5, line)));
    if let Some(text) = confirmation(state, decision, dialog) {
        let style = theme.warn;
        let mut lines = wrap(&text, width, &theme.symbols).into_iter();
        rows.extend(lines.next().map(|text| Row::new(0, Line::styled(text, style))));
        rows.extend(lines.map(|text| Row::new(3, Line::styled(text, style))));
    }
    Panel {
        left: vec![
            Part::new(0, " DECISION ", theme.warn),
            Part::new(3, format!("{} {} ", theme.symbols.dot.trim(), decision.id), theme.plain),
        ],
        right: countdown(state, decision, theme),
        rows,
        border: theme.warn,
    }
}

/// The safe default and the time until it is taken.
fn countdown(state: &State, decision: &Decision, theme: &Theme) -> Vec<Part> {
    let safe = safe_label(decision);
    let left = format_duration(seconds_left(state, decision));
    vec![
        Part::new(1, format!(" safe default \"{safe}\" in {left} "), theme.warn)
            .or(format!(" safe default in {left} ")),
    ]
}

fn safe_label(decision: &Decision) -> &str {
    let safe = decision.options.iter().find(|option| option.key == decision.safe);
    safe.map_or(decision.safe.as_str(), |option| option.label.as_str())
}

/// By the engine's clock: with the engine lost the countdown stands still, as all figures do.
fn seconds_left(state: &State, decision: &Decision) -> f64 {
    let now = state.snapshot.as_ref().map_or(UnixMs(0), |snapshot| snapshot.at);
    decision.deadline.seconds_since(now).ceil()
}

/// What an option is, takes, spends and burns.
const COLUMNS: [Column; 6] = [
    Column { head: "", rank: 0, kind: Kind::Left },
    Column { head: "", rank: 1, kind: Kind::Left },
    Column { head: "", rank: 5, kind: Kind::Left },
    Column { head: "", rank: 2, kind: Kind::Right },
    Column { head: "", rank: 4, kind: Kind::Right },
    Column { head: "", rank: 3, kind: Kind::Left },
];
/// Columns of an option's mark and digit, and of the word beside the safe one.
const BESIDE_LABEL: usize = 5 + 8;
/// Columns from which there is room for more than figures.
const WIDE: usize = 100;

fn options(
    decision: &Decision,
    dialog: &DecisionPanel,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let longest = decision.options.iter().map(|option| option.label.width()).max().unwrap_or(0);
    let has_room = longest + BESIDE_LABEL <= width;
    let longest_of = |amount: fn(&DecisionOption) -> Money| {
        let widths = decision.options.iter().map(|option| money(amount(option)).width());
        widths.max().unwrap_or(0)
    };
    let spends = longest_of(|option| option.spends);
    let burns = longest_of(|option| option.burn_per_hour);
    let row = |(at, option): (usize, &DecisionOption)| {
        let marked = dialog.marked == Some(at);
        let mark = if marked { theme.symbols.marker } else { " " };
        let style = if marked { theme.selected } else { theme.strong };
        let label = if has_room { &option.label } else { &option.key };
        let safe = if option.key == decision.safe { "(safe)" } else { "" };
        vec![
            Entry::new(format!("{mark} {}", at + 1), style),
            Entry::new(label.clone(), theme.plain),
            Entry::new(takes(option, width), theme.plain),
            Entry::new(format!("+ {} USD", pad_left(&money(option.spends), spends)), theme.plain),
            Entry::new(
                format!("then {}/h", pad_left(&money(option.burn_per_hour), burns)),
                theme.plain,
            ),
            Entry::new(safe, theme.good),
        ]
    };
    let rows: Vec<_> = decision.options.iter().enumerate().map(row).collect();
    lay(&COLUMNS, &rows, theme, width).rows
}

fn takes(option: &DecisionOption, width: usize) -> String {
    match about(option.takes_s) {
        _ if option.takes_s == 0 => String::new(),
        takes if width < WIDE => takes,
        takes => format!("about {takes}"),
    }
}

fn waiting(state: &State, decision: &Decision, theme: &Theme, width: usize) -> Line<'static> {
    let basis = state.snapshot.as_ref().map(|snapshot| snapshot.cost.basis);
    let simulated = if basis == Some(Basis::Simulated) { " simulated" } else { "" };
    let burn = format!("While you wait: {} USD/h", money(decision.burn_per_hour));
    let waited = format!("waited for {} USD", money(decision.waited_cost));
    let parts = vec![
        Part::new(0, format!("{burn}{simulated}"), theme.plain).or(burn),
        Part::new(1, waited, theme.plain),
    ];
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}

/// Whose burn it is, the dearest first, and what an option would save of it.
fn shares(decision: &Decision, theme: &Theme, width: usize) -> Option<Line<'static>> {
    let mut burn = decision.burn_by_configuration.clone();
    burn.retain(|(_, amount)| *amount > Money::ZERO);
    burn.sort_by_key(|(_, amount)| Reverse(*amount));
    if burn.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for (rank, (id, amount)) in (2..).zip(&burn) {
        let before = if rank == 2 { "of which " } else { "" };
        parts.push(Part::new(rank, format!("{before}{id} {}", money(*amount)), theme.plain));
    }
    for (at, option) in decision.options.iter().enumerate() {
        let DecisionAction::ContinueWithout { configurations } = &option.action else { continue };
        let saved = burn.iter().filter(|(id, _)| configurations.contains(id));
        let saved: Money = saved.map(|(_, amount)| *amount).sum();
        if saved > Money::ZERO {
            let text = format!("option {} saves {}/h", at + 1, money(saved));
            parts.push(Part::new(1, text, theme.plain));
        }
    }
    Some(line(parts, &Span::styled(theme.symbols.dot, theme.dim), width))
}

/// What the marked option asks before it is taken.
fn confirmation(state: &State, decision: &Decision, dialog: &DecisionPanel) -> Option<String> {
    let at = dialog.marked?;
    let option = decision.options.get(at)?;
    let key = state.keymap.key_for(Layer::Decision, Action::Submit)?;
    if !needs_confirmation(decision, option) {
        return Some(format!("{key} takes option {}", at + 1));
    }
    Some(format!("Option {} {}: {key} confirms", at + 1, consequence(decision, option)))
}

fn consequence(decision: &Decision, option: &DecisionOption) -> String {
    match &option.action {
        DecisionAction::Teardown => {
            "ends the run and removes everything it made (asks for its name)".to_owned()
        }
        DecisionAction::ContinueWithout { configurations } => {
            let names: Vec<_> = configurations.iter().map(|id| id.as_str()).collect();
            format!("removes {}", names.join(", "))
        }
        _ if spends_more(decision, option) => "spends more than the safe default".to_owned(),
        _ => "is the safe default".to_owned(),
    }
}

/// One line while the panel is hidden.
pub(super) fn banner(
    state: &State,
    decision: &Decision,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let left = format_duration(seconds_left(state, decision));
    let key = state.keymap.key_for(Layer::Overview, Action::Decision).unwrap_or_default();
    let question = words(&decision.question, width / 2, &theme.symbols);
    let safe = safe_label(decision);
    let parts = vec![
        Part::new(0, " DECISION pending", theme.warn),
        Part::new(4, question, theme.strong),
        Part::new(2, format!("safe default \"{safe}\" in {left}"), theme.warn)
            .or(format!("safe in {left}")),
        Part::new(
            3,
            format!("{} USD/h while you wait", money(decision.burn_per_hour)),
            theme.plain,
        ),
        Part::new(1, format!("{key} opens"), theme.strong),
    ];
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
}
