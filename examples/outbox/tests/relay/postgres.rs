//! A PostgreSQL server for a test, from Debian's package `postgresql`: its programs, not its service.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use harness::wait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User, chown};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

const INSTALL: &str = "PostgreSQL is not here: apt-get install postgresql";

/// PostgreSQL's programs refuse to run as root; Debian's package creates a user for them.
const USER: &str = "postgres";

/// A record of each mark, in the order of the commits, since each is made while the fence is locked.
const MARKS: &str = "
    CREATE TABLE marks (n bigint GENERATED ALWAYS AS IDENTITY, id bigint NOT NULL, term bigint NOT NULL);
    CREATE FUNCTION note_mark() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO marks (id, term) VALUES (NEW.id, NEW.relayed_in); RETURN NULL; END $$;
    CREATE TRIGGER note_mark AFTER UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION note_mark();";

/// A running server with the outbox's tables. It ends with the thread that started it.
pub struct Postgres {
    server: Child,
    // Removed after the server has ended.
    _directory: TempDir,
    port: u16,
}

impl Postgres {
    /// Starts a server.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        if Uid::effective().is_root() {
            let user = User::from_name(USER).expect("users can be looked up").expect(INSTALL);
            chown(directory.path(), Some(user.uid), Some(user.gid)).expect("root may give it away");
        }
        let data = directory.path().join("data");
        let mut initdb = program("initdb");
        initdb.args(["--username=app", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"]);
        let made = initdb.arg(&data).current_dir(directory.path()).output().expect(INSTALL);
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let mut server = program("postgres");
        server.arg("-D").arg(&data).args(["-c", &format!("port={port}"), "-c", "listen_addresses=127.0.0.1"]);
        // The data need not survive a crash of the machine.
        server.args(["-c", "unix_socket_directories=", "-c", "fsync=off"]).current_dir(directory.path());
        let server = server.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect(INSTALL);
        let postgres = Self { server, _directory: directory, port };
        postgres.run(async |client| {
            client.batch_execute(include_str!("../../schema.sql")).await.expect("the schema");
            client.batch_execute(MARKS).await.expect("the marks");
        });
        postgres
    }

    /// The connection parameters.
    pub fn database(&self) -> String {
        format!("host=127.0.0.1 port={} user=app dbname=postgres", self.port)
    }

    /// Runs a function with its own connection.
    pub fn run<T>(&self, what: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = runtime();
        let database = self.database();
        let connect = || runtime.block_on(tokio_postgres::connect(&database, NoTls)).ok();
        let (client, connection) = wait::until("PostgreSQL that answers", connect);
        runtime.block_on(async {
            tokio::spawn(connection);
            what(client).await
        })
    }

    /// The number that a query returns.
    pub fn number(&self, query: &str) -> i64 {
        self.run(async |client| client.query_one(query, &[]).await.expect("an answer").get(0))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An immediate shutdown, which also ends the server's child processes; after SIGKILL they would end later by themselves.
        let server = Pid::from_raw(self.server.id().cast_signed());
        let _ = kill(server, Signal::SIGQUIT);
        let _ = self.server.wait();
    }
}

/// A runtime for the test's own work.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One of PostgreSQL's programs, run as a user that may run it; it ends with the thread that starts it.
fn program(name: &str) -> Command {
    let mut command = Command::new("setpriv");
    if Uid::effective().is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(directory().join(name));
    command
}

/// The directory of the newest version's programs, which Debian does not put into the `PATH`.
fn directory() -> PathBuf {
    let versions = Path::new("/usr/lib/postgresql").read_dir().expect(INSTALL).flatten();
    let newest = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max().expect(INSTALL);
    format!("/usr/lib/postgresql/{newest}/bin").into()
}
