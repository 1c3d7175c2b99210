//! A scheduler and two executors of one core, as processes.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

/// Kills the process when it is dropped. A signal to stop would have an executor finish its tasks first.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fields are dropped in order: the processes end, then their folder goes.
pub struct Processes {
    #[allow(dead_code, reason = "only tests kill them")]
    pub executors: [Process; 2],
    _scheduler: Process,
    pub port: u16,
    /// Has the log of each process, and the folders `executor-0` and `executor-1`.
    pub folder: TempDir,
}

impl Processes {
    /// Starts the processes, which are ready a moment later.
    pub fn start(log: &str, scheduler: &[&str], executor: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        // Held until all are known, so that no two are the same.
        let listeners = [(); 5].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port());
        drop(listeners);

        let start = |name: &str, arguments: &[&str]| {
            let file = File::create(folder.path().join(name).with_extension("log")).expect("a log");
            let child = program().args(arguments).env("RUST_LOG", log).stderr(file).spawn();
            Process(child.expect("the program starts"))
        };
        let [port, data_0, data_1, tasks_0, tasks_1] = &ports.map(|port| port.to_string());
        let scheduler = start("scheduler", &[&["scheduler", "--port", port], scheduler].concat());
        let executors = [("executor-0", data_0, tasks_0), ("executor-1", data_1, tasks_1)];
        let executors = executors.map(|(name, data, tasks)| {
            let work_dir = folder.path().join(name);
            fs::create_dir(&work_dir).expect("a work folder");
            let ports = ["executor", "--scheduler-port", port, "--port", data, "--grpc-port", tasks];
            start(name, &[&ports, &["--work-dir", path(&work_dir), "--vcores", "1"][..], executor].concat())
        });
        Self { executors, _scheduler: scheduler, port: ports[0], folder }
    }
}

pub fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bloomline-ballista"));
    program.env("RUST_LOG", "off").env("RUST_BACKTRACE", "0");
    program
}

pub fn path(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}
