//! The layers of the program `neli-run`.

/// The modules of `neli-run`.
pub(super) const PROGRAM: [(&str, &[&str]); 13] = [
    ("calendar", &[]),
    ("text", &[]),
    ("features", &[]),
    ("process", &["text"]),
    ("exit", &["text"]),
    ("config", &["calendar", "exit", "text"]),
    ("release", &["exit", "process", "text"]),
    ("report", &["config", "exit", "text"]),
    ("guard", &["config", "process", "report"]),
    ("http", &["config", "report", "text"]),
    ("supervise", &["calendar", "config", "exit", "guard", "http", "process", "release", "report", "text"]),
    ("cli", &["calendar", "config", "exit", "features", "process", "text"]),
    ("command", &["calendar", "cli", "config", "exit", "guard", "http", "process", "report", "text"]),
];

/// The modules of `src/process`.
pub(super) const PROCESS: [(&str, &[&str]); 29] = [
    ("descriptors", &[]),
    ("image", &[]),
    ("signal_set", &[]),
    ("system", &["signal_set"]),
    ("cgroup", &["system"]),
    ("ready", &["system"]),
    ("release_queue", &["system"]),
    ("scheduling", &["system"]),
    ("sealed_file", &["system"]),
    ("signals", &["signal_set", "system"]),
    ("memory", &["cgroup", "system"]),
    ("priority", &["scheduling"]),
    ("oom_score", &[]),
    ("room_for_threads", &["cgroup"]),
    ("mark", &[]),
    ("limits", &["room_for_threads", "system"]),
    ("attributes", &["limits", "mark", "oom_score", "scheduling"]),
    ("quota", &["cgroup"]),
    ("spin_watch", &["scheduling"]),
    ("reap", &["spin_watch", "system"]),
    ("tail", &["ready"]),
    ("timer", &["ready"]),
    ("procfs", &["mark", "spin_watch", "system"]),
    ("terminal", &["procfs", "system"]),
    ("tree", &["cgroup", "mark", "procfs", "scheduling", "system"]),
    ("spawn_spec", &["attributes", "image", "signal_set", "terminal"]),
    ("child", &["signal_set", "spawn_spec", "system", "terminal"]),
    ("spawn", &["child", "spawn_spec", "system"]),
    ("shell", &["attributes", "image", "reap", "scheduling", "signal_set", "spawn", "spawn_spec", "system"]),
];

/// The modules of `src/report`.
pub(super) const REPORT: [(&str, &[&str]); 7] = [
    ("level", &[]),
    ("notify", &[]),
    ("journald", &["level"]),
    ("log", &["journald", "level"]),
    ("election", &["log"]),
    ("notes", &["election", "log"]),
    ("runs", &["log"]),
];

/// The modules of `src/cli`. `src/cli.rs` is above them.
pub(super) const COMMAND_LINE: [(&str, &[&str]); 8] = [
    ("arguments", &[]),
    ("distance", &[]),
    ("options", &["arguments"]),
    ("parsed_args", &["distance", "options"]),
    ("subcommands", &["arguments", "options"]),
    ("definition", &["arguments", "options", "subcommands"]),
    ("clap_errors", &["definition", "distance"]),
    ("validate", &["parsed_args"]),
];

/// The modules of `src/guard`. `src/guard.rs` is above them.
pub(super) const GUARD: [(&str, &[&str]); 15] = [
    ("arguments", &[]),
    ("job", &[]),
    ("lease", &[]),
    ("message", &[]),
    ("release", &[]),
    ("setup", &[]),
    ("variables", &[]),
    ("channel", &["message"]),
    ("commands", &["message"]),
    ("backlog", &["channel"]),
    ("outbox", &["channel"]),
    ("handle", &["arguments", "backlog", "channel", "message"]),
    ("trial", &["handle", "message"]),
    ("guard_loop", &["arguments", "channel", "commands", "job", "lease", "message", "outbox", "setup"]),
    ("perform", &["guard_loop", "job", "lease", "message", "release", "variables"]),
];

/// The modules of `src/supervise`. `main_loop` is the state of the loop. Below it are the modules of its parts, above it those with its
/// methods, and above all of them `src/supervise.rs`.
pub(super) const SUPERVISE: [(&str, &[&str]); 27] = [
    ("at_start", &[]),
    ("commands", &[]),
    ("environment", &[]),
    ("kafka_state", &[]),
    ("main_process", &[]),
    ("service_status", &[]),
    ("settling", &[]),
    ("shell", &[]),
    ("translate", &[]),
    ("wall_clock", &[]),
    ("facts_topic", &["wall_clock"]),
    ("orphans", &["main_process"]),
    ("job", &["main_process", "orphans"]),
    ("role", &["commands", "facts_topic", "job", "orphans"]),
    ("start", &["environment", "job"]),
    ("listening", &["kafka_state", "role", "start"]),
    ("main_loop", &["kafka_state", "listening", "role", "service_status", "settling", "shell", "start"]),
    ("children", &["job", "main_loop", "orphans", "role", "translate"]),
    ("facts", &["main_loop"]),
    ("guard", &["job", "main_loop", "main_process", "start"]),
    ("journal", &["kafka_state", "main_loop"]),
    ("kafka", &["main_loop"]),
    ("leaving", &["facts_topic", "main_loop"]),
    ("many_roles", &["main_loop"]),
    ("perform", &["main_loop", "role", "translate"]),
    ("reporting", &["main_loop"]),
    ("terminal", &["main_loop", "role"]),
];
