//! A network that loses packets without any report: candidates in network namespaces, on links that are cut.

use harness::candidate::{Candidate, Elector, Running};
use harness::netns_link::{NetnsLink, Way};
use harness::not_tested;
use nix::sys::signal::Signal;

use crate::{election, with_both_electors};

/// Creates this many links, or `None` where the kernel does not allow it.
fn lay<const N: usize>() -> Option<[NetnsLink; N]> {
    let links: Result<Vec<_>, _> = (0..N).map(|_| NetnsLink::lay()).collect();
    links.inspect_err(|why| not_tested(&format!("links: {why}"))).ok()?.try_into().ok()
}

/// Starts a candidate at the far end of a link.
fn start(candidate: &Candidate, link: &NetnsLink) -> Running {
    let [enter, namespace] = &link.far_end();
    candidate.start_behind(&[enter, namespace])
}

with_both_electors! {
    /// The leader's link is cut in one direction or both. Its job has ended before another one begins. When the link is restored, the
    /// candidate stands by, also if its connections have been retrying for long.
    fn a_leader_whose_link_is_cut_has_no_job_when_another_begins(elector) {
        let Some([link]) = lay() else { return };
        for way in [Way::Both, Way::There, Way::Back] {
            let election = election(elector);
            let mut cut_off = start(&election.candidate().lease("2s"), &link);
            let term = cut_off.await_lead();
            election.await_witness(term);
            let mut other = election.candidate().lease("2s").start();
            other.await_event("standby");

            link.cut(way);
            let next = election.await_witness_after(term);
            election.assert_gone(term);
            cut_off.await_event("fence_warning");
            cut_off.await_event("broker_down");
            link.mend();
            cut_off.await_event("broker_up");

            other.signal(Signal::SIGTERM);
            other.status();
            election.await_witness_after(next);
            election.close([cut_off]);
        }
    }
}

/// No candidate reaches Kafka for longer than a connection attempt lasts; then all candidates do.
#[test]
fn a_candidate_leads_again_after_all_links_were_cut() {
    let Some(links) = lay::<2>() else { return };
    let election = election(Elector::Group);
    let mut candidates = links.each_ref().map(|link| start(&election.candidate().lease("2s"), link));
    let (_, term) = crate::await_leader(&mut candidates);
    election.await_witness(term);
    for link in &links {
        link.cut(Way::Both);
    }
    for candidate in &mut candidates {
        // The candidate logs this line again after 30 s. By then every connection attempt begun since has timed out.
        candidate.await_event("broker_down");
        candidate.await_event("broker_down");
    }
    election.assert_gone(term);
    links.iter().for_each(NetnsLink::mend);
    election.await_witness_after(term);
    election.close(candidates);
}
