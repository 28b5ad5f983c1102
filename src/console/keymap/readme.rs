//! The README's key table is made from the live keymaps.
