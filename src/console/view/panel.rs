//! A box that has the room of its own that it needs: nothing lies over anything else.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Block, Paragraph},
};

use super::{
    super::theme::Theme,
    text::{Part, Row, fit_rows, line, two_sided},
};

/// A dialog's content.
pub(super) struct Panel {
    pub left: Vec<Part>,
    pub right: Vec<Part>,
    pub rows: Vec<Row>,
    pub border: Style,
}

impl Panel {
    /// The rows it would like to have, its border included.
    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX).saturating_add(2)
    }

    /// The fewest rows in which it says what it must.
    pub(super) fn least_height(&self) -> u16 {
        let rows = self.rows.iter().filter(|row| row.rank == 0).count();
        u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2)
    }

    /// The columns inside a panel on a screen of this width.
    pub(super) fn inner_width(width: u16) -> usize {
        usize::from(width.saturating_sub(4))
    }

    /// Draws it into the area, or says that the area is too small.
    pub(super) fn draw(self, theme: &Theme, frame: &mut Frame<'_>, area: Rect) {
        let least = self.least_height();
        let width = Self::inner_width(area.width);
        let inner = Rect {
            x: area.x + 2,
            y: area.y + 1,
            width: area.width.saturating_sub(4),
            height: area.height.saturating_sub(2),
        };
        let lines = fit_rows(self.rows, usize::from(inner.height));
        let (Some(lines), true) = (lines, area.width > 4 && area.height > 2) else {
            return larger(theme, frame, area, least);
        };
        let title = two_sided(self.left, self.right, &Span::raw(""), width);
        let title = super::pane::dashed(title, theme);
        let block = Block::bordered()
            .border_set(theme.symbols.border)
            .border_style(self.border)
            .title_top(title);
        frame.render_widget(block, area);
        frame.render_widget(Paragraph::new(lines), inner);
    }
}

/// Asks for a larger screen.
fn larger(theme: &Theme, frame: &mut Frame<'_>, area: Rect, rows: u16) {
    let text = format!("make me larger: {rows} rows are needed here");
    let parts = vec![Part::new(0, text, theme.warn).or("make me larger")];
    let text = line(parts, &Span::raw(""), usize::from(area.width));
    frame.render_widget(Paragraph::new(text), area);
}

/// An empty row.
pub(super) fn blank(rank: u8) -> Row {
    Row::new(rank, Line::default())
}
