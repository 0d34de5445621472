//! The nodes of a cluster as processes: how they begin and end.

use super::fault::Node;
use purlin_world::net::SocketId;
use purlin_world::protocol::{self, Call, Question, Reply, Thing, Turn, VERSION};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that an emulator may take to begin, and a node to come to its next question.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The command that each node runs.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub nodes: u32,
    /// Folders of libraries beside those of OTP, each a line: what they do is not the program's.
    pub libraries: String,
}

/// The meaning of a thing of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Open {
    Socket(SocketId),
    /// The end of a pipe that is read, or written.
    Reader(usize),
    Writer(usize),
    /// Ready when that member has ended. None: it never began.
    End(Option<usize>),
}

/// A pipe between a node and a program that it has started.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe {
    pub data: VecDeque<u8>,
    pub no_reader: bool,
    pub no_writer: bool,
}

/// The wait of a node.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It has begun, and has had no turn yet.
    Begun,
    Idle(Option<u64>, Vec<(Thing, u32)>),
    /// Its turn was over.
    Over(Vec<(Thing, u32)>),
    /// Its processes stop while it waits for an answer.
    Held,
    Ended,
}

/// An emulator.
#[derive(Clone)]
pub(super) struct Member {
    pub node: Node,
    /// 1 for the first emulator of a node.
    pub life: u32,
    pub state: State,
    /// The time of its last question.
    pub now: u64,
    pub things: BTreeMap<Thing, Open>,
    pub next_thing: Thing,
    /// Its standard input and output, if another node has them.
    pub pipes: Option<(Thing, Thing)>,
    pub status: Option<i32>,
    /// Whether a fault has ended it.
    pub killed: bool,
}

impl Member {
    pub fn new(node: Node, life: u32) -> Member {
        Member {
            node,
            life,
            state: State::Begun,
            now: 0,
            things: BTreeMap::new(),
            next_thing: 1,
            pipes: None,
            status: None,
            killed: false,
        }
    }

    /// Adds a thing.
    pub fn add(&mut self, what: Open) -> Thing {
        let thing = self.next_thing;
        self.next_thing += 1;
        self.things.insert(thing, what);
        thing
    }

    pub fn is_alive(&self) -> bool {
        !matches!(self.state, State::Ended)
    }

    /// The name of the node, with its life if it is not the first.
    pub fn name(&self) -> String {
        match self.life {
            1 => format!("n{}", self.node),
            life => format!("n{}.{life}", self.node),
        }
    }
}

/// The process of an emulator.
#[derive(Default)]
pub(super) struct Link {
    pub stream: Option<UnixStream>,
    /// The process, if the coordinator has started it.
    pub child: Option<Child>,
}

impl Link {
    /// Returns the next question.
    pub fn question(&mut self) -> Option<Question> {
        let stream = self.stream.as_mut()?;
        let bytes = protocol::receive_last(stream).ok()?;
        Question::from_bytes(&bytes)
    }

    /// Ends it as from outside: it ends when its connection does.
    pub fn end(&mut self) {
        self.stream = None;
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for its end, which it has announced.
    pub fn wait(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // The connection ends with the process, whose output is there then.
            let _ = stream.read(&mut [0]);
        }
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
    }

    /// Has it make a copy of itself. It waits for a turn, and so does the copy, whose connection is
    /// returned.
    pub fn copy(&mut self, door: &mut Door) -> Result<UnixStream, String> {
        let word = door.next_copy();
        let turn = Turn {
            fork: word.clone(),
            ..Turn::default()
        };
        let reply = Reply {
            until: 0,
            answer: Ok(turn.to_bytes()),
        };
        let lost = || "a node could not be copied".to_owned();
        let stream = self.stream.as_mut().ok_or_else(lost)?;
        protocol::send(stream, &reply.to_bytes()).map_err(|_| lost())?;
        // Both ask for their turn again.
        self.question().ok_or_else(lost)?;
        let mut copy = Link {
            stream: Some(door.wait(&word, || false)?),
            child: None,
        };
        copy.question().ok_or_else(lost)?;
        copy.stream.ok_or_else(lost)
    }
}

/// Where emulators report that they have begun.
pub(super) struct Door {
    listener: UnixListener,
    place: PathBuf,
    /// Those that came before they were awaited, by their words.
    early: BTreeMap<String, UnixStream>,
    copies: u64,
}

impl Door {
    pub fn new(folder: &Path) -> std::io::Result<Door> {
        let place = folder.join("world");
        let listener = UnixListener::bind(&place)?;
        listener.set_nonblocking(true)?;
        Ok(Door {
            listener,
            place,
            early: BTreeMap::new(),
            copies: 0,
        })
    }

