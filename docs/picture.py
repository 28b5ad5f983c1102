#!/usr/bin/env python3
"""Draws docs/*.svg: the main views of the real console on a real rehearsal, as a terminal shows them.

Needs the PyPI package `pyte`; run from the project's folder after `cargo build --release`:
    python3 docs/picture.py
"""
import fcntl, html, os, pty, re, select, struct, subprocess, sys, tempfile, termios, time

import pyte

COLUMNS, ROWS, CELL, LINE = 120, 36, 8.4, 17
# Each picture: the keys that lead to it from the one before, and what it shows once it is there.
VIEWS = [("overview", b"", "MEASURING"), ("configuration", b"\r", "60 s ago"), ("compare", b"c", "a letter each"),
         ("cells", b"u", "QUEUE"), ("decision", b"o", "While you wait")]
BINARY = os.environ.get("RAMPDECK", "target/release/rampdeck")
PALETTE = {"default": "#d4d8dd", "black": "#5c6370", "red": "#ef6b73", "green": "#98c379", "brown": "#e5c07b",
           "yellow": "#e5c07b", "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d4d8dd"}


def color(name):
    if re.fullmatch("[0-9a-f]{6}", name):
        return "#" + name
    return PALETTE.get(name.replace("bright", ""), PALETTE["default"])


def spans(line):
    """Runs of cells that look the same: (column, text, colour, bold, reversed)."""
    runs = []
    for column in range(COLUMNS):
        cell = line[column]
        look = (color(cell.fg), cell.bold, cell.reverse)
        if runs and runs[-1][2] == look:
            runs[-1][1].append(cell.data or " ")
        else:
            runs.append([column, [cell.data or " "], look])
    return [(column, "".join(text), *look) for column, text, look in runs]


def draw(screen):
    width, height = COLUMNS * CELL + 24, ROWS * LINE + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-size="14" '
           'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace">',
           f'<rect width="100%" height="100%" rx="8" fill="#1b1f24"/>']
    for row in range(ROWS):
        y = 12 + row * LINE
        for column, text, fill, bold, reverse in spans(screen.buffer[row]):
            if not text.strip() and not reverse:
                continue
            x, length = 12 + column * CELL, len(text) * CELL
            if reverse:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{LINE}" fill="{fill}"/>')
                fill = "#1b1f24"
            weight = ' font-weight="bold"' if bold else ""
            out.append(f'<text x="{x:.1f}" y="{y + 13}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs" '
                       f'fill="{fill}"{weight} xml:space="preserve">{html.escape(text)}</text>')
    return "\n".join(out + ["</svg>\n"])


def watch(stream, master, seconds):
    """Lets the console go on for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([master], [], [], 0.2)[0]:
            stream.feed(os.read(master, 65536))


def until(stream, master, screen, sign):
    """Waits until the screen shows something."""
    deadline = time.monotonic() + 150
    while sign not in "\n".join(screen.display):
        if time.monotonic() > deadline:
            sys.exit(f"the console never showed {sign!r}")
        watch(stream, master, 0.2)


def main():
    data = tempfile.mkdtemp(prefix="rampdeck-picture-")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_DATA_HOME": data}
    for name in ("NO_COLOR", "RAMPDECK_THEME", "SSH_CONNECTION", "SSH_TTY", "LC_ALL"):
        environment.pop(name, None)
    command = [BINARY, "rehearse", "--set", "stage.pilot.measure_s=60"]
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
    os.close(slave)
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    try:
        until(stream, master, screen, "MEASURING 0:2")
        for name, keys, sign in VIEWS:
            if keys:
                os.write(master, keys)
            until(stream, master, screen, sign)
            watch(stream, master, 6)
            with open(f"docs/{name}.svg", "w", encoding="utf-8") as file:
                file.write(draw(screen))
    finally:
        child.terminate()
        child.wait()
        run = os.listdir(os.path.join(data, "rampdeck", "registry"))[0].removesuffix(".json")
        subprocess.run([BINARY, "teardown", run, "--yes"], env=environment, check=True)


main()
