//! Which console drives the run. Pure: it is told the time.

use crate::model::{ConsoleStatus, ControlStatus, UnixMs};

/// How long the console that drives may think about handing over, in milliseconds: then control
/// goes over by itself, since nobody may be there.
const ANSWER_MS: u64 = 20_000;

/// Who asks for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaker {
    Console {
        number: u32,
    },
    /// The command line and headless runs: whoever has a shell here needs no leave.
    Other(&'static str),
}

/// The consoles that are attached, and the one that drives.
#[derive(Debug, Default)]
pub struct Control(ControlStatus);

impl Control {
    pub const fn status(&self) -> &ControlStatus {
        &self.0
    }

    /// The console of this number in words, for example `console 2 (bo on pts/5)`.
    pub fn words(&self, number: u32) -> String {
        match self.0.consoles.iter().find(|console| console.number == number) {
            Some(console) if !console.name.is_empty() => {
                format!("console {number} ({})", console.name)
            }
            _ => format!("console {number}"),
        }
    }

    /// Who speaks, for the journal.
    pub fn name_of(&self, speaker: &Speaker) -> String {
        match speaker {
            Speaker::Console { number } => self.words(*number),
            Speaker::Other(name) => (*name).to_owned(),
        }
    }

    /// A console has come. The first one drives.
    pub fn attach(&mut self, console: ConsoleStatus) {
        self.0.holder.get_or_insert(console.number);
        self.0.consoles.push(console);
    }

    /// A console has gone. What the others should know: where control went, if it was its own.
    pub fn leave(&mut self, number: u32) -> Option<String> {
        self.0.consoles.retain(|console| console.number != number);
        let asker = self.0.asked.map(|(asker, _)| asker);
        if asker == Some(number) {
            self.0.asked = None;
        }
        if self.0.holder != Some(number) {
            return None;
        }
        self.0.asked = None;
        let longest = self.0.consoles.first().map(|console| console.number);
        self.0.holder = asker.filter(|asker| *asker != number).or(longest);
        self.0
            .holder
            .map(|holder| format!("{} drives now: console {number} left", self.words(holder)))
    }

    /// Whether a speaker may drive the run.
    ///
    /// # Errors
    /// Who does, and what can be done about it.
    pub fn may_drive(&self, speaker: &Speaker) -> Result<(), String> {
        match (speaker, self.0.holder) {
            (Speaker::Console { number }, Some(holder)) if *number != holder => {
                Err(format!("{} drives: ask for control first", self.words(holder)))
            }
            _ => Ok(()),
        }
    }

    /// A console asks for control: it gets it at once where nobody has it.
    ///
    /// # Errors
    /// When it has control, another one asks already, or it is no console.
    pub fn ask(&mut self, speaker: &Speaker, now: UnixMs) -> Result<(), String> {
        let Speaker::Console { number } = speaker else {
            return Err("only a console asks for control: the command line needs none".to_owned());
        };
        match (self.0.holder, self.0.asked) {
            (Some(holder), _) if holder == *number => Err("this console drives already".to_owned()),
            (_, Some((asker, _))) if asker == *number => {
                Err("control is asked for already: wait for the answer".to_owned())
            }
            (_, Some((asker, _))) => Err(format!("{} asked first", self.words(asker))),
            (Some(_), None) => {
                self.0.asked = Some((*number, UnixMs(now.0 + ANSWER_MS)));
                Ok(())
            }
            (None, None) => {
                self.0.holder = Some(*number);
                Ok(())
            }
        }
    }

    /// The console that drives hands control to the one that asked, or keeps it. What happened.
    ///
    /// # Errors
    /// When the speaker does not drive, or nobody asked.
    pub fn answer(&mut self, speaker: &Speaker, give: bool) -> Result<String, String> {
        self.may_drive(speaker)?;
        let Some((asker, _)) = self.0.asked else {
            return Err("no console asks for control".to_owned());
        };
        self.0.asked = None;
        if give {
            self.0.holder = Some(asker);
            return Ok(format!("{} drives now", self.words(asker)));
        }
        Ok(format!("{} keeps control, {} asked", self.name_of(speaker), self.words(asker)))
    }

    /// Hands control over where nobody has answered in time. What happened.
    pub fn tick(&mut self, now: UnixMs) -> Option<String> {
        let (asker, deadline) = self.0.asked?;
        if now < deadline {
            return None;
        }
        self.0.asked = None;
        self.0.holder = Some(asker);
        Some(format!("{} drives now: nobody answered", self.words(asker)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(numbers: &[u32]) -> Control {
        let mut control = Control::default();
        for number in numbers {
            let name = format!("user on pts/{number}");
            control.attach(ConsoleStatus { number: *number, name, since: UnixMs(0) });
        }
        control
    }

    const fn console(number: u32) -> Speaker {
        Speaker::Console { number }
    }

    #[test]
    fn the_first_console_drives_and_the_others_watch() {
        let control = with(&[1, 2]);
        assert_eq!(control.may_drive(&console(1)), Ok(()));
        let refused = control.may_drive(&console(2)).unwrap_err();
        assert_eq!(refused, "console 1 (user on pts/1) drives: ask for control first");
        assert_eq!(control.may_drive(&Speaker::Other("command line")), Ok(()));
    }

    #[test]
    fn control_is_asked_for_and_handed_over_or_kept() {
        let mut control = with(&[1, 2, 3]);
        control.ask(&console(2), UnixMs(0)).unwrap();
        assert!(control.ask(&console(3), UnixMs(0)).unwrap_err().contains("asked first"));
        assert!(control.answer(&console(3), true).is_err(), "only who has it can give it");
        control.answer(&console(1), false).unwrap();
        assert_eq!((control.status().holder, control.status().asked), (Some(1), None));
        control.ask(&console(3), UnixMs(0)).unwrap();
        control.answer(&console(1), true).unwrap();
        assert_eq!(control.status().holder, Some(3));
        assert!(control.ask(&console(3), UnixMs(0)).unwrap_err().contains("drives already"));
    }

    #[test]
    fn without_an_answer_control_goes_over_by_itself() {
        let mut control = with(&[1, 2]);
        control.ask(&console(2), UnixMs(1_000)).unwrap();
        assert_eq!(control.tick(UnixMs(20_999)), None);
        assert!(control.tick(UnixMs(21_000)).is_some());
        assert_eq!(control.status().holder, Some(2));
    }

    #[test]
    fn who_leaves_passes_control_to_who_asked_or_has_been_here_longest() {
        let mut control = with(&[1, 2, 3]);
        control.ask(&console(3), UnixMs(0)).unwrap();
        assert!(control.leave(1).is_some());
        assert_eq!((control.status().holder, control.status().asked), (Some(3), None));
        control.leave(3);
        assert_eq!(control.status().holder, Some(2));
        assert_eq!(control.leave(2), None, "nobody is left to be told");
        assert_eq!(control.status().holder, None);
        control.attach(ConsoleStatus { number: 4, name: String::new(), since: UnixMs(0) });
        assert_eq!(control.status().holder, Some(4));
    }

    #[test]
    fn an_asker_that_leaves_asks_no_more() {
        let mut control = with(&[1, 2]);
        control.ask(&console(2), UnixMs(0)).unwrap();
        control.leave(2);
        assert_eq!((control.status().holder, control.status().asked), (Some(1), None));
    }
}
