//! How a run, a term and `neli-run` itself come to an end (interface.md, Exit status and Signals): every two causes, and a
//! stop at every instant. The node is the real one; Kafka and the guard are a [scene](scene::Scene)'s.

#[path = "endings/causes.rs"]
mod causes;
#[path = "endings/scene.rs"]
mod scene;
#[path = "endings/stops.rs"]
mod stops;
