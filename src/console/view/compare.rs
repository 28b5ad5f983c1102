use ratatui::{Frame, layout::Rect};

use super::super::{state::State, theme::Theme};

/// Draws the view into the area.
pub(super) fn draw(_state: &State, _theme: &Theme, _frame: &mut Frame<'_>, _area: Rect) {}