    /// Returns the word of the next copy of an emulator.
    fn next_copy(&mut self) -> String {
        self.copies += 1;
        format!("c{}", self.copies)
    }

    /// Waits until the emulator with that word begins. `ended`: whether its process has ended.
    pub fn wait(
        &mut self,
        word: &str,
        mut ended: impl FnMut() -> bool,
    ) -> Result<UnixStream, String> {
        let until = Instant::now() + START_LIMIT;
        let mut over = false;
        loop {
            if let Some(stream) = self.early.remove(word) {
                return Ok(stream);
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.greet(stream)?,
                // What it has sent before it ended was there in the last round.
                Err(_) if over => return Err("it has started no emulator of Purlin".into()),
                Err(_) if Instant::now() > until => {
                    return Err("its emulator has not begun within two minutes".into());
                }
                Err(_) => {
                    over = ended();
                    if !over {
                        std::thread::sleep(Duration::from_micros(500));
                    }
                }
            }
        }
    }

    fn greet(&mut self, mut stream: UnixStream) -> Result<(), String> {
        let set = stream.set_nonblocking(false);
        let set = set.and_then(|()| stream.set_read_timeout(Some(START_LIMIT)));
        set.map_err(|e| e.to_string())?;
        let hello = protocol::receive(&mut stream).ok();
        match hello.and_then(|h| Question::from_bytes(&h)).map(|q| q.call) {
            Some(Call::Hello { version, word, .. }) if version == VERSION => {
                if self.early.insert(word, stream).is_some() {
                    return Err("one command has started two emulators at a time".into());
                }
                Ok(())
            }
            // It has ended meanwhile, or is of another build, which its own message says.
            _ => Ok(()),
        }
    }
}

/// Whether a process that another one has started has ended.
pub(super) fn is_gone(process: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    // The state is behind the name, which may contain anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.trim_start().starts_with('Z')
}

/// The content of the folders of nodes at some moment.
#[derive(Default)]
pub(super) struct Kept {
    /// By path, within the folder of the run. Folders come before what is in them.
    all: Vec<(PathBuf, Entry)>,
    /// Where the files have another name each.
    place: PathBuf,
}

/// An entry of a folder that is kept.
enum Entry {
    Folder,
    Link(PathBuf),
    /// A file: its bytes then, and its other name, under which it stays the same file while copies
    /// of nodes have it open.
    File(Vec<u8>, PathBuf),
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.place.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.place);
        }
    }
}

/// Maximum number of bytes in files of nodes that are kept.
const MOST_KEPT: usize = 32 << 20;

