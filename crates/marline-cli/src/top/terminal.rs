//! The view in a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};
use marline_report::terminal::line;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::source::{Snapshot, Source, Summary};
use super::view;
use crate::failure::Failure;

/// Keys are looked for at this interval, so that their thread ends with the view.
const KEYS: Duration = Duration::from_millis(100);

/// The terminal while it shows the view; it is as it was when this is dropped.
struct Screen;

impl Screen {
    fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Shows as many of `lines` as there is space for.
    fn show(&self, lines: &[String]) -> io::Result<()> {
        let (width, height) = size()?;
        let mut out = io::stdout().lock();
        for row in 0..height {
            queue!(out, cursor::MoveTo(0, row), Clear(ClearType::CurrentLine))?;
            if let Some(text) = lines.get(usize::from(row)) {
                let text = line(text);
                let text: String = text.chars().take(width.into()).collect();
                queue!(out, Print(text))?;
            }
        }
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing else can be done for the terminal.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// An input of the user.
enum Input {
    Quit,
    Resized,
}

/// The inputs, until the receiver is dropped.
fn inputs() -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            let input = match event::poll(KEYS) {
                Ok(false) => continue,
                Ok(true) => match event::read() {
                    Ok(Event::Key(key)) => {
                        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL)
                            && key.code == KeyCode::Char('c');
                        match is_interrupt || matches!(key.code, KeyCode::Char('q')) {
                            true => Input::Quit,
                            false => continue,
                        }
                    }
                    Ok(Event::Resize(..)) => Input::Resized,
                    Ok(_) => continue,
                    Err(_) => Input::Quit,
                },
                Err(_) => Input::Quit,
            };
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Shows `source` until the user ends it.
pub(super) async fn run(source: &Source, first: Snapshot, every: Duration) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let message = "the live view needs a terminal; add --once or --json";
        return Err(Failure::Usage(message.to_owned()));
    }
    let screen = Screen::open().map_err(Failure::Output)?;
    let mut inputs = inputs();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = first;
    let mut lines = vec!["reading; q ends".to_owned()];
    // The first is due at once.
    ticks.tick().await;
    loop {
        screen.show(&lines).map_err(Failure::Output)?;
        tokio::select! {
            input = inputs.recv() => match input {
                Some(Input::Resized) => {}
                Some(Input::Quit) | None => return Ok(()),
            },
            _ = ticks.tick() => match source.read().await {
                Ok(now) => {
                    lines = view::lines(&Summary::of(&before, &now));
                    before = now;
                }
                // It may be started again.
                Err(failure) => lines = vec![failure.to_string(), "q ends".to_owned()],
            },
        }
    }
}
