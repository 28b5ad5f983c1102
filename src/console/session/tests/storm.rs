//! Many sizes and keys at once.

use super::*;

/// Keys of every view and dialog but those that leave, suspend, or copy. Escape is sent twice, which
/// is read as one, and `[` never: with what follows it at once an escape would be another key.
const STORM: &[&[u8]] = &[
    b"s",
    b"S",
    b"a",
    b"+",
    b"-",
    b"x",
    b"X",
    b"r",
    b"m",
    b"h",
    b"z",
    b"p",
    b"d",
    b"o",
    b"\r",
    b"c",
    b"u",
    b"i",
    b"l",
    b"f",
    b"w",
    b"v",
    b"?",
    b":",
    b"/",
    b"T",
    b"\x1b\x1b",
    b"\t",
    b" ",
    b"1",
    b"2",
    b"9",
    b"0",
    b".",
    b"e",
    b"R",
    b"D",
    b"]",
    b"C",
    b"G",
    b"K",
    b"M",
    b"\x1b[A",
    b"\x1b[B",
    b"\x1b[C",
    b"\x1b[D",
    b"\x1b[5~",
    b"\x1b[6~",
    b"\x1b[H",
    b"\x1b[F",
    b"\x7f",
    b"\x04",
    b"\x12",
    "주".as_bytes(),
];

#[test]
fn a_storm_of_sizes_and_keys_leaves_the_console_in_order() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    let mut random: u64 = 20_261_201;
    let mut next = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    for _ in 0..1_000 {
        let (cols, rows) = (1 + next(220), 1 + next(60));
        console.resize(u16::try_from(cols).unwrap(), u16::try_from(rows).unwrap());
        for _ in 0..10 {
            console.press(STORM[next(STORM.len())]);
        }
    }
    console.resize(120, 36);
    console.output.lock().unwrap().clear();
    assert!(matches!(console.child.try_wait(), Ok(None)));
    // Whatever is on top is closed; then the overview is there as ever.
    let mut keys = [&b"\x1b\x1b"[..], b"o", b"\x0c"].into_iter().cycle();
    let overview = until(|| {
        console.press(keys.next().unwrap());
        console.screen().contains(RUN) && console.screen().contains("Aurora DSQL")
    });
    assert!(overview, "{}", console.screen());
    let (mut steps, commands) = (0, engine.commands.try_iter().collect::<Vec<_>>());
    for command in &commands {
        assert!(!matches!(command, Command::Teardown { .. }), "nobody typed the run's name");
        steps += usize::from(matches!(command, Command::StepRate { .. }));
    }
    assert!(!commands.is_empty());
    assert!(steps <= 120, "{steps} steps: one a second at most");
    console.press(b"\x03");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
    assert!(until(|| console.count(LEAVE_SCREEN) == 1));
}
