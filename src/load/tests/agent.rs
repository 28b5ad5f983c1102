//! The agent's frames.

use super::{
    READS,
    fake::{FakeServer, Reply},
    open, order,
};
use crate::{
    link::{FrameReader, FrameWriter},
    load::agent,
    model::{AgentCommand, AgentReport, Arrivals, CellEnd},
};

#[test]
fn the_agent_runs_a_cell_from_frames_to_frames_and_ends_with_its_input() {
    let server = FakeServer::start(|_| Reply::Rows(1));
    let mut order = order(server.target(), open(100.0, Arrivals::Poisson, 4));
    order.measure_s = 1.0;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let agent =
        std::thread::spawn(move || agent::run_with(input, output, |_| Ok::<_, String>(READS)));
    super::alone(async {
        let (reader, writer) = tokio::io::split(ours);
        let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
        let first = reader.next::<AgentReport>().await.unwrap();
        assert!(matches!(first, Some(AgentReport::Ready { .. })), "{first:?}");
        writer.send(&AgentCommand::Run(Box::new(order))).await.unwrap();
        let (mut windows, mut samples) = (0, 0);
        loop {
            match reader.next::<AgentReport>().await.unwrap().unwrap() {
                AgentReport::Window(_) => windows += 1,
                AgentReport::Runner(_) => samples += 1,
                AgentReport::Ended(result) => {
                    assert_eq!(result.end, CellEnd::Complete);
                    break;
                }
                _ => {}
            }
        }
        assert!(windows >= 3 && samples >= 1, "{windows} windows, {samples} samples");
    });
    // Both ends of the pipe are gone: the agent ends by itself.
    agent.join().unwrap().ok();
}
