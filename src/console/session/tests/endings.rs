//! Signals, panics, and terminals that stall or go.

use super::*;

#[test]
fn a_console_leaves_a_terminal_that_hung_up() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, false);
    let mut reader = console.master.as_ref().unwrap().try_clone_reader().unwrap();
    let mut first = [0; 1];
    reader.read_exact(&mut first).unwrap();
    // It has a screen once a key has its effect.
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    drop((reader, console.keys.take(), console.master.take()));
    let ended = console.ended();
    assert!(ended.starts_with("Ok(HungUp"), "{ended}");
}

#[test]
fn a_stalled_terminal_stops_neither_keys_nor_leaving() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, false);
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    // Nobody reads: whole frames fill whatever holds the terminal's output, and more.
    for _ in 0..100 {
        console.press(b"\x0cp");
        assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
        thread::sleep(Duration::from_millis(40));
    }
    console.press(b"S");
    let stop = engine.commands.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(stop, Command::StopCell { .. }));
    console.press(b"q");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
}

#[test]
fn a_signal_to_end_detaches() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.signal(Signal::TERM);
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
    assert!(until(|| console.count(LEAVE_SCREEN) == 1));
}

#[test]
fn a_hang_up_detaches_and_leaves_the_terminal_as_it_was() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    assert!(console.is_cooked());
    console.wait_for("engine live");
    assert!(!console.is_cooked());
    console.signal(Signal::HUP);
    let ended = console.ended();
    assert!(ended.starts_with("Ok(HungUp"), "{ended}");
    assert!(console.is_cooked());
}

#[test]
fn a_console_that_was_stopped_takes_the_terminal_again() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.signal(Signal::STOP);
    console.signal(Signal::CONT);
    assert!(until(|| console.count(ENTER_SCREEN) == 2));
    console.wait_for(RUN);
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    console.press(b"q");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
    assert!(until(|| console.count(LEAVE_SCREEN) == 1));
    assert_eq!(console.count(SHOW_CURSOR), 1);
    assert!(console.is_cooked());
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    std::fs::write(folder.path().join("panic"), "").unwrap();
    assert!(until(|| matches!(console.child.try_wait(), Ok(Some(_)))));
    assert!(until(|| console.count(b"told to") >= 1));
    assert_eq!(console.count(LEAVE_SCREEN), 1);
    assert_eq!(console.count(SHOW_CURSOR), 1);
    assert!(console.is_cooked());
    let output = console.output();
    let place = |text: &[u8]| output.windows(text.len()).position(|window| window == text);
    assert!(place(LEAVE_SCREEN) < place(b"told to"), "the message would be lost with the screen");
}

#[test]
fn a_signal_after_the_run_tells_how_it_ended() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.press(format!("T{RUN}\r").as_bytes());
    console.wait_for("RUN ENDED");
    console.signal(Signal::TERM);
    let ended = console.ended();
    assert_eq!(ended, "Ok(Ended { exit_code: 0, text: \"all is removed\" })");
}
