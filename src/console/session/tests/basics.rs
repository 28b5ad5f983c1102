//! What a console shows, sends and copies.

use super::*;

#[test]
fn a_console_draws_sends_and_gives_the_terminal_back_once() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for(RUN);
    console.wait_for("engine live");
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    console.wait_for("pause the plan: done");
    // Without job control above it the stop is ignored: given back and taken again.
    console.press(b"\x1a");
    assert!(until(|| console.count(ENTER_SCREEN) == 2));
    console.wait_for(RUN);
    console.press(b"q");
    assert_eq!(console.ended(), format!("Ok(Detached {{ run: Some(RunId({RUN:?})) }})"));
    assert!(until(|| console.count(LEAVE_SCREEN) == 2));
    assert_eq!(console.count(SHOW_CURSOR), 2);
}

#[test]
fn a_lost_engine_is_said_and_found_again() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    drop(engine);
    console.wait_for("ENGINE LOST");
    let engine = FakeEngine::start(&folder.path().join("engine.sock"), PROTOCOL);
    console.wait_for("engine live");
    drop(engine);
    console.wait_for("ENGINE LOST");
    console.press(b"q");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Lost"), "{ended}");
}

#[test]
fn the_end_of_a_run_is_shown_until_it_is_read() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.press(format!("T{RUN}\r").as_bytes());
    console.wait_for("RUN ENDED");
    console.wait_for("all is removed");
    console.press(b"q");
    let ended = console.ended();
    assert_eq!(ended, "Ok(Ended { exit_code: 0, text: \"all is removed\" })");
}

#[test]
fn a_figure_is_copied_and_the_mouse_is_taken_and_left() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.press(b"y");
    assert!(until(|| console.count(b"\x1b]52;c;") == 1));
    console.press(b"M");
    assert!(until(|| console.count(b"\x1b[?1000h") == 1));
    // The wheel selects.
    console.press(b"\x1b[<65;10;10M");
    console.wait_for("R1");
    console.press(b"M");
    assert!(until(|| console.count(b"\x1b[?1000l") == 1));
    console.press(b"q");
    console.ended();
}

#[test]
fn an_engine_of_another_protocol_is_refused_on_an_untouched_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let _engine = FakeEngine::start(&folder.path().join("engine.sock"), PROTOCOL + 1);
    let mut console = Console::start(&folder, true);
    let ended = console.ended();
    assert!(ended.starts_with("Err(Protocol"), "{ended}");
    assert_eq!(console.count(ENTER_SCREEN), 0);
}

#[test]
fn a_console_that_does_not_drive_says_so_and_asks() {
    let folder = tempfile::tempdir().unwrap();
    let engine = FakeEngine::naming(&folder.path().join("engine.sock"), PROTOCOL, 2);
    let mut console = Console::start(&folder, true);
    console.wait_for("watching: console 1 (anna on pts/3) drives");
    // Refused here, before the engine is asked.
    console.press(b"x");
    console.wait_for("this console watches");
    console.press(b"C");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::AskControl);
    console.press(b"q");
    console.ended();
}