/// The files of a run.
pub(super) struct RunFolder {
    pub folder: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a run. Its name is the same for the same seed, since programs see it.
    pub fn new(seed: u64) -> Result<RunFolder, String> {
        let folder = std::env::temp_dir().join(format!("purlin-cluster-{seed}"));
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        // Its socket and files are for this user alone.
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700);
        if let Err(e) = private.create(&folder) {
            let ours = || -> std::io::Result<bool> {
                let there = std::fs::symlink_metadata(&folder)?;
                Ok(there.is_dir() && there.uid() == std::fs::metadata("/proc/self")?.uid())
            };
            if e.kind() == std::io::ErrorKind::AlreadyExists && !ours().map_err(failed)? {
                return Err(format!(
                    "{} is not a folder of this user's",
                    folder.display()
                ));
            }
            let owner = std::fs::read_to_string(folder.join("owner")).unwrap_or_default();
            let lives = owner.parse().is_ok_and(|p: u64| !is_gone(p));
            if lives && owner != std::process::id().to_string() {
                return Err(format!(
                    "{}: a run with this seed is under way (process {owner})",
                    folder.display()
                ));
            }
            if e.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(failed(e));
            }
            std::fs::remove_dir_all(&folder).map_err(failed)?;
            private.create(&folder).map_err(failed)?;
        }
        let place = RunFolder {
            folder: folder.clone(),
        };
        let id = std::process::id().to_string();
        std::fs::write(folder.join("owner"), id).map_err(failed)?;
        // Names have one address: ports tell the nodes apart.
        let hosts = "{lookup,[file]}.\n{hosts_file,\"\"}.\n{resolv_conf,\"\"}.\n\
            {host,{10,0,0,1},[\"world\",\"world.purlin\"]}.\n{host,{127,0,0,1},[\"localhost\"]}.\n";
        std::fs::write(folder.join("inetrc"), hosts).map_err(failed)?;
        Ok(place)
    }

    fn output(&self, node: Node) -> PathBuf {
        self.folder.join(format!("output{node}"))
    }

    /// Starts the command as that life of a node.
    pub fn start(
        &self,
        spec: &Spec,
        door: &Door,
        node: Node,
        life: u32,
    ) -> Result<(Child, String), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", spec.program.display());
        let word = format!("n{node}.{life}");
        let mut output = File::options();
        let output = output.create(true).append(true).open(self.output(node));
        let output = output.map_err(failed)?;
        let mut c = Command::new(&spec.program);
        c.args(&spec.arguments).env_clear();
        c.envs(spec.environment.iter().map(|(k, v)| (k, v)));
        let names: Vec<String> = (1..=spec.nodes).map(|n| format!("n{n}@world")).collect();
        let cookie = "-setcookie purlin_world";
        let before = spec.environment.iter().find(|(k, _)| k == "ERL_AFLAGS");
        let mut flags = OsString::from(cookie);
        if let Some((_, v)) = before {
            flags.push(" ");
            flags.push(v);
        }
        c.env("PURLIN_WORLD", &door.place)
            .env("PURLIN_WORLD_WORD", &word)
            .env("PURLIN_NODE", format!("n{node}@world"))
            .env("PURLIN_NODES", names.join(" "))
            .env("ERL_INETRC", self.folder.join("inetrc"))
            .env("ERL_AFLAGS", flags);
        if spec.nodes > 1 {
            let folder = self.folder.join(format!("n{node}"));
            std::fs::create_dir_all(&folder).map_err(failed)?;
            c.current_dir(&folder).env("TMPDIR", &folder);
        }
        c.stdin(Stdio::null());
        c.stdout(output.try_clone().map_err(failed)?);
        c.stderr(output);
        Ok((c.spawn().map_err(failed)?, word))
    }

    /// Keeps what the folders of nodes have now. `None`: it is too much, or cannot be kept.
    pub fn keep(&self, nodes: u32, number: u64) -> std::io::Result<Option<Kept>> {
        let mut kept = Kept {
            all: Vec::new(),
            place: self.folder.join(format!("kept{number}")),
        };
        std::fs::create_dir(&kept.place)?;
        let mut folders: VecDeque<PathBuf> = (1..=nodes).map(|n| format!("n{n}").into()).collect();
        let mut bytes = 0;
        while let Some(folder) = folders.pop_front() {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(self.folder.join(&folder))? {
                names.push(folder.join(entry?.file_name()));
            }
            names.sort();
            for name in names {
                let path = self.folder.join(&name);
                let of = std::fs::symlink_metadata(&path)?;
                let what = if of.is_dir() {
                    folders.push_back(name.clone());
                    Entry::Folder
                } else if of.is_symlink() {
                    Entry::Link(std::fs::read_link(&path)?)
                } else if of.is_file() && of.len() < MOST_KEPT as u64 {
                    let other = kept.place.join(kept.all.len().to_string());
                    std::fs::hard_link(&path, &other)?;
                    let text = std::fs::read(&path)?;
                    bytes += text.len();
                    Entry::File(text, other)
                } else {
                    return Ok(None);
                };
                kept.all.push((name, what));
            }
        }
        Ok((bytes <= MOST_KEPT).then_some(kept))
    }

    /// Fills the folders of nodes, which are empty, with what was kept.
    pub fn bring_back(&self, kept: &Kept) -> std::io::Result<()> {
        for (name, what) in &kept.all {
            let path = self.folder.join(name);
            match what {
                Entry::Folder => std::fs::create_dir(path)?,
                Entry::Link(to) => std::os::unix::fs::symlink(to, path)?,
                Entry::File(text, other) => {
                    std::fs::hard_link(other, &path)?;
                    std::fs::write(path, text)?;
                }
            }
        }
        Ok(())
    }

    /// Removes what the last run has left. Folders and files of output stay, since copies of nodes
    /// have them open; `outputs` is how much of their output a run begins with.
    pub fn clean(&self, nodes: u32, outputs: &BTreeMap<Node, u64>) -> std::io::Result<()> {
        for n in 1..=nodes {
            let folder = self.folder.join(format!("n{n}"));
            let Ok(all) = std::fs::read_dir(&folder) else {
                continue;
            };
            for entry in all {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => std::fs::remove_dir_all(entry.path())?,
                    false => std::fs::remove_file(entry.path())?,
                }
            }
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(Ok(node)) = name.strip_prefix("output").map(str::parse) {
                let kept = outputs.get(&node).copied().unwrap_or(0);
                File::options()
                    .write(true)
                    .open(entry.path())?
                    .set_len(kept)?;
            }
        }
        Ok(())
    }

    /// Returns what a node has written behind a place, and moves the place.
    pub fn new_output(&self, node: Node, at: &mut u64) -> String {
        let mut text = Vec::new();
        if let Ok(mut f) = File::open(self.output(node))
            && f.seek(SeekFrom::Start(*at)).is_ok()
        {
            let _ = f.read_to_end(&mut text);
        }
        *at += text.len() as u64;
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
