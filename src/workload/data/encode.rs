//! How the rows of the data set are written: for a binary COPY, as the values of an INSERT, and as
//! what their checksum is made of.

use std::fmt::Write as _;

use bytes::{BufMut, Bytes, BytesMut};
use md5::{Digest as _, Md5};

/// Takes a row's columns in their order.
pub(super) trait RowWriter {
    fn begin(&mut self, columns: i16);
    fn int8(&mut self, value: i64);
    fn int4(&mut self, value: i32);
    fn text(&mut self, value: &str);
    /// In microseconds since 1970.
    fn time(&mut self, us: i64);
    fn end(&mut self);
}

/// What precedes the rows of a binary COPY: signature, flags, no extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// PostgreSQL counts time from 2000-01-01, in microseconds.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// Rows as a binary COPY takes them
/// (<https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-FILE-FORMATS>).
pub(super) struct CopyRows(BytesMut);

impl CopyRows {
    pub(super) fn new() -> Self {
        Self(BytesMut::from(COPY_HEADER))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What has been written since it was last taken.
    pub(super) fn take(&mut self) -> Bytes {
        self.0.split().freeze()
    }

    /// No further rows.
    pub(super) fn trailer(&mut self) {
        self.0.put_i16(-1);
    }
}

impl RowWriter for CopyRows {
    fn begin(&mut self, columns: i16) {
        self.0.put_i16(columns);
    }

    fn int8(&mut self, value: i64) {
        self.0.put_i32(8);
        self.0.put_i64(value);
    }

    fn int4(&mut self, value: i32) {
        self.0.put_i32(4);
        self.0.put_i32(value);
    }

    fn text(&mut self, value: &str) {
        // A name or a word of ours: far below 2 GiB.
        self.0.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.0.put_slice(value.as_bytes());
    }

    fn time(&mut self, us: i64) {
        self.int8(us - POSTGRES_EPOCH_US);
    }

    fn end(&mut self) {}
}

/// Rows as the values of an INSERT.
pub(super) struct InsertRows {
    text: String,
    fresh: bool,
}

impl InsertRows {
    /// Behind the beginning of the statement.
    pub(super) const fn new(insert: String) -> Self {
        Self { text: insert, fresh: true }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn into_statement(mut self, end: &str) -> String {
        self.text.push_str(end);
        self.text
    }

    fn separate(&mut self) {
        if !self.fresh {
            self.text.push(',');
        }
        self.fresh = false;
    }
}

impl RowWriter for InsertRows {
    fn begin(&mut self, _: i16) {
        self.text.push_str(if self.fresh { "\n(" } else { ",\n(" });
        self.fresh = true;
    }

    fn int8(&mut self, value: i64) {
        self.separate();
        self.text.push_str(itoa::Buffer::new().format(value));
    }

    fn int4(&mut self, value: i32) {
        self.int8(value.into());
    }

    fn text(&mut self, value: &str) {
        self.separate();
        // Writing to a String cannot fail.
        let _ = write!(self.text, "'{}'", value.replace('\'', "''"));
    }

    fn time(&mut self, us: i64) {
        self.separate();
        let time = jiff::Timestamp::from_microsecond(us).unwrap_or_default();
        let _ = write!(self.text, "'{time}'");
    }

    fn end(&mut self) {
        self.text.push(')');
    }
}

/// Counts rows and adds up what stands for each: an order of rows does not matter, and what is
/// missing, twice or changed shows. A row is its columns as text between bars (a time in
/// microseconds since 1970); what is added up are the first 60 bits of its MD5, which every
/// PostgreSQL computes in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksum {
    pub(super) rows: u64,
    pub(super) sum: u128,
}

impl Checksum {
    pub(super) fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum += other.sum;
    }
}

/// Makes the checksum of the rows it is given.
#[derive(Default)]
pub(super) struct ChecksumRows {
    row: String,
    pub(super) made: Checksum,
}

impl ChecksumRows {
    fn separate(&mut self) {
        if !self.row.is_empty() {
            self.row.push('|');
        }
    }
}

impl RowWriter for ChecksumRows {
    fn begin(&mut self, _: i16) {
        self.row.clear();
    }

    fn int8(&mut self, value: i64) {
        self.separate();
        self.row.push_str(itoa::Buffer::new().format(value));
    }

    fn int4(&mut self, value: i32) {
        self.int8(value.into());
    }

    fn text(&mut self, value: &str) {
        self.separate();
        self.row.push_str(value);
    }

    fn time(&mut self, us: i64) {
        self.int8(us);
    }

    fn end(&mut self) {
        let digest = Md5::digest(self.row.as_bytes());
        let first = digest.iter().take(8).fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        self.made.rows += 1;
        self.made.sum += u128::from(first >> 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(out: &mut impl RowWriter) {
        out.begin(4);
        out.int8(7);
        out.int4(-2);
        out.text("it's");
        out.time(1_672_531_200_000_000);
        out.end();
    }

    #[test]
    fn values_are_separated_and_quoted() {
        let mut rows = InsertRows::new("INSERT INTO t VALUES".to_owned());
        row(&mut rows);
        row(&mut rows);
        assert_eq!(
            rows.into_statement(" ON CONFLICT DO NOTHING"),
            "INSERT INTO t VALUES\n(7,-2,'it''s','2023-01-01T00:00:00Z'),\
             \n(7,-2,'it''s','2023-01-01T00:00:00Z') ON CONFLICT DO NOTHING"
        );
    }

    #[test]
    fn a_checksum_is_the_md5_of_the_row_as_text() {
        let mut rows = ChecksumRows::default();
        row(&mut rows);
        // `select left(md5('7|-2|it''s|1672531200000000'), 15)`, by md5sum.
        assert_eq!(format!("{:015x}", rows.made.sum), "4e7df2e2e43dfc2");
        assert_eq!(rows.made.rows, 1);
    }
}
