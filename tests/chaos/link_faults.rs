//! The conditions of a link to a broker for the faults of the network, by the degree of the fault (0 to 1).

use std::time::Duration;

use harness::network::{Flow, LinkConditions};

/// The same flow in both directions.
pub(crate) fn both(flow: Flow) -> LinkConditions {
    LinkConditions { there: flow, back: flow, ..LinkConditions::default() }
}

/// A cut of one direction or both; bytes in transit arrive late or never.
pub(crate) fn cut(degree: f64) -> LinkConditions {
    let flow = if degree * 10.0 % 1.0 < 0.6 { Flow::Held } else { Flow::Lost };
    match degree {
        ..0.3 => LinkConditions { there: flow, ..LinkConditions::default() },
        ..0.6 => LinkConditions { back: flow, ..LinkConditions::default() },
        _ => both(flow),
    }
}

/// Late answers, and perhaps late requests.
pub(crate) fn delay(degree: f64) -> LinkConditions {
    let flow = Flow::Late(Duration::from_millis(50) + Duration::from_millis(850).mul_f64(degree));
    if degree > 0.5 { LinkConditions { back: flow, ..LinkConditions::default() } } else { both(flow) }
}

/// A slow link in both directions.
pub(crate) fn trickle(degree: f64) -> LinkConditions {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    both(Flow::Trickle(200 + (degree * 5000.0) as u32))
}
