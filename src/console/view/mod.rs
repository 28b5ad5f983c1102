//! placeholder
use super::{state::State, theme::Theme};
use ratatui::Frame;
pub(super) fn draw(_state: &State, _theme: &Theme, _frame: &mut Frame<'_>) {}
