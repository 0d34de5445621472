//! Tables and ports.

use super::query::{Key, Query, sort};
use crate::explain::names;
use crate::json::Json;
use purlin_ets::Table;
use purlin_io::port;
use purlin_io::socket;
use purlin_term::Term;
use purlin_term::frag::Fragment;
use purlin_term::preview::preview;
use std::sync::Arc;

/// Characters kept of a name.
const NAME: usize = 200;
/// Maximum number of ports that are examined.
const PORTS: usize = 20_000;

struct TableRow {
    table: Arc<Table>,
    name: String,
    owner: String,
    objects: usize,
    bytes: usize,
}

pub(super) fn tables(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let key: fn(&TableRow) -> Key = match q.text("sort") {
        "" | "bytes" => |r| Key::Number(r.bytes as u64),
        "objects" => |r| Key::Number(r.objects as u64),
        "name" => |r| Key::Text(r.name.clone()),
        "owner" => |r| Key::Number(u64::from(r.table.owner().pid_data())),
        other => return Err(format!("tables cannot be sorted by '{other}'")),
    };
    let descends = q.descends()?;
    let filter = q.filter()?;
    let mut rows: Vec<TableRow> = purlin_ets::all()
        .into_iter()
        .map(|table| {
            let (objects, words) = table.size_and_words();
            TableRow {
                name: preview(table.name(), NAME),
                owner: names::pid(table.owner()),
                objects,
                bytes: words * 8,
                table,
            }
        })
        .collect();
    let count = rows.len();
    let bytes: usize = rows.iter().map(|r| r.bytes).sum();
    rows.retain(|r| r.name.to_lowercase().contains(&filter) || r.owner.contains(&filter));
    sort(&mut rows, descends, key);
    let found = rows.len();
    let rows = q.page(rows)?;
    let pairs: [(&str, Json); 4] = [
        ("count", count.into()),
        ("bytes", bytes.into()),
        ("found", found.into()),
        (
            "rows",
            Json::List(rows.iter().map(TableRow::json).collect()),
        ),
    ];
    Ok(pairs.map(|(k, v)| (k.to_string(), v)).into())
}

impl TableRow {
    fn json(&self) -> Json {
        let t = &self.table;
        let mut f = Fragment::new();
        let id = purlin_ets::id(t, &mut f).map(|t| preview(t, NAME));
        // SAFETY: nothing in it is used any more.
        unsafe { f.destroy() };
        let (kind, protection) = (t.kind().name(), t.protection().name());
        Json::object([
            ("name", self.name.clone().into()),
            ("id", id.into()),
            ("owner", self.owner.clone().into()),
            ("kind", kind.into()),
            ("protection", protection.into()),
            ("objects", self.objects.into()),
            ("bytes", self.bytes.into()),
        ])
    }
}

struct PortRow {
    id: Term,
    name: String,
    info: port::Info,
}

pub(super) fn ports(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let key: fn(&PortRow) -> Key = match q.text("sort") {
        "" | "queued" => |r| Key::Number(r.info.queued as u64),
        "read" => |r| Key::Number(r.info.bytes_in),
        "written" => |r| Key::Number(r.info.bytes_out),
        "memory" => |r| Key::Number(r.info.memory as u64),
        "name" => |r| Key::Text(r.name.clone()),
        "owner" => |r| Key::Number(u64::from(r.info.connected.pid_data())),
        "id" => |r| Key::Number(u64::from(r.id.pid_data())),
        other => return Err(format!("ports cannot be sorted by '{other}'")),
    };
    let descends = q.descends()?;
    let filter = q.filter()?;
    let ids = port::all();
    let count = ids.len();
    let mut rows: Vec<PortRow> = ids
        .into_iter()
        .take(PORTS)
        .filter_map(|id| {
            let p = port::find(id)?;
            Some(PortRow {
                id,
                name: String::from_utf8_lossy(&p.name)
                    .chars()
                    .take(NAME)
                    .collect(),
                info: port::info(&p)?,
            })
        })
        .collect();
    let asked = rows.len();
    let queued: usize = rows.iter().map(|r| r.info.queued).sum();
    rows.retain(|r| {
        r.name.to_lowercase().contains(&filter)
            || names::pid(r.info.connected).contains(&filter)
            || preview(r.id, NAME).to_lowercase().contains(&filter)
    });
    sort(&mut rows, descends, key);
    let found = rows.len();
    let rows = q.page(rows)?;
    let sockets = socket::open_count();
    let pairs: [(&str, Json); 6] = [
        ("count", count.into()),
        ("asked", asked.into()),
        ("queued_bytes", queued.into()),
        // Sockets of module `socket`. They are not ports, and have no output queue.
        ("sockets", sockets.into()),
        ("found", found.into()),
        ("rows", Json::List(rows.iter().map(PortRow::json).collect())),
    ];
    Ok(pairs.map(|(k, v)| (k.to_string(), v)).into())
}

impl PortRow {
    fn json(&self) -> Json {
        let i = &self.info;
        let (local, peer) = port::find(self.id).map_or((None, None), |p| port::addresses(&p));
        Json::object([
            ("id", preview(self.id, NAME).into()),
            ("name", self.name.clone().into()),
            ("registered", i.registered.map(|n| preview(n, NAME)).into()),
            ("owner", names::pid(i.connected).into()),
            ("local", local.into()),
            ("peer", peer.into()),
            ("os_pid", i.os_pid.map(|n| Json::Int(n.into())).into()),
            ("links", i.links.len().into()),
            ("read_bytes", i.bytes_in.into()),
            ("written_bytes", i.bytes_out.into()),
            ("queued_bytes", i.queued.into()),
            ("memory_bytes", i.memory.into()),
        ])
    }
}
