//! What the operator types to start a cell or to set a rate, checked in place.

use tui_input::{Input, InputRequest};

use crate::model::{Arrivals, Command, ConfigurationId, ConfigurationStatus, Load, RateStep, When};

use super::record::Spans;

/// Used where no cell has run yet: a short pilot cell.
const PILOT: Spans = Spans { warmup_s: 60.0, measure_s: 120.0 };
const PILOT_CONNECTIONS: u32 = 16;
const PILOT_RATE: f64 = 100.0;
/// A day: what is longer is a slip of the keyboard.
const LONGEST_SPAN_S: f64 = 86_400.0;
/// How long a ramp takes unless it is typed, in seconds.
const RAMP_S: f64 = 60.0;
const LONGEST_INPUT: usize = 12;

/// One line of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Kind,
    Rate,
    Connections,
    WarmUp,
    Measure,
    When,
}

impl Field {
    /// The field's name on the screen.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Rate => "rate /s",
            Self::Connections => "connections",
            Self::WarmUp => "warm-up s",
            Self::Measure => "measure s",
            Self::When => "when",
        }
    }
}

/// A cell in the making.
#[derive(Clone, Debug)]
pub(super) struct StartForm {
    pub configuration: ConfigurationId,
    /// Whether the configuration runs a cell as the form is opened.
    pub busy: bool,
    pub open_loop: bool,
    pub when: When,
    pub focus: Field,
    /// Whether the field in focus has not been typed into: the first character replaces it.
    pub fresh: bool,
    pub max_rate: f64,
    /// What is wrong with a field, and what would be right.
    pub errors: Vec<(Field, String)>,
    arrivals: Arrivals,
    rate: Input,
    connections: Input,
    warmup: Input,
    measure: Input,
}

impl StartForm {
    /// A form filled with the configuration's running or last load.
    pub(super) fn new(
        status: &ConfigurationStatus,
        spans: Option<Spans>,
        max_rate: f64,
        when: When,
    ) -> Self {
        let running = status.cell.as_ref().map(|cell| cell.load);
        let load = running.or_else(|| status.last.as_ref().map(|last| last.load));
        let load = load.unwrap_or(Load::Closed { connections: PILOT_CONNECTIONS });
        let spans = spans.unwrap_or(PILOT);
        let arrivals = match load {
            Load::Open { arrivals, .. } => arrivals,
            Load::Closed { .. } => Arrivals::default(),
        };
        Self {
            configuration: status.id.clone(),
            busy: running.is_some(),
            open_loop: load.rate().is_some(),
            when,
            focus: Field::Kind,
            fresh: true,
            max_rate,
            errors: Vec::new(),
            arrivals,
            rate: number(load.rate().unwrap_or(PILOT_RATE.min(max_rate))),
            connections: Input::new(load.connections().to_string()),
            warmup: number(spans.warmup_s),
            measure: number(spans.measure_s),
        }
    }

    /// Whether the field in focus is typed into, not chosen.
    pub(super) const fn is_typed(&self) -> bool {
        self.input(self.focus).is_some()
    }

    /// The fields that the form has now: a closed loop has no rate.
    pub(super) fn fields(&self) -> Vec<Field> {
        let mut fields = vec![Field::Kind];
        if self.open_loop {
            fields.push(Field::Rate);
        }
        fields.extend([Field::Connections, Field::WarmUp, Field::Measure, Field::When]);
        fields
    }

    /// What a typed field holds; `None` for a choice.
    pub(super) const fn input(&self, field: Field) -> Option<&Input> {
        match field {
            Field::Rate => Some(&self.rate),
            Field::Connections => Some(&self.connections),
            Field::WarmUp => Some(&self.warmup),
            Field::Measure => Some(&self.measure),
            Field::Kind | Field::When => None,
        }
    }

    /// Takes a load that was typed elsewhere; what is not said stays as it was.
    pub(super) fn set_load(
        &mut self,
        open_loop: bool,
        rate: Option<&str>,
        connections: Option<&str>,
    ) {
        self.open_loop = open_loop;
        if let Some(rate) = rate {
            self.rate = Input::new(rate.to_owned());
        }
        if let Some(connections) = connections {
            self.connections = Input::new(connections.to_owned());
        }
    }

