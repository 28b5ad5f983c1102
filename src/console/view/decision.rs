//! The pending decision: what is asked, what each answer does and costs, what waiting costs.

use ratatui::text::{Line, Span};

use crate::model::{
    Basis, Decision, DecisionAction, DecisionOption, Money, UnixMs, format_duration,
};

use super::{
    super::{
        action::{Action, Layer},
        state::{DecisionPanel, State, needs_confirmation, spends_more},
        theme::Theme,
    },
    figures::{about, money},
    panel::{Panel, blank},
    text::{Part, Row, line, pad, words, wrap},
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
    for at in 0..decision.options.len() {
        rows.push(Row::new(0, option(decision, dialog, at, theme, width)));
    }
    rows.push(blank(9));
    rows.push(Row::new(2, waiting(state, decision, theme, width)));
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

fn option(
    decision: &Decision,
    dialog: &DecisionPanel,
    at: usize,
    theme: &Theme,
    width: usize,
) -> Line<'static> {
    let option = &decision.options[at];
    let marked = dialog.marked == Some(at);
    let mark = if marked { theme.symbols.marker } else { " " };
    let style = if marked { theme.selected } else { theme.strong };
    let labels = decision.options.iter().map(|option| option.label.chars().count());
    let column = labels.max().unwrap_or(0).min(width / 2);
    let label = words(&option.label, width.saturating_sub(5), &theme.symbols);
    let mut parts = vec![
        Part::new(0, format!("{mark} {}", at + 1), style),
        Part::new(1, pad(&label, column), theme.plain).or(option.key.clone()),
    ];
    let takes = column_of(decision, takes);
    let spends = column_of(decision, |option| money(option.spends));
    let burn = column_of(decision, |option| money(option.burn_per_hour));
    parts.push(Part::new(5, takes.0[at].clone() + &" ".repeat(takes.1[at]), theme.plain));
    let spent = format!("+ {}{} USD", " ".repeat(spends.1[at]), spends.0[at]);
    parts.push(Part::new(2, spent, theme.plain));
    let then = format!("then {}{}/h", " ".repeat(burn.1[at]), burn.0[at]);
    parts.push(Part::new(4, then, theme.plain));
    if option.key == decision.safe {
        parts.push(Part::new(3, "(safe default)", theme.good).or("(safe)"));
    }
    line(parts, &Span::raw("  "), width)
}

fn takes(option: &DecisionOption) -> String {
    if option.takes_s == 0 { String::new() } else { format!("about {}", about(option.takes_s)) }
}

/// The texts of a column, and what each lacks to the longest.
fn column_of(
    decision: &Decision,
    text: impl Fn(&DecisionOption) -> String,
) -> (Vec<String>, Vec<usize>) {
    let texts: Vec<String> = decision.options.iter().map(text).collect();
    let widths: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    let longest = widths.iter().copied().max().unwrap_or(0);
    (texts, widths.into_iter().map(|width| longest - width).collect())
}

fn waiting(state: &State, decision: &Decision, theme: &Theme, width: usize) -> Line<'static> {
    let basis = state.snapshot.as_ref().map(|snapshot| snapshot.cost.basis);
    let simulated = if basis == Some(Basis::Simulated) { " simulated" } else { "" };
    let mut burn = decision.burn_by_configuration.clone();
    burn.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
    let burn = burn.iter().filter(|(_, amount)| *amount > Money::ZERO);
    let shares: Vec<String> = burn.map(|(id, amount)| format!("{id} {}", money(*amount))).collect();
    let mut parts = vec![Part::new(
        0,
        format!("While you wait: {} USD/h{simulated}", money(decision.burn_per_hour)),
        theme.plain,
    )];
    if !shares.is_empty() {
        parts.push(Part::new(2, format!("of which {}", shares.join(", ")), theme.plain));
    }
    let waited = format!("waited for {} USD", money(decision.waited_cost));
    parts.push(Part::new(1, waited, theme.plain));
    line(parts, &Span::styled(theme.symbols.dot, theme.dim), width)
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