    /// What is wrong with a field.
    pub(super) fn error(&self, field: Field) -> Option<&str> {
        self.errors.iter().find(|(wrong, _)| *wrong == field).map(|(_, what)| what.as_str())
    }

    pub(super) fn move_focus(&mut self, forward: bool) {
        let fields = self.fields();
        let at = fields.iter().position(|field| *field == self.focus).unwrap_or(0);
        let step = if forward { 1 } else { fields.len() - 1 };
        self.focus = fields[(at + step) % fields.len()];
        self.fresh = true;
    }

    /// Changes the choice in focus; a typed field has none.
    pub(super) fn change(&mut self) {
        match self.focus {
            Field::Kind => self.open_loop = !self.open_loop,
            Field::When => {
                self.when = if self.when == When::Now { When::After } else { When::Now };
            }
            _ => return,
        }
        self.errors.clear();
    }

    /// Types into the field in focus. Returns whether it took the request.
    pub(super) fn type_in(&mut self, request: InputRequest) -> bool {
        let input = match self.focus {
            Field::Rate => &mut self.rate,
            Field::Connections => &mut self.connections,
            Field::WarmUp => &mut self.warmup,
            Field::Measure => &mut self.measure,
            Field::Kind | Field::When => return false,
        };
        if self.fresh && matches!(request, InputRequest::InsertChar(c) if is_of_number(c)) {
            input.reset();
        }
        if !type_number(input, request) {
            return false;
        }
        self.fresh = false;
        let focus = self.focus;
        self.errors.retain(|(field, _)| *field != focus);
        true
    }

    /// The command, or the fields that are wrong with the first of them in focus.
    pub(super) fn submit(&mut self) -> Option<Command> {
        let rate = check_rate(self.rate.value(), self.max_rate);
        let connections = check_connections(self.connections.value());
        let warmup = check_span(self.warmup.value(), 0.0);
        let measure = check_span(self.measure.value(), 1.0);
        self.errors.clear();
        if self.open_loop {
            self.note(Field::Rate, &rate);
        }
        self.note(Field::Connections, &connections);
        self.note(Field::WarmUp, &warmup);
        self.note(Field::Measure, &measure);
        if let Some((field, _)) = self.errors.first() {
            self.focus = *field;
            self.fresh = true;
            return None;
        }
        let connections = connections.ok()?;
        let load = if self.open_loop {
            Load::Open { rate: rate.ok()?, arrivals: self.arrivals, connections }
        } else {
            Load::Closed { connections }
        };
        Some(Command::StartCell {
            configuration: self.configuration.clone(),
            load,
            warmup_s: warmup.ok()?,
            measure_s: measure.ok()?,
            when: self.when,
        })
    }

    fn note<T>(&mut self, field: Field, checked: &Result<T, String>) {
        if let Err(what) = checked {
            self.errors.push((field, what.clone()));
        }
    }
}

/// A rate being typed for a running open cell.
#[derive(Clone, Debug)]
pub(super) struct RateForm {
    pub configuration: ConfigurationId,
    /// The rate as the form was opened, arrivals per second.
    pub current: f64,
    pub max_rate: f64,
    pub input: Input,
    pub error: Option<String>,
}

impl RateForm {
    pub(super) fn new(configuration: ConfigurationId, current: f64, max_rate: f64) -> Self {
        Self { configuration, current, max_rate, input: Input::default(), error: None }
    }

    /// Types into the form. Returns whether it took the request.
    pub(super) fn type_in(&mut self, request: InputRequest) -> bool {
        let taken = type_number(&mut self.input, request);
        if taken {
            self.error = None;
        }
        taken
    }

    /// The command, or `None` with the error set.
    pub(super) fn submit(&mut self) -> Option<Command> {
        match check_rate(self.input.value(), self.max_rate) {
            Ok(rate) => Some(Command::StepRate {
                configuration: self.configuration.clone(),
                step: RateStep::To { rate },
            }),
            Err(what) => {
                self.error = Some(what);
                None
            }
        }
    }
}

/// A ramp being typed: to which rate, over how long.
#[derive(Clone, Debug)]
pub(super) struct RampForm {
    pub configuration: ConfigurationId,
    /// The rate as the form was opened, arrivals per second.
    pub current: f64,
    pub max_rate: f64,
    pub to: Input,
    pub over: Input,
    /// Whether the time is being typed, not the rate.
    pub on_time: bool,
    /// Whether the field in focus has not been typed into: the first character replaces it.
    pub fresh: bool,
    /// What is wrong with the rate, and with the time.
    pub errors: (Option<String>, Option<String>),
}

impl RampForm {
    pub(super) fn new(configuration: ConfigurationId, current: f64, max_rate: f64) -> Self {
        Self {
            configuration,
            current,
            max_rate,
            to: Input::default(),
            over: number(RAMP_S),
            on_time: false,
            fresh: true,
            errors: (None, None),
        }
    }

    pub(super) fn move_focus(&mut self) {
        self.on_time = !self.on_time;
        self.fresh = true;
    }

    /// Types into the field in focus. Returns whether it took the request.
    pub(super) fn type_in(&mut self, request: InputRequest) -> bool {
        let input = if self.on_time { &mut self.over } else { &mut self.to };
        if self.fresh && matches!(request, InputRequest::InsertChar(c) if is_of_number(c)) {
            input.reset();
        }
        let taken = type_number(input, request);
        if taken {
            self.fresh = false;
            if self.on_time { self.errors.1 = None } else { self.errors.0 = None }
        }
        taken
    }

    /// The command, or `None` with the errors set and the first wrong field in focus.
    pub(super) fn submit(&mut self) -> Option<Command> {
        let to = check_rate(self.to.value(), self.max_rate);
        let to = to.and_then(|to| match to {
            to if (to - self.current).abs() < f64::EPSILON => {
                Err(format!("{to} is the rate it has now"))
            }
            to => Ok(to),
        });
        let over = check_span(self.over.value(), 1.0);
        match (to, over) {
            (Ok(to), Ok(over_s)) => {
                let configuration = self.configuration.clone();
                Some(Command::Ramp { configuration, to, over_s })
            }
            (to, over) => {
                self.on_time = to.is_ok();
                self.fresh = true;
                self.errors = (to.err(), over.err());
                None
            }
        }
    }
}

fn number(value: f64) -> Input {
    let text = format!("{value:.2}");
    Input::new(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// Only what can be part of a number is taken, so that every other key keeps its meaning.
fn type_number(input: &mut Input, request: InputRequest) -> bool {
    if matches!(request, InputRequest::InsertChar(c) if !is_of_number(c)) {
        return false;
    }
    let full = input.value().len() >= LONGEST_INPUT;
    if !(full && matches!(request, InputRequest::InsertChar(_))) {
        input.handle(request);
    }
    true
}

/// What belongs to some way of writing a number is kept, and refused in words where it is not
/// ours: dropping it would make another number (`1e9` is not 19). Other letters are keys.
pub(super) fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || ".,_+-eEkKM".contains(c)
}

fn check_rate(text: &str, max: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= max => Ok(rate),
        _ => Err(format!("{}: above 0, at most {max} (max_rate)", found(text))),
    }
}

fn check_connections(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(connections) if connections > 0 => Ok(connections),
        _ => Err(format!("{}: a whole number from 1", found(text))),
    }
}

fn check_span(text: &str, least: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (least..=LONGEST_SPAN_S).contains(&seconds) => Ok(seconds),
        _ => Err(format!("{}: seconds, {least} to {LONGEST_SPAN_S}", found(text))),
    }
}

/// What was typed, as an error names it.
fn found(text: &str) -> String {
    if text.is_empty() { "nothing typed".to_owned() } else { format!("`{text}`") }
}
